"""Numbers of a report: denominators, expected cells, groups and ranks."""

from dataclasses import replace

import polars as pl
import pytest

from reports.grid import ALL
from reports.measures import measures
from reports.results import EVIDENCE_METRICS, Arm, Results
from reports.tables import (
    PRIMARY,
    Cell,
    baseline_of,
    budget_words,
    clustered_rows,
    main_rows,
    mixed_group,
    series_of,
    summarise,
)
from tests.report_fixture import JUDGES, KINDS, build_results, two_arms

COLUMNS = ["benchmark", "split", "arm", "k", "kind", "metric", "value", "low", "high", "n"]


@pytest.fixture(scope="module")
def results() -> Results:
    return build_results()


def test_main_rows_have_exactly_the_columns_of_main_csv(results: Results) -> None:
    assert main_rows(results).columns == clustered_rows(results).columns == COLUMNS


def test_every_expected_cell_is_present_once(results: Results) -> None:
    rows = main_rows(results)
    expected = {
        (arm.label, kind, each.name) for arm in results.arms for kind in (ALL, *KINDS) for each in measures(results)
    }
    found = rows.select("arm", "kind", "metric").rows()
    assert len(found) == len(set(found))
    assert set(found) == expected


def test_a_cell_that_never_came_is_a_row_with_empty_values() -> None:
    base = build_results()
    silent = replace(base, cells=base.cells.filter(pl.col("arm") != "bm25@k2"))
    rows = main_rows(silent).filter(arm="bm25@k2", kind=ALL, metric=PRIMARY)
    row = rows.row(0, named=True)
    assert (row["value"], row["low"], row["high"], row["n"]) == (None, None, None, 0)


def test_a_kind_without_questions_is_a_row_with_empty_values() -> None:
    rows = main_rows(replace(build_results(), kinds=(*KINDS, "adversarial"))).filter(kind="adversarial")
    assert rows["value"].null_count() == rows.height > 0
    assert rows["n"].sum() == 0


def test_missing_is_null_and_never_nan(results: Results) -> None:
    rows = pl.concat([main_rows(results), clustered_rows(results)])
    assert not rows.select(pl.col("value", "low", "high").is_nan().any()).row(0).count(True)


def test_values_of_evidence_metrics_are_fractions_inside_their_intervals(results: Results) -> None:
    for rows in (main_rows(results), clustered_rows(results)):
        own = rows.filter(pl.col("metric").is_in(list(EVIDENCE_METRICS)), pl.col("low").is_not_null())
        assert own.height > 100
        assert own["value"].is_between(0, 1).all()
        assert (own["low"] <= own["high"]).all()
        assert own["low"].is_between(0, 1).all()
    overall = main_rows(results).filter(pl.col("kind") == ALL, pl.col("metric") == PRIMARY)
    assert overall.select(((pl.col("low") <= pl.col("value")) & (pl.col("value") <= pl.col("high"))).all()).item()


def test_questions_without_gold_are_in_no_evidence_denominator(results: Results) -> None:
    with_gold = results.questions.filter(pl.col("gold_turn_ids").list.len() > 0).height
    estimates = summarise(results).estimates
    assert estimates[Cell("hybrid@k2", ALL, PRIMARY)].n == with_gold == 24
    assert estimates[Cell("mem_pursuit@k2", ALL, PRIMARY)].n == with_gold - 1
    assert estimates[Cell("hybrid@k2", ALL, "records")].n == results.questions.height == 30


def test_kinds_that_stay_apart_have_rows_of_their_own_and_are_in_no_overall_number() -> None:
    base = build_results()
    whole, without = summarise(base).estimates, summarise(replace(base, apart=("temporal",))).estimates
    cell = Cell("hybrid@k2", "temporal", PRIMARY)
    assert whole[cell] == without[cell]
    overall = Cell("hybrid@k2", ALL, PRIMARY)
    assert without[overall].n == whole[overall].n - whole[cell].n > 0


def test_a_mean_and_its_clustered_interval_are_as_computed_by_hand() -> None:
    """Conversation a: 1 of 2, b: 0 of 2; two draws give 0, 1/4 or 1/2, the ends a quarter of the time."""
    made = two_arms({"hybrid": [1.0, 0.0, 0.0, 0.0], "bm25": [None] * 4}, conversations=["a", "a", "b", "b"])
    found = summarise(made).estimates[Cell("hybrid@k10", ALL, PRIMARY)]
    assert (found.value, found.n, found.clusters) == (0.25, 4, 2)
    assert (found.cluster_low, found.cluster_high) == (0.0, 0.5)


def test_strict_counts_what_was_not_judged_as_wrong_and_judged_leaves_it_out() -> None:
    base = build_results()
    frame = base.verdicts.filter(pl.col("arm") == "hybrid@k2", pl.col("judge") == JUDGES[0])
    ids = frame["question_id"].to_list()
    scores = [1.0, 0.5, None, 1.0]  # the last was parsed from a reply that its status calls a failure
    own = pl.DataFrame(
        {
            "arm": ["hybrid@k2"] * 4,
            "question_id": ids[:4],
            "judge": [JUDGES[0]] * 4,
            "status": ["ok", "ok", "missing", "parse_failed"],
            "score": scores,
        }
    )
    found = summarise(replace(base, verdicts=own)).estimates
    strict = found[Cell("hybrid@k2", ALL, f"{JUDGES[0]}_strict")]
    judged = found[Cell("hybrid@k2", ALL, f"{JUDGES[0]}_judged")]
    assert (strict.value, strict.n) == (1.5 / 4, 4)
    assert (judged.value, judged.n) == (1.5 / 2, 2)


def test_an_arm_that_nobody_has_judged_has_no_score_and_not_0() -> None:
    base = build_results()
    never = pl.when(pl.col("arm") == "hybrid@k2").then(pl.lit("missing")).otherwise("status").alias("status")
    made = replace(base, verdicts=base.verdicts.with_columns(never, pl.when(never != "missing").then("score")))
    found = summarise(made).estimates
    strict = f"{JUDGES[0]}_strict"
    assert (found[Cell("hybrid@k2", ALL, strict)].value, found[Cell("hybrid@k2", ALL, strict)].n) == (None, 0)
    assert found[Cell("bm25@k2", ALL, strict)] == summarise(base).estimates[Cell("bm25@k2", ALL, strict)]


def test_latency_is_median_and_95th_percentile_of_known_cells() -> None:
    base = build_results(readers=("hybrid",), budgets=(2,), full_context=False, conversations=1, questions=5)
    made = replace(base, cells=base.cells.with_columns(latency_ms=pl.Series([1.0, 2.0, None, 4.0, 11.0])))
    found = summarise(made).estimates
    assert found[Cell("hybrid@k2", ALL, "latency_ms_median")].value == 3.0
    assert found[Cell("hybrid@k2", ALL, "latency_ms_p95")].value == pytest.approx(9.95)
    assert found[Cell("hybrid@k2", ALL, "latency_ms_p95")].n == 4


def test_arms_of_different_budgets_are_never_in_one_group(results: Results) -> None:
    groups = summarise(results).groups
    assert [g.budget for g in groups] == ["k2", "k5", "all"]
    for group in groups:
        assert {arm.budget for arm in group.arms} == {group.budget}


def test_arms_that_use_gold_are_outside_every_ranking(results: Results) -> None:
    statistics = summarise(results)
    for group in statistics.groups:
        assert not any(arm.uses_gold for arm in group.ranked)
        for each in statistics.measures:
            for kind in (ALL, *KINDS):
                assert not any(label.startswith("oracle") for label in statistics.best(group, kind, each.name))


def test_ranked_arms_come_best_first_and_unknown_ones_last() -> None:
    made = two_arms(
        {"mmr": [None] * 4, "bm25": [0.0, 0.0, 1.0, 0.0], "hybrid": [1.0, 1.0, 0.0, 0.0]},
        conversations=["a", "a", "b", "b"],
    )
    (group,) = summarise(made).groups
    assert [arm.reader for arm in group.ranked] == ["hybrid", "bm25", "mmr"]


@pytest.mark.parametrize(
    ("bm25", "best"),
    [
        ([0.0, 0.0, 0.0, 1.0], {"hybrid@k10"}),
        ([1.0, 0.0, 0.0, 1.0], set()),  # all equal: nobody is best
        ([1.0, 1.0, 1.0, None], set()),  # another denominator: no ranking
    ],
)
def test_best_is_marked_only_where_a_ranking_is_fair(bm25: list[float | None], best: set[str]) -> None:
    made = two_arms({"hybrid": [1.0, 1.0, 0.0, 0.0], "bm25": bm25}, conversations=["a", "a", "b", "b"])
    statistics = summarise(made)
    assert statistics.best(statistics.groups[0], ALL, PRIMARY) == best


def test_an_arm_without_a_budget_is_never_best(results: Results) -> None:
    statistics = summarise(results)
    assert statistics.best(statistics.groups[-1], ALL, PRIMARY) == frozenset()


def test_a_baseline_shares_budget_and_store() -> None:
    arms = [
        Arm("hybrid@k10", "hybrid", "k10", "10", "turns", False),
        Arm("hybrid(weight=0.3)@k10", "hybrid", "k10", "10", "turns", False),
        Arm("mmr@k10", "mmr", "k10", "10", "turns", False),
        Arm("mmr@k20", "mmr", "k20", "20", "turns", False),
        Arm("mmr@k10:facts", "mmr", "k10", "10", "facts", False),
    ]
    assert baseline_of(arms) == {"hybrid(weight=0.3)@k10": "hybrid@k10", "mmr@k10": "hybrid@k10"}


def test_adding_an_arm_moves_no_other_arms_interval() -> None:
    column = [1.0, 0.0, 1.0, 0.0, 1.0, 1.0]
    one = two_arms({"hybrid": column}, conversations=list("aabbcc"))
    two = two_arms({"hybrid": column, "bm25": column[::-1]}, conversations=list("aabbcc"))
    cell = Cell("hybrid@k10", ALL, PRIMARY)
    assert summarise(one).estimates[cell] == summarise(two).estimates[cell]


def test_a_cell_twice_or_of_no_known_question_is_refused(results: Results) -> None:
    with pytest.raises(ValueError, match="271 rows hold 270 distinct keys"):
        summarise(replace(results, cells=pl.concat([results.cells, results.cells.head(1)])))
    stray = results.cells.head(1).with_columns(question_id=pl.lit("conv-9/q0"))
    with pytest.raises(ValueError, match="hybrid@k2 / conv-9/q0"):
        summarise(replace(results, cells=pl.concat([results.cells, stray])))


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ("k10", "10 records"),
        ("k1", "1 record"),
        ("t2000", "2,000 tokens"),
        ("C6+10", "C6 after 10 records"),
        ("all", "no budget"),
    ],
)
def test_bounds_are_said_in_words(bound: str, words: str) -> None:
    assert budget_words(Arm("r@b", "r", "b", "b", "turns", False, bound)) == words


def test_arms_are_grouped_by_what_bounds_the_whole_evidence_and_mixed_only_on_demand() -> None:
    made = two_arms({"hybrid": [1.0, 0.0], "bfr_text": [1.0, 1.0], "bm25": [0.0, 0.0]}, conversations=["a", "b"])
    bounds = {"hybrid": "k40", "bfr_text": "k40", "bm25": "C6+10"}
    made = replace(made, arms=[replace(arm, bound=bounds[arm.reader]) for arm in made.arms])
    statistics = summarise(made)
    assert [(group.unit, [arm.reader for arm in group.ranked]) for group in statistics.groups] == [
        ("records", ["bfr_text", "hybrid"]),
        ("completion", ["bm25"]),
    ]
    assert statistics.baselines == {"bfr_text@k10": "hybrid@k10"}
    mixed = mixed_group(statistics)
    assert [arm.reader for arm in mixed.ranked] == ["bfr_text", "hybrid", "bm25"]


def test_stopped_cells_are_counted_by_arm() -> None:
    made = two_arms({"hybrid": [1.0, 0.0, 1.0], "bm25": [0.0, 0.0, 0.0]}, conversations=["a", "b", "b"])
    halted = pl.when(pl.col("arm") == "bm25@k10").then(pl.lit("over_budget")).otherwise(pl.lit("budget"))
    found = summarise(replace(made, cells=made.cells.with_columns(stop_reason=halted))).estimates
    assert found[Cell("bm25@k10", ALL, "over_budget")].value == 3
    assert found[Cell("hybrid@k10", ALL, "over_budget")].value == 0


def test_asks_and_resident_tokens_are_measures_only_where_some_arm_has_them() -> None:
    made = two_arms({"hybrid": [1.0, 0.0]}, conversations=["a", "b"])
    assert "asks" not in {measure.name for measure in summarise(made).measures}
    asked = replace(made, cells=made.cells.with_columns(asks=pl.Series([2, 4])))
    assert summarise(asked).estimates[Cell("hybrid@k10", ALL, "asks")].value == 3
    assert "resident" not in {measure.name for measure in summarise(asked).measures}
    shown = replace(made, cells=made.cells.with_columns(resident=pl.Series([30, 31])))
    assert summarise(shown).estimates[Cell("hybrid@k10", ALL, "resident")].value == 30.5


def test_a_series_is_the_label_without_its_budget() -> None:
    assert series_of(Arm("mmr(trade=0.7)@k10:facts", "mmr", "k10", "10", "facts", False)) == "mmr(trade=0.7):facts"

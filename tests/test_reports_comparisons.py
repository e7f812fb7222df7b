"""Paired comparisons: what is compared, in which families, over which questions."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from reports.comparison_tables import kinds_table, paired_tables, subset_tables
from reports.comparisons import Comparison, Contrast, compare, compare_runs, comparison_rows
from reports.findings import findings
from reports.grid import ALL
from reports.measures import known_metrics
from reports.rates import AUDITED, CITED, EVERY, rate_rows, rates
from reports.results import Results
from reports.significance import holm
from reports.tables import PRIMARY, Cell, summarise
from tests.report_fixture import JUDGES, KINDS, build_results, two_arms

FOUR = ["a", "a", "b", "b"]


def of(results: Results, arm: str = "bm25@k10", kind: str = ALL, subset: str = EVERY) -> Comparison:
    return compare(results)[Contrast(arm, "hybrid@k10", kind, PRIMARY, subset)]


def test_differences_are_paired_over_questions_defined_for_both() -> None:
    found = of(two_arms({"hybrid": [1.0, 1.0, 0.0, 1.0], "bm25": [0.0, 1.0, 0.0, None]}, conversations=FOUR))
    difference = found.difference
    assert (difference.n, found.before, found.after) == (3, pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert difference.value == pytest.approx(-1 / 3)
    assert difference.low is not None and difference.high is not None
    assert -1 <= difference.low <= -1 / 3 <= difference.high <= 0


def test_equal_arms_differ_by_exactly_nothing() -> None:
    column = [1.0, 0.0, 1 / 3, 1.0]
    found = of(two_arms({"hybrid": column, "bm25": column}, conversations=FOUR))
    difference = found.difference
    assert (difference.low, difference.value, difference.high, difference.cluster_low) == (0.0, 0.0, 0.0, 0.0)
    assert (found.p, found.cluster_p, found.verdict, found.d_z, found.detectable) == (1.0, 1.0, "equal", None, None)


@pytest.mark.parametrize("without", ["questions", "overall", "audited"])
def test_where_no_question_is_left_nothing_is_compared(without: str) -> None:
    base = two_arms({"hybrid": [1.0, 0.0, 0.0, 1.0], "bm25": [1.0, 1.0, 0.0, 1.0]}, conversations=FOUR)
    if without == "questions":
        made = replace(base, questions=base.questions.clear(), cells=base.cells.clear())
    elif without == "overall":
        made = replace(base, apart=base.kinds)
    else:
        made = replace(base, wrong_labels=dict.fromkeys(base.questions["question_id"], "answer"))
    found = of(made, subset=AUDITED if without == "audited" else EVERY)
    assert (found.difference.n, found.p, found.cluster_p, found.holm, found.verdict) == (0, None, None, None, "unknown")


def test_a_rate_has_the_exact_test_and_the_effect_sizes_of_rates() -> None:
    """9 won, 2 lost, 3 both, 6 neither."""
    hybrid = [0.0] * 9 + [1.0] * 2 + [1.0] * 3 + [0.0] * 6
    bm25 = [1.0] * 9 + [0.0] * 2 + [1.0] * 3 + [0.0] * 6
    found = of(two_arms({"hybrid": hybrid, "bm25": bm25}, conversations=list("abcd") * 5))
    assert (found.test, found.wins, found.losses, found.odds_ratio, found.d_z) == ("mcnemar", 9, 2, 4.5, None)
    assert found.p == pytest.approx(stats.binomtest(9, 11).pvalue)
    assert found.cohen_h == pytest.approx(2 * (np.arcsin(np.sqrt(0.6)) - np.arcsin(np.sqrt(0.25))))
    column = np.array(bm25) - np.array(hybrid)
    assert found.detectable == pytest.approx((stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) * stats.sem(column))
    sums = [column[i::4].sum() for i in range(4)]
    signs = np.array(np.meshgrid(*[[1, -1]] * 4)).reshape(4, -1)
    assert found.cluster_p == (np.abs(sums @ signs) >= abs(sum(sums))).mean()


def test_a_score_has_the_permutation_test_and_the_effect_size_of_scores() -> None:
    rng = np.random.default_rng(3)
    hybrid, bm25 = rng.random(12), rng.random(12)
    made = two_arms({"hybrid": hybrid.tolist(), "bm25": bm25.tolist()}, conversations=[f"c{i % 3}" for i in range(12)])
    found = of(made)
    column = bm25 - hybrid
    theirs = stats.permutation_test(
        (bm25, hybrid), lambda a, b: np.mean(a - b), permutation_type="samples", n_resamples=np.inf
    )
    assert (found.test, found.cohen_h, found.odds_ratio) == ("sign-flip", None, None)
    assert found.p == pytest.approx(theirs.pvalue)
    assert found.d_z == pytest.approx(column.mean() / column.std(ddof=1))


def test_families_are_the_arms_of_a_measure_the_kinds_of_a_pair_and_the_declared_one_alone() -> None:
    found = compare(replace(build_results(), primary=("hybrid@k5", "bm25@k5")))
    families: dict[str, list[Contrast]] = {}
    for each in found.values():
        families.setdefault(each.family, []).append(each.contrast)
    assert families["declared"] == [Contrast("bm25@k5", "hybrid@k5", ALL, PRIMARY)]
    arms = families["arms against hybrid@k2, complete_evidence"]
    assert [each.arm for each in arms] == ["bm25@k2", "mem_pursuit@k2"]
    kinds = families["kinds of bm25@k5 against hybrid@k5, complete_evidence"]
    assert sorted(each.kind for each in kinds) == sorted(KINDS)
    ps = {found[each].p: found[each].holm for each in arms}
    low, high = sorted(p for p in ps if p is not None)
    assert (ps[low], ps[high]) == (pytest.approx(min(1, 2 * low)), pytest.approx(max(high, min(1, 2 * low))))


def test_what_is_declared_beside_the_first_comparison_is_a_family_of_its_own_and_told() -> None:
    beside = [("mem_pursuit@k2", "bm25@k2", "gold_hit"), ("bm25@k2", "hybrid@k2", "gold_hit")]
    made = replace(build_results(), primary=("hybrid@k5", "bm25@k5"), secondary=beside)
    found = compare(made)
    own = [found[Contrast(arm, baseline, ALL, measure)] for arm, baseline, measure in beside]
    assert [(each.family, each.tests) for each in own] == [("declared beside it", 2)] * 2
    assert [each.holm for each in own] == holm([each.p for each in own])
    assert found[Contrast("bm25@k5", "hybrid@k5", ALL, PRIMARY)].tests == 1
    told = [each for each in findings(made, summarise(made), found) if each.topic == "declared beside it"]
    assert [each.text.partition(" finds a gold turn")[0] for each in told] == [baseline for _, baseline, _ in beside]
    tables = paired_tables(made, summarise(made), found, "evidence")
    (table,) = (each for each in tables if each.caption == "Gold Hit")
    assert [block.heading for block in table.blocks if "declared" in block.heading] == ["Against bm25@k2, as declared"]


def test_an_arm_that_uses_gold_is_compared_with_nobody() -> None:
    assert not any("oracle" in label for each in compare(build_results()) for label in (each.arm, each.baseline))


def test_a_difference_is_above_only_if_holms_p_says_so_too() -> None:
    found = of(two_arms({"hybrid": [0.0] * 20, "bm25": [1.0] * 8 + [0.0] * 12}, conversations=list("abcd") * 5))
    assert found.verdict == "above"
    assert replace(found, holm=0.051).verdict == "unclear"


def test_wrong_labels_leave_out_answers_then_citations_too() -> None:
    made = two_arms({"hybrid": [0.0, 0.0, 1.0, 1.0], "bm25": [1.0, 0.0, 0.0, 1.0]}, conversations=FOUR)
    made = replace(made, wrong_labels={"q0": "answer", "q2": "citation", "elsewhere": "answer"})
    assert [of(made, subset=subset).difference.value for subset in (EVERY, AUDITED, CITED)] == [0.0, -1 / 3, 0.0]
    shares = rates(made)[Cell("hybrid@k10", ALL, PRIMARY)]
    assert [(shares[each].value, shares[each].n) for each in shares] == [(0.5, 4), (2 / 3, 3), (0.5, 2)]
    theirs = stats.binomtest(2, 3).proportion_ci(method="wilson")
    assert (shares[AUDITED].low, shares[AUDITED].high) == pytest.approx((theirs.low, theirs.high))
    assert Contrast("bm25@k10", "hybrid@k10", ALL, PRIMARY, AUDITED) not in compare(replace(made, wrong_labels={}))


def test_strict_and_judged_comparisons_have_their_own_denominators() -> None:
    found = compare(build_results())
    strict, judged = (
        found[Contrast("bm25@k2", "hybrid@k2", ALL, f"{JUDGES[1]}_{over}")] for over in ("strict", "judged")
    )
    assert strict.difference.n == 30 > judged.difference.n > 20


def test_the_same_runs_do_not_differ_and_changed_cells_do() -> None:
    one = two_arms({"hybrid": [0.0, 0.0, 1.0, 1.0], "bm25": [1.0, 0.0, 0.0, 1.0]}, conversations=FOUR)
    changed = pl.when(pl.col("question_id") == "q1").then(1.0).otherwise("complete_evidence")
    other = replace(one, name="other", cells=one.cells.with_columns(complete_evidence=changed))
    key = Contrast("hybrid@k10", "hybrid@k10 of fixture", ALL, PRIMARY)
    assert compare_runs(one, one)[key].verdict == "equal"
    found = compare_runs(one, other)[key]
    assert (found.before, found.after, found.wins, found.losses, found.tests) == (0.5, 0.75, 1, 0, 2)


def test_runs_are_compared_on_their_common_questions() -> None:
    one = two_arms({"hybrid": [0.0, 0.0, 1.0, 1.0]}, conversations=FOUR)
    other = two_arms({"hybrid": [1.0, 0.0, 1.0], "bm25": [1.0] * 3}, conversations=FOUR[:3])
    found = compare_runs(one, other)
    assert {each.arm for each in found} == {"hybrid@k10"}
    assert found[Contrast("hybrid@k10", "hybrid@k10 of fixture", ALL, PRIMARY)].difference.n == 3
    moved = two_arms({"hybrid": [1.0, 0.0, 1.0]}, conversations=["b", "a", "b"])
    with pytest.raises(ValueError, match="same conversation and kind"):
        compare_runs(one, moved)


def test_every_comparison_and_rate_is_a_row() -> None:
    made = replace(build_results(), wrong_labels={"conv-0/q1": "answer"})
    found = compare(made)
    rows = comparison_rows(found)
    assert len(rows) == len(found)
    assert rows.filter(pl.col("subset") == AUDITED)["kind"].unique().to_list() == [ALL]
    first = next(iter(found.values()))
    assert rows.row(0, named=True)["bca_low"] == first.bca[0]
    assert len(rate_rows(rates(made))) == len(made.arms) * (len(known_metrics(made)) + 2 * len(JUDGES)) * 2
    assert comparison_rows({}).is_empty()


def test_tables_show_the_declared_pair_by_kind_and_audited_questions_only_where_there_are_any() -> None:
    plain = build_results()
    statistics, found = summarise(plain), compare(plain)
    assert kinds_table(plain, statistics, found) is None
    assert subset_tables(plain, statistics, found, rates(plain), "evidence") == []
    made = replace(plain, primary=("hybrid@k2", "hybrid@k5"), wrong_labels={"conv-0/q1": "answer"})
    statistics, found = summarise(made), compare(made)
    first, *_ = paired_tables(made, statistics, found, "evidence")
    assert [row.label for block in first.blocks for row in block.rows][-1] == "hybrid@k5"
    assert first.blocks[-1].rows[0].note == "declared"
    kinds = kinds_table(made, statistics, found)
    assert kinds is not None and [row.label for row in kinds.blocks[0].rows] == list(KINDS)
    audited, *_ = subset_tables(made, statistics, found, rates(made), "evidence")
    assert [head.title for head in audited.heads][:2] == ["All questions", "Wrong answers left out"]

"""Sentences of a report claim what their numbers carry and no more."""

from dataclasses import replace

import polars as pl
import pytest

from reports.comparisons import compare, verdict
from reports.findings import Finding, chance, findings, percent, points
from reports.results import Results
from reports.tables import Estimate, summarise
from tests.report_fixture import build_results, sealing, two_arms


def everything(results: Results) -> tuple[Finding, ...]:
    return findings(results, summarise(results), compare(results))


def said(results: Results, kind: str) -> str:
    return " ".join(each.text for each in everything(results) if each.kind == kind)


@pytest.mark.parametrize(
    ("low", "high", "cluster_low", "cluster_high", "expected"),
    [
        (0.1, 0.2, 0.05, 0.3, "above"),
        (-0.2, -0.1, -0.3, -0.05, "below"),
        (0.1, 0.2, -0.01, 0.3, "unclear"),  # the questions say so, the conversations do not
        (-0.1, 0.2, -0.1, 0.2, "unclear"),
        (0.0, 0.2, 0.1, 0.2, "unclear"),  # an interval that touches 0 reaches 0
        (1e-17, 0.2, 0.1, 0.2, "unclear"),
        (0.0, 0.0, 0.0, 0.0, "equal"),
        (0.1, 0.2, None, None, "above"),
        (None, None, None, None, "unknown"),
    ],
)
def test_a_difference_is_claimed_only_if_no_interval_reaches_zero(
    low: float, high: float, cluster_low: float | None, cluster_high: float | None, expected: str
) -> None:
    assert verdict(Estimate(0.1, low, high, cluster_low, cluster_high, 50, 5)) == expected


def test_the_leader_and_its_difference_are_said_with_both_intervals() -> None:
    rows = {"hybrid": [1.0, 0.0] * 20, "bm25": [1.0, 1.0, 1.0, 0.0] * 10}
    text = said(two_arms(rows, conversations=[f"c{i % 8}" for i in range(40)]), "result")
    assert "bm25@k10 hands over all gold turns most often: on 75.0 % of 40 questions (95 % interval" in text
    assert "hybrid@k10 finds all gold turns on 50.0 % of 40 questions, bm25@k10 on 75.0 %: difference +25.0" in text
    assert "over 8 conversations; p = 0.0020, exact McNemar" in text  # 10 won, none lost: 2 / 2**10


def test_on_a_sealed_split_every_sentence_of_an_undeclared_comparison_says_exploratory() -> None:
    rows = {"hybrid": [1.0, 0.0] * 20, "bm25": [1.0, 1.0, 1.0, 0.0] * 10, "mmr": [0.0] * 40}
    results = two_arms(rows, conversations=[f"c{i % 8}" for i in range(40)])
    sealed = replace(results, sealing=sealing(declared=[("bm25@k10", "hybrid@k10", "complete_evidence")]))
    pairs = list(zip(everything(results), everything(sealed), strict=True))
    marked = [before.text for before, after in pairs if after.text == f"Exploratory: {before.text}"]
    assert [before.text for before, after in pairs if after.text != before.text] == marked
    assert len(marked) == 2
    assert marked[0].startswith("bm25@k10 hands over all gold turns most often")  # among three arms
    assert marked[1] == "Against hybrid@k10, mmr@k10 is shown to be below it."


def test_each_arm_is_set_against_the_baseline_of_its_own_store() -> None:
    rows = {"hybrid": [1.0, 1.0, 1.0, 0.0] * 10, "bm25": [1.0, 0.0] * 20}
    one = two_arms(rows, conversations=[f"c{i % 8}" for i in range(40)])
    arms = [*one.arms, *(replace(arm, label=f"{arm.label}:facts", store="facts") for arm in one.arms)]
    two = replace(one, arms=arms, cells=pl.concat([one.cells, one.cells.with_columns(pl.col("arm") + ":facts")]))
    text = said(two, "result")
    assert "Against hybrid@k10:facts, bm25@k10:facts is not shown to differ from it." in text
    assert "Against hybrid@k10, " not in text


def test_an_interval_without_width_is_not_said() -> None:
    text = said(two_arms({"hybrid": [1.0] * 6, "bm25": [1.0] * 6}, conversations=list("aabbcc")), "result")
    assert "hybrid@k10 hands over all gold turns on 100.0 % of 6 questions; no ranking is given." in text
    assert "difference 0.0 points (p = 1, exact McNemar" in text
    assert "95 % interval" not in text


def test_an_interval_that_includes_zero_concludes_nothing() -> None:
    rows = {"hybrid": [1.0, 0.0, 1.0, 0.0] * 5, "bm25": [0.0, 1.0, 1.0, 1.0] * 5}
    text = said(two_arms(rows, conversations=[f"c{i // 4}" for i in range(20)]), "result")
    assert "A difference is not shown: the interval includes 0" in text
    assert "no difference" not in text


def test_a_difference_that_many_comparisons_explain_is_not_shown() -> None:
    """Eight wins and no loss, p = 1/128, beside seven other arms: Holm's p is 1/16."""
    base = [1.0] * 4 + [0.0] * 36
    rows = {"hybrid": base, "bm25": [1.0] * 12 + [0.0] * 28}
    conversations = [f"c{i % 8}" for i in range(40)]
    assert "bm25@k10 is shown to be above hybrid@k10" in said(two_arms(rows, conversations=conversations), "result")
    many = rows | dict.fromkeys(("mmr", "dpp", "dense", "random", "xquad", "coverage", "locality"), base)
    text = said(two_arms(many, conversations=conversations), "result")
    assert "Holm p = 0.062 among 8 arms" in text
    assert "A difference is not shown: no interval reaches 0, but the p is above 0.05" in text


def test_the_declared_comparison_comes_first_and_again_without_wrong_labels() -> None:
    rows = {"hybrid": [1.0, 0.0] * 20, "bm25": [1.0, 1.0, 1.0, 0.0] * 10}
    made = two_arms(rows, conversations=[f"c{i % 8}" for i in range(40)])
    made = replace(made, primary=("hybrid@k10", "bm25@k10"), wrong_labels={"q1": "answer", "q2": "citation"})
    found = everything(made)
    assert [each.topic for each in found[:3]] == ["declared comparison"] * 3
    assert "gold answer is known to be wrong, 39 are left" in found[1].text
    assert "gold turns are known to be wrong as well, 38 are left" in found[2].text
    assert "1 are known to have a wrong gold answer and 1 more wrong gold turns alone" in said(made, "limit")


def test_where_nothing_is_held_nothing_is_said_of_means() -> None:
    made = two_arms({"hybrid": [None, None], "bm25": [None, None]}, conversations="ab")
    assert said(made, "limit") == "No cell of any arm is held for the 2 questions with gold: nothing is measured yet."


def test_a_comparison_declared_on_a_metric_that_no_cell_has_concludes_nothing() -> None:
    made = two_arms({"hybrid": [1.0, 0.0], "bm25": [1.0, 1.0]}, conversations="ab")
    declared = replace(made, primary=("hybrid@k10", "bm25@k10"), metric="user_recall_any")
    assert everything(declared)[0].text.endswith(
        "no question in common on which both are measured, so nothing is concluded."
    )


def test_few_conversations_bound_their_own_p() -> None:
    assert "No p by conversation can be below 0.25." in said(build_results(), "limit")
    rows = {"hybrid": [1.0, 0.0] * 20, "bm25": [1.0, 1.0] * 20}
    assert "No p" not in said(two_arms(rows, conversations=[f"c{i}" for i in range(40)]), "limit")


def test_an_arm_that_uses_gold_leads_nothing_and_is_called_a_ceiling() -> None:
    text = said(build_results(), "result")
    assert "oracle@k2 hands over" not in text
    assert "oracle@k2 differs" not in text
    assert "With gold in hand, oracle@k2 reaches" in text


def test_a_reader_without_a_budget_is_compared_with_nobody() -> None:
    found = [each for each in everything(build_results()) if "full_context" in each.text]
    assert [each.topic for each in found] == ["no budget"]
    assert "differs" not in found[0].text


def test_few_conversations_missing_cells_and_unjudged_cells_are_limits() -> None:
    text = said(build_results(), "limit")
    assert "come from 3 conversations" in text
    assert "mem_pursuit@k2 (1)" in text
    assert "6 of 30 questions name no gold turn" in text
    assert "lexical_match has no score for" in text


def test_one_conversation_says_nothing_about_others() -> None:
    assert "one conversation" in said(build_results(conversations=1), "limit")


def test_offline_scores_are_set_apart_from_papers() -> None:
    results = build_results()
    assert "no paper's judged accuracy" in said(results, "limit")
    assert "offline" not in said(replace(results, offline=False), "limit")


def test_a_budget_that_holds_the_whole_store_is_pointed_out() -> None:
    assert "covers the whole store of 2 conversations" in said(
        build_results(conversations=2, sessions=1, turns=5), "limit"
    )
    assert "covers the whole store" not in said(build_results(), "limit")


def test_no_arms_at_all_give_no_result_and_no_crash() -> None:
    base = build_results()
    empty = replace(
        base,
        arms=(),
        cells=base.cells.clear(),
        verdicts=base.verdicts.clear(),
        selections=base.selections.clear(),
    )
    assert said(empty, "result") == ""


def test_numbers_are_said_plainly() -> None:
    assert [percent(0.5956), percent(None)] == ["59.6 %", "–"]
    shown = [points(each) for each in (-0.233, 0.05, 0.0, -0.0004, None)]
    assert shown == ["−23.3", "+5.0", "0.0", "0.0", "–"]
    assert [chance(p) for p in (1e-9, 0.00213, 0.0213, 1.0)] == ["< 0.0001", "= 0.0021", "= 0.021", "= 1"]


def test_kinds_that_stay_apart_are_named() -> None:
    text = said(replace(build_results(), apart=("temporal",)), "limit")
    assert "9 questions of kind temporal have rows of their own" in text

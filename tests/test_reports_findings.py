"""Sentences of a report claim what their numbers carry and no more."""

from dataclasses import replace

import pytest

from reports.findings import findings, percent, points, verdict
from reports.results import Results
from reports.tables import Estimate, summarise
from tests.report_fixture import build_results, two_arms


def said(results: Results, kind: str) -> str:
    return " ".join(each.text for each in findings(results, summarise(results)) if each.kind == kind)


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
    assert "bm25@k10 differs from hybrid@k10 by +25.0 points" in text
    assert "over 8 conversations" in text


def test_an_interval_that_includes_zero_concludes_nothing() -> None:
    rows = {"hybrid": [1.0, 0.0, 1.0, 0.0] * 5, "bm25": [0.0, 1.0, 1.0, 1.0] * 5}
    text = said(two_arms(rows, conversations=[f"c{i // 4}" for i in range(20)]), "result")
    assert "the interval includes 0, so neither is shown to be better" in text


def test_an_arm_that_uses_gold_leads_nothing_and_is_called_a_ceiling() -> None:
    text = said(build_results(), "result")
    assert "oracle@k2 hands over" not in text
    assert "oracle@k2 differs" not in text
    assert "With gold in hand, oracle@k2 reaches" in text


def test_a_reader_without_a_budget_is_compared_with_nobody() -> None:
    found = [each for each in findings(build_results(), summarise(build_results())) if "full_context" in each.text]
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


def test_kinds_that_stay_apart_are_named() -> None:
    text = said(replace(build_results(), apart=("temporal",)), "limit")
    assert "9 questions of kind temporal have rows of their own" in text

"""Figures: what they draw, and that they are drawn offline and safely."""

from dataclasses import replace

import polars as pl

from reports.figures import coverage, coverage_data, latency, scores
from reports.tables import summarise
from tests.report_fixture import build_results


def test_every_arm_and_budget_has_its_point_and_band() -> None:
    results = build_results()
    data = coverage_data(results, summarise(results))
    assert data.height == len(results.arms) * 3
    assert set(data["series"]) == {"hybrid", "bm25", "mem_pursuit", "oracle (uses gold)", "full_context"}
    assert data.select((pl.col("low") <= pl.col("value")).all()).item()
    assert list(dict.fromkeys(data.sort("order")["budget"])) == ["2 records", "5 records", "no budget"]


def test_budgets_of_unlike_units_are_not_joined_by_a_line() -> None:
    base = build_results(full_context=False)
    arms = [replace(a, k="t500", budget="t500") if a.budget == "k5" else a for a in base.arms]
    data = coverage_data(base, summarise(replace(base, arms=arms)))
    assert data.filter(pl.col("metric") == "gold_hit")["part"].n_unique() == data["series"].n_unique() * 2


def test_one_conversation_falls_back_to_bands_over_questions() -> None:
    results = build_results(conversations=1)
    assert coverage_data(results, summarise(results))["low"].null_count() == 0


def test_nothing_to_draw_is_no_figure() -> None:
    base = build_results()
    results = replace(base, cells=base.cells.clear(), verdicts=base.verdicts.clear())
    statistics = summarise(results)
    assert [draw(results, statistics) for draw in (coverage, scores, latency)] == [None, None, None]

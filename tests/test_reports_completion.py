"""What completion added, what it cost and where it holds are told as the tables have it."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from reports.completion import completed
from reports.completion_tables import completion_tables
from reports.folds import by_fold, fold_rows
from reports.grid import ALL
from reports.published import published
from reports.results import Arm
from reports.tables import Cell, summarise
from reports.traces import steps_of
from storage.records import Gold
from tasks.metrics import evidence_metrics
from tests.report_fixture import build_results, step, traced, two_arms


def test_the_first_set_is_measured_as_the_metrics_measure_it() -> None:
    results = traced(build_results(readers=("hybrid", "bm25"), budgets=(5,), full_context=False), 3)
    sources = {row["id"]: row["source_turn_ids"] for row in results.records.iter_rows(named=True)}
    sessions = dict(zip(results.records["id"], results.records["session_id"], strict=True))
    gold = {row["question_id"]: row["gold_turn_ids"] for row in results.questions.iter_rows(named=True)}
    for found in completed(results):
        measured = []
        for _, question, ids, *_ in results.selections.filter(pl.col("arm") == found.arm.label).iter_rows():
            turns = gold[question]
            known = Gold(question, "", tuple(turns), tuple({sessions[turn] for turn in turns}), ())
            measured.append(evidence_metrics(known, ids[:3], sources, sessions, {}))
        for name in ("gold_hit", "complete_evidence"):
            values = [each[name] for each in measured if each[name] is not None]
            assert found.before[name].value == pytest.approx(np.mean(values))
            assert found.before[name].n == len(values)
        assert found.first_records == 3


def test_after_completion_has_the_interval_of_the_tables_and_gains_are_paired() -> None:
    results = traced(build_results(readers=("hybrid", "bm25"), budgets=(5,), full_context=False), 2)
    statistics = summarise(results)
    for found in completed(results):
        for name, after in found.after.items():
            assert after == statistics.estimates[Cell(found.arm.label, ALL, name)]
            before = found.before[name]
            assert after.value is not None and before.value is not None
            assert found.gained[name].value == pytest.approx(after.value - before.value)
            assert found.gained[name].n == after.n


def test_a_run_in_which_nothing_completes_has_no_table() -> None:
    assert completion_tables(build_results()) == []
    assert completion_tables(traced(build_results(budgets=(5,)), 0))


def test_published_figures_stand_beside_arms_that_begin_as_the_paper_s_do() -> None:
    said = published()
    arm = Arm("bfr_mv(init=fca_ms)@C6", "bfr_mv(init=fca_ms)", "C6", "C6", "turns", False)
    assert said.of(said.budgets, "locomo", arm) == {"calls": 5.99, "records": 39.88, "complete_evidence": 62.0}
    assert said.of(said.completion, "locomo", arm) == {"before": 54.8, "after": 78.1}
    assert said.of(said.budgets, "beam", arm) == {}
    assert said.of(said.budgets, "locomo", replace(arm, reader="bfr_mv")) == {}


def test_made_up_conversations_stand_beside_no_published_completion() -> None:
    made = traced(build_results(readers=("hybrid", "bm25"), budgets=(5,), full_context=False), 3)
    label, reader = "bfr_mv(init=fca_ms)@C6", "bfr_mv(init=fca_ms)"
    arms = [replace(a, label=label, reader=reader, budget="C6") if a.reader == "bm25" else a for a in made.arms]
    frames = {
        name: getattr(made, name).with_columns(pl.col("arm").replace({"bm25@k5": label}))
        for name in ("cells", "verdicts", "selections")
    }
    of_locomo = replace(made, arms=arms, **frames)
    made_up = replace(of_locomo, data="x")
    assert [completion_tables(run)[0].quotes for run in (of_locomo, made_up)] == [True, False]


def test_folds_are_parts_of_the_one_run() -> None:
    made = two_arms({"hybrid": [1.0, 0.0, 1.0, None], "bm25": [0.0, 0.0, 1.0, 1.0]}, conversations=list("aabc"))
    made = replace(made, folds=[["a"], ["b", "c"]])
    one, two = by_fold(made, ("complete_evidence",))
    cell = ("hybrid@k10", "complete_evidence")
    assert (one.found[cell].value, one.found[cell].n) == (0.5, 2)
    assert (two.found[cell].value, two.found[cell].n) == (1.0, 1)
    rows = fold_rows(made, ("complete_evidence",))
    assert rows.height == 4
    assert rows.filter((pl.col("arm") == "bm25@k10") & (pl.col("fold") == 2)).row(0)[2:] == (
        "b c",
        "complete_evidence",
        1.0,
        2,
    )


def test_steps_account_for_every_record_of_the_evidence() -> None:
    assert steps_of([], ["a", "b"]) == [step("select", "", ["a", "b"], ["a", "b"])]
    chosen = step("requirement", "R1", ["a", "x"], ["a", "x"])
    assert steps_of([chosen], ["b", "a"]) == [
        step("requirement", "R1", ["a", "x"], ["a"]),
        step("rest", "", ["b"], ["b"]),
    ]
    assert steps_of([step("init", "hybrid", ["a"], ["a"])], ["a"]) == [step("init", "hybrid", ["a"], ["a"])]

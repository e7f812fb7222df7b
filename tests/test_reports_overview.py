"""Figures at a glance show what the tables hold, leave out what cannot be compared, and are safe to open."""

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from reports.comparisons import compare
from reports.grid import ALL
from reports.overview_figures import Figure, overview
from reports.results import Results
from reports.tables import PRIMARY, Cell, Statistics, summarise
from tests.report_fixture import build_results

READERS = ("hybrid", "bm25", "dense", "mmr", "random", "oracle")


@pytest.fixture(scope="module")
def run() -> tuple[Results, Statistics]:
    results = build_results(readers=READERS, budgets=(2, 5, 9), samples=200)
    return results, summarise(results)


@pytest.fixture(scope="module")
def figures(run: tuple[Results, Statistics]) -> dict[str, Figure]:
    return {figure.name: figure for figure in overview(*run, compare(run[0]))}


def test_the_front_is_what_no_arm_beats_at_a_lower_or_equal_cost(figures: dict[str, Figure]) -> None:
    for _, own in figures["cost"].data.group_by("cost"):
        points = own.select("spent", "quality").rows()
        for spent, quality, front in own.select("spent", "quality", "front").iter_rows():
            beaten = any(s <= spent and q >= quality and (s, q) != (spent, quality) for s, q in points)
            assert (front is None) is beaten or (front is None and points.count((spent, quality)) > 1)


def test_arms_that_use_gold_stand_in_no_ranking(figures: dict[str, Figure]) -> None:
    for name in ("cost", "differences"):
        assert not figures[name].data.filter(pl.col("arm").str.starts_with("oracle")).height
    assert "oracle" not in figures["coverage"].reading


def test_differences_and_kinds_are_those_of_the_tables(
    run: tuple[Results, Statistics], figures: dict[str, Figure]
) -> None:
    results, statistics = run
    pairs = {each.arm: pair for each, pair in compare(results).items() if each[2:4] == (ALL, PRIMARY)}
    for row in figures["differences"].data.iter_rows(named=True):
        found = pairs[row["arm"]].difference
        assert (row["difference"], row["low"], row["cluster_high"]) == (found.value, found.low, found.cluster_high)
        assert row["side"] == pairs[row["arm"]].verdict
    kinds = figures["kinds"].data.filter(~pl.col("arm").str.contains("gold"))
    for arm, kind, value in kinds.select("arm", "kind", "value").iter_rows():
        assert value == statistics.estimates[Cell(arm, kind, PRIMARY)].value


def test_a_shared_state_is_one_that_another_arm_has_for_the_same_question(
    run: tuple[Results, Statistics], figures: dict[str, Figure]
) -> None:
    cells = (
        run[0].cells.filter(pl.col("evidence_hash").is_not_null()).select("arm", "question_id", "evidence_hash").rows()
    )
    for arm, states, shared in figures["reuse"].data.select("arm", "states", "shared").iter_rows():
        own = {(q, h) for a, q, h in cells if a == arm}
        others = {(q, h) for a, q, h in cells if a != arm}
        assert (states, shared) == (len(own), len(own & others))


def test_an_arm_known_for_a_part_of_the_questions_is_left_out_and_the_caption_says_so() -> None:
    base = build_results(readers=("hybrid", "bm25", "dense"), budgets=(5,), samples=100)
    lost = (pl.col("arm") == "bm25@k5") & (pl.col("conversation_id") == "conv-0")
    cells = base.cells.with_columns(pl.when(~lost).then(pl.col(PRIMARY)).alias(PRIMARY))
    results = replace(base, cells=cells)
    found = {figure.name: figure for figure in overview(results, summarise(results), compare(results))}
    for figure in found.values():
        assert "Left out: 1 arm known for less than 95 %" in figure.caption
        assert "bm25" not in figure.reading
    assert set(found["cost"].data["arm"]) == {"hybrid@k5", "dense@k5", "full_context@all"}


def test_pictures_take_the_pages_colour_fetch_nothing_and_have_a_reading(
    figures: dict[str, Figure], tmp_path: Path
) -> None:
    assert list(figures) == ["coverage", "cost", "latency", "differences", "kinds", "reuse", "scores", "agreement"]
    for figure in figures.values():
        assert (figure.svg.startswith("<svg") and "currentColor" in figure.svg) or figure.name == "kinds"
        assert not re.search(r'(href|src)\s*=\s*"(?!#)', figure.svg)
        assert figure.reading.endswith(".") and figure.data.height
    written = figures["reuse"].write(tmp_path)
    assert written["reuse.png"].read_bytes().startswith(b"\x89PNG")
    picture = written["reuse.svg"].read_text(encoding="utf-8")
    assert ElementTree.fromstring(picture)[0].attrib == {"width": "100%", "height": "100%", "fill": "white"}
    assert "white" not in figures["reuse"].svg


def test_labels_are_text_in_a_picture_and_never_markup() -> None:
    base = build_results(readers=("hybrid", "bm25"), budgets=(5,), samples=50, full_context=False)
    label = "<script>alert(1)</script>@k5"
    arms = [replace(arm, label=label) if arm.label == "bm25@k5" else arm for arm in base.arms]
    rename = pl.col("arm").replace({"bm25@k5": label})
    changed = replace(
        base, arms=arms, cells=base.cells.with_columns(rename), verdicts=base.verdicts.with_columns(rename)
    )
    for figure in overview(changed, summarise(changed), compare(changed)):
        assert "<script" not in figure.svg


def test_nothing_known_is_no_figure() -> None:
    base = build_results(samples=50)
    results = replace(base, cells=base.cells.clear(), verdicts=base.verdicts.clear())
    assert overview(results, summarise(results), compare(results)) == []

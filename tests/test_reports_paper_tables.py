"""Published numbers stand beside the run's own; what lacks says why; what is not alike has no difference."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.bench.grid import PUBLISHED_MEDIANS
from reports.coordinates import ABSENT, METRICS, STAND_FOR, Coordinates, label, read
from reports.paper_figures import paper_figures
from reports.paper_files import cell_rows, show, write_tables
from reports.paper_lookup import NOT_RUN, Ran
from reports.paper_tables import PaperCell, PaperTable, build
from reports.published import Printed, names, printed
from reports.pursuit_published import OVERLAP
from reports.results import Arm, Results
from tasks.arms import ARM_READERS, arms
from tests.report_fixture import build_results, two_arms

SPEC = Path(__file__).parents[2] / "shared" / "spec" / "published.toml"
NOBODY = pl.DataFrame(schema={"arm": pl.String, "question_id": pl.String, "sufficient": pl.Float64})


def _ran(results: Results, **changes: Any) -> Ran:
    said: dict[str, Any] = {"judge": "", "panel": "", "answerer": "extractive", "offline_answers": True}
    return Ran(results=results, sufficiency=NOBODY, encoders={"turns": "minilm"}, **said | changes)


def _table(rows: Mapping[str, tuple[float | None, ...]], *columns: str, of: str = "", **setting: Any) -> Printed:
    measured = {"benchmark": "locomo", **setting}
    return Printed("bfr.table99", "Made <up>", "Nobody", measured, of, columns, tuple(rows.items()))


def _cells(ran: Ran, table: Printed) -> dict[tuple[str, str], PaperCell]:
    (built,) = build(ran, [table])
    return {(row, head): cell for row, cells in built.rows for head, cell in zip(built.heads, cells, strict=True)}


def test_the_shipped_figures_are_those_of_the_specification() -> None:
    if not SPEC.is_file():
        pytest.skip(f"needs the specification at {SPEC}")
    for paper, tables in tomllib.loads(SPEC.read_text(encoding="utf-8")).items():
        for name, table in tables.items():
            shipped = {"table2_gpt4o_mini": "table2", "table2_qwen3_30b": "table2b"}.get(name, name)
            ours = [number for _, row in printed()[f"{paper}.{shipped}"].rows for number in row if number is not None]
            for number in (each for row in table["rows"] for each in row[1:] if isinstance(each, float)):
                assert number in ours, (paper, name, number)
                ours.remove(number)


def test_made_up_conversations_stand_beside_no_paper_and_a_count_is_no_result() -> None:
    results = two_arms({"hybrid": [1.0, 0.0]}, conversations=["c", "c"])
    table = _table({"hybrid@k10": (40.0, 200.0)}, "cer", "n")
    counted = _cells(_ran(results), table)["hybrid@k10", "n"]
    assert (counted.ours, counted.difference) == (2.0, None) and "how many questions" in counted.why
    for cell in _cells(_ran(replace(results, data="a bundled sample")), table).values():
        assert (cell.ours, cell.difference, cell.why) == (None, None, "this run reads a bundled sample, not locomo")


def test_a_figure_is_drawn_from_its_table_s_cells_where_this_run_has_a_number(tmp_path: Path) -> None:
    ran = _ran(two_arms({"hybrid": [1.0, 0.0]}, conversations=["c", "c"]))
    table = _table({"hybrid@k10": (40.0, 60.0), "mmr@k10": (50.0, None)}, "cer", "judge")
    drawn = replace(table, name="bfr.figure99")
    lacking = replace(_table({"mmr@k10": (50.0,)}, "cer"), name="bfr.figure98")
    built = build(ran, [table, drawn, lacking])
    (figure,) = paper_figures(built)
    assert figure.name == "bfr.figure99" and figure.data.equals(cell_rows(build(ran, [drawn])[0]))
    rows = [row for rows in figure.spec["datasets"].values() for row in rows]
    points = {(row["row"], row["whose"]): row["value"] for row in rows if "whose" in row}
    assert points == {
        ("hybrid@k10", "this run"): 50.0,
        ("hybrid@k10", "the paper"): 40.0,
        ("mmr@k10", "the paper"): 50.0,
    }
    paths = write_tables(built[1:], [figure], ["html", "md"], tmp_path, "t", {})
    page = paths["tables.html"].read_text(encoding="utf-8")
    assert page.count("<svg") == 1 and page.count(figure.reading) == 1
    assert "](bfr.figure99.svg)" in paths["bfr.figure99.md"].read_text(encoding="utf-8")
    assert "svg" not in paths["bfr.figure98.md"].read_text(encoding="utf-8")


def test_figures_that_stand_elsewhere_in_the_code_are_the_shipped_ones() -> None:
    overlap = printed()["mempursuit.figure3"]
    said = {
        (budget, name if name == "replaced" else f"{policy} {name.replace('_', ' ')}"): value
        for words, values in overlap.rows
        for policy, _, budget in [words.partition("@")]
        for name, value in zip(overlap.columns, values, strict=True)
        if value is not None
    }
    assert said == {key: pytest.approx(100 * value) for key, value in OVERLAP.items()}
    grid = printed()["mempursuit.table14"]
    medians = {
        (read(words).size, read(column).k): value
        for words, values in grid.rows
        for column, value in zip(grid.columns, values, strict=True)
    }
    assert medians == PUBLISHED_MEDIANS


def test_every_arm_a_published_table_asks_for_can_be_run_or_says_why_not() -> None:
    asked = set()
    for table in printed().values():
        for words, _ in table.rows:
            for column in table.columns:
                at = read(table.of, words, column)
                assert at.metric in METRICS, (table.name, words, column)
                asked |= {own if "@" in own or not at.budget else f"{own}@{at.budget}" for own in at.arms}
    assert len(asked) > 40
    for own in asked:
        name, _, budget = own.partition(":")[0].partition("@")
        if name in ABSENT or name in STAND_FOR:
            continue
        assert re.sub(r"\(.*", "", name) in ARM_READERS, own
        if budget:
            assert str(arms([f"{name}@{budget}"], [], ["turns"])[0]) == f"{name}@{budget}"


def test_words_are_read_from_table_row_and_column_together() -> None:
    assert read("locomo", "judge", "10, with: mem_pursuit@k10:mem0", "multi-hop") == Coordinates(
        arms=("mem_pursuit@k10:mem0",), metric="judge", kinds=("multi-hop",), benchmark="locomo"
    )
    assert read("locomo", "bfr_mv@C6 - com_flat@k10", "longmemeval f1 low") == Coordinates(
        arms=("bfr_mv@C6", "com_flat@k10"), metric="f1", statistic="low", benchmark="longmemeval"
    )
    assert read("mem_pursuit median_ms", "P=200", "K=20") == Coordinates(
        arms=("mem_pursuit",), metric="median_ms", size=200, k=20
    )
    assert (label("C0: fca_ms@k10"), label("multi-hop f1 cluster-low")) == ("C0", "multi-hop F1 low, clustered")


def test_a_number_is_the_mean_over_questions_with_gold_and_its_difference_is_ours_less_theirs() -> None:
    results = two_arms({"hybrid": [1.0, 0.0, 1.0, 1.0], "bm25": [0.0, 0.0, 1.0, 1.0]}, conversations="aabb")
    found = _cells(_ran(results), _table({"hybrid@k10": (70.0,), "hybrid@k10 - bm25@k10": (None,)}, "cer"))
    one, gap = found["hybrid@k10", "CER"], found["hybrid@k10 - bm25@k10", "CER"]
    assert (one.ours, one.n, one.published, one.difference) == (75.0, 4, 70.0, 5.0)
    assert one.low is not None and one.high is not None and one.low <= 75.0 <= one.high
    assert (gap.ours, gap.difference, gap.arm) == (25.0, None, "hybrid@k10 - bm25@k10")


def test_a_number_that_is_known_for_a_part_of_the_questions_has_no_difference() -> None:
    results = two_arms({"hybrid": [1.0, 0.0, None, None]}, conversations="aabb")
    cell = _cells(_ran(results), _table({"hybrid@k10": (70.0,)}, "cer"))["hybrid@k10", "CER"]
    assert (cell.ours, cell.difference) == (50.0, None)
    assert cell.why == "known for 2 of 4 questions: no difference is taken of a part"


def test_turn_hit_counts_unannotated_questions_as_misses_and_gold_hit_leaves_them_out() -> None:
    results = build_results(readers=("oracle",), budgets=(5,), full_context=False)
    found = _cells(_ran(results), _table({"oracle@k5": (None, None)}, "turn_hit", "gold_hit"))
    gold = results.questions.filter(pl.col("gold_turn_ids").list.len() > 0).height
    assert found["oracle@k5", "Gold Hit"].ours == 100.0
    assert found["oracle@k5", "Turn Hit"].ours == pytest.approx(100 * gold / results.questions.height)


def test_what_lacks_says_why_and_is_never_blank() -> None:
    results = replace(build_results(readers=("hybrid",), budgets=(2,)), judges=())
    rows: dict[str, tuple[float | None, ...]] = {
        "hybrid@k2": (1.0,) * 4, "dense@k2": (1.0,) * 4, "rsc": (1.0,) * 4, "hybrid@k2:mem0": (1.0,) * 4,
    }  # fmt: skip
    found = _cells(_ran(results), _table(rows, "judge", "suff", "f1", "longmemeval cer"))
    assert found["hybrid@k2", "Judge"].why == "needs a judge that asks a model"
    assert found["hybrid@k2", "Sufficient"].why == "needs a sufficiency panel that asks a model"
    assert found["hybrid@k2", "F1"].why == "needs the judge stem_f1"
    assert found["hybrid@k2", "longmemeval CER"].why == "this run reads locomo, not longmemeval"
    assert found["dense@k2", "F1"].why == NOT_RUN
    assert found["rsc", "F1"].why == ABSENT["rsc"]
    assert found["hybrid@k2:mem0", "F1"].why == "no store mem0 in this run"
    for table in build(_ran(results), list(printed().values())):
        for cell in table.cells:
            assert cell.ours is not None or cell.why
        for own in (cell for _, cells in show(table).rows for cell in cells):
            assert own.ours and own.published and (own.ours != "–" or own.mark)


def test_an_offline_judge_is_never_put_beside_a_judged_accuracy_and_offline_answers_have_no_difference() -> None:
    base = build_results(readers=("hybrid",), budgets=(2,), full_context=False)
    f1 = base.verdicts.with_columns(judge=pl.col("judge").replace({"lexical_f1": "stem_f1"}))
    results = replace(base, judges=("stem_f1", "lexical_match"), verdicts=f1)
    table = _table({"hybrid@k2": (50.0, 60.0)}, "f1", "judge")
    offline = _cells(_ran(results), table)
    assert offline["hybrid@k2", "Judge"].ours is None
    assert offline["hybrid@k2", "F1"].ours is not None
    assert offline["hybrid@k2", "F1"].difference is None
    asked = _cells(_ran(results, judge="lexical_match", offline_answers=False), table)
    assert asked["hybrid@k2", "F1"].difference == pytest.approx(offline["hybrid@k2", "F1"].ours - 50.0)  # type: ignore[operator]
    assert asked["hybrid@k2", "Judge"].difference is not None


def test_an_arm_that_lacks_is_told_before_the_judge_that_lacks_and_the_paper_s_first_set_is_preferred() -> None:
    base = two_arms({"bfr_mv": [1.0, 0.0], "other": [1.0, 1.0]}, conversations="ab")
    forms = {"bfr_mv@k10": "bfr_mv@C6", "other@k10": "bfr_mv(init=fca_ms)@C6"}
    arms_ = [Arm(form, form.partition("@")[0], "C6", "C6", "turns", False) for form in forms.values()]
    results = replace(base, arms=arms_, cells=base.cells.with_columns(arm=pl.col("arm").replace(forms)))
    (both,) = build(_ran(results), [_table({"bfr_mv@C6": (62.0,)}, "cer")])
    (cell,) = both.cells
    assert (cell.arm, cell.ours) == ("bfr_mv(init=fca_ms)@C6", 100.0)
    assert "arm" not in {what for what, _, _ in both.differs}
    (plain,) = build(_ran(replace(results, arms=arms_[:1])), [_table({"bfr_mv@C6": (62.0,)}, "cer")])
    assert ("arm", "bfr_mv(init=fca_ms)@C6", "bfr_mv@C6") in plain.differs


def test_a_completion_of_no_calls_stands_for_its_first_set() -> None:
    base = two_arms({"bfr_mv": [1.0, 0.0], "other": [1.0, 1.0]}, conversations="ab")
    forms = {"bfr_mv@k10": "bfr_mv(init=fca_ms)@C0", "other@k10": "bfr_mv(init=hybrid)@C0"}
    arms_ = [Arm(form, form.partition("@")[0], "C0", "C0", "turns", False) for form in forms.values()]
    results = replace(base, arms=arms_, cells=base.cells.with_columns(arm=pl.col("arm").replace(forms)))
    (cell,) = _cells(_ran(results), _table({"fca_ms@k10": (40.5,)}, "cer")).values()
    assert (cell.arm, cell.ours) == ("bfr_mv(init=fca_ms)@C0", 50.0)
    (without,) = _cells(_ran(replace(results, arms=arms_[1:])), _table({"fca_ms@k10": (40.5,)}, "cer")).values()
    assert without.why == NOT_RUN


def test_rerankers_are_known_by_their_model() -> None:
    base = two_arms({"hybrid": [1.0, 0.0]}, conversations="ab")
    arm = Arm("cross_encoder(model=ce)@k20", "cross_encoder(model=ce)", "k20", "20", "turns", False)
    results = replace(base, arms=[arm], cells=base.cells.with_columns(arm=pl.lit(arm.label)))
    table = _table({"bge-base@k20": (79.5,), "bge-v2-m3@k20": (87.1,)}, "cer")
    found = _cells(_ran(results, models={"ce": "BAAI/bge-reranker-v2-m3"}), table)
    assert (found["bge-base@k20", "CER"].why, found["bge-v2-m3@k20", "CER"].ours) == (NOT_RUN, 50.0)


def test_sufficiency_leaves_out_what_the_panel_is_unsure_of() -> None:
    results = two_arms({"hybrid": [1.0, 0.0, 1.0, 0.0]}, conversations="aabb")
    said = pl.DataFrame(
        {"arm": ["hybrid@k10"] * 4, "question_id": [f"q{i}" for i in range(4)], "sufficient": [1.0, 0.0, None, 1.0]}
    )
    ran = replace(_ran(results, panel="blinded(model=m)"), sufficiency=said)
    cell = _cells(ran, _table({"hybrid@k10": (60.0,)}, "suff"))["hybrid@k10", "Sufficient"]
    assert (cell.ours, cell.n) == (pytest.approx(200 / 3), 3)
    assert cell.difference == pytest.approx(200 / 3 - 60.0)


def test_latencies_are_those_of_the_bench_file_and_analyses_those_of_the_lake() -> None:
    results = two_arms({"hybrid": [1.0]}, conversations="a")
    bench = {"cells": [{"pools": "LoCoMo", "d": d, "P": 200, "K": 20, "median ms": d / 1000} for d in (384, 1536)]}
    table = _table({"mem_pursuit": (8.67,), "bge-base": (109.03,)}, "median_ms", of="P=200 K=20")
    found = _cells(_ran(results, bench=bench), table)
    assert found["mem_pursuit", "Median, ms"].ours == 1.536
    assert "no scorer that is a model" in found["bge-base", "Median, ms"].why
    assert "needs --bench" in _cells(_ran(results), table)["mem_pursuit", "Median, ms"].why
    numbers = pl.DataFrame(
        {"figure": ["reconstruction"], "group": ["all"], "measure": ["gold closer"], "value": [0.25], "n": [84]}
    )
    pursuit = _table({"all: overall": (None, None)}, "gold_closer", "missing_preferred")
    told = _cells(_ran(results, pursuit=numbers), pursuit)
    assert told["all", "Gold closer"].ours == 25.0
    assert told["all", "Missing preferred"].why == "undefined in this run: no question of the kind"
    assert _cells(_ran(results), pursuit)["all", "Gold closer"].why == "needs `suffice analyse pursuit`"


@pytest.fixture(scope="module")
def built() -> list[PaperTable]:
    """All tables of a small run of arms that the papers have."""
    results = build_results(readers=("hybrid", "mem_pursuit", "fca_ms"), budgets=(10,), samples=100)
    return build(_ran(results), list(printed().values()))


def test_every_format_holds_every_cell(built: list[PaperTable], tmp_path: Path) -> None:
    paths = write_tables(built, [], ["html", "md", "csv", "latex"], tmp_path, "A <b>title</b>", {"Run": "x & y"})
    assert len(paths) == 1 + 3 * len(built)
    for table in built:
        cells = list(table.cells)
        assert pl.read_csv(paths[f"{table.name}.csv"]).height == len(cells) == cell_rows(table).height
        markdown = [row for row in paths[f"{table.name}.md"].read_text().splitlines() if row.startswith("|")]
        assert {len(re.findall(r"(?<!\\)\|", row)) for row in markdown} <= {len(table.heads) + 2}
        assert len(markdown) == (len(table.rows) + 2 if table.rows else 0)
        latex = paths[f"{table.name}.tex"].read_text()
        body = re.sub(r"^%.*$", "", latex, flags=re.M)
        bare = re.sub(r"\\[\\{}%$#_&]", "", body)
        assert bare.count("{") == bare.count("}") and bare.count("$") % 2 == 0
        assert not re.search(r"[#_%~]", bare.replace("\\label{tab:" + table.name + "}", ""))
        for row in (line for line in body.splitlines() if line.endswith(r" \\")):
            assert len(re.findall(r"(?<!\\)&", row)) == len(table.heads)
    page = paths["tables.html"].read_text()
    assert "<b>title" not in page and "x &amp; y" in page and "<script" not in page
    assert page.count('<tr><th scope="row">') == sum(len(table.rows) for table in built)


def test_what_differs_is_told_only_of_what_was_measured(built: list[PaperTable]) -> None:
    by_name = {table.name: table for table in built}
    overlap = {what: (there, here) for what, there, here in by_name["mempursuit.figure3"].differs}
    assert overlap["store"] == ("Mem0-v3, P = 200", "turns")
    assert "judge" not in overlap and "answerer" not in overlap
    assert by_name["mempursuit.table9"].differs == ()
    results = build_results(readers=("hybrid", "fca_ms"), budgets=(10,), samples=50)
    (told,) = build(_ran(results, stores={"turns": "flat turns"}), [printed()["bfr.table5"]])
    assert told.differs and "store" not in [what for what, _, _ in told.differs]


def test_a_table_is_named_whole_or_by_its_paper() -> None:
    assert names(["bfr.table16", "mempursuit.figure3"]) == (["bfr.table16", "mempursuit.figure3"], [])
    assert names(["bfr"])[0] == [name for name in printed() if name.startswith("bfr.")]
    assert names([])[0] == list(printed())
    assert names(["table99"]) == ([], ["table99"])

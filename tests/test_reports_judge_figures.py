"""Pictures of judges and of latencies show what their tables hold, and only where there is something to show."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from sklearn.metrics import cohen_kappa_score

from reports.calibration import Errors, errors
from reports.calibration_tables import calibration_tables
from reports.grid import ALL
from reports.judge_figures import SEEN, agreement, calibration
from reports.latency_grid import COLUMNS, latency_grid
from reports.tables import Cell, summarise
from tests.report_fixture import JUDGES, build_results


def planted() -> Errors:
    return errors(
        pl.DataFrame(
            {"truth": ["good"] * 20 + ["specific"] * 20 + ["vague"] * 20, "score": [1.0] * 19 + [0.0] * 36 + [1.0] * 5}
        )
    )


def test_agreement_is_that_of_the_answers_and_scores_are_the_tables() -> None:
    results = build_results(readers=("hybrid", "bm25", "oracle"), budgets=(2,), samples=50)
    statistics = summarise(results)
    figure = agreement(results, statistics)
    assert figure is not None
    answers = results.cells.select("arm", "question_id", "answer")
    wide = results.verdicts.join(answers, on=["arm", "question_id"]).drop_nulls("answer")
    wide = wide.unique(["question_id", "answer", "judge"], keep="first", maintain_order=True)
    both = wide.pivot("judge", index=["question_id", "answer"], values="score").drop_nulls()
    one, other = ((both[judge] > 0.5).to_list() for judge in JUDGES)
    (pair,) = figure.data.filter(pl.col("part") == "pair").to_dicts()
    assert (pair["n"], pair["value"]) == (len(both), sum(a == b for a, b in zip(one, other, strict=True)) / len(both))
    assert pair["kappa"] == pytest.approx(cohen_kappa_score(one, other))
    for row in figure.data.filter(pl.col("part") == "score").to_dicts():
        label = row["arm"].removesuffix(" (uses gold)")
        found = statistics.estimates[Cell(label, ALL, f"{row['judge']}_strict")]
        assert (row["value"], row["low"], row["high"]) == (found.value, found.low, found.high)


def test_one_judge_agrees_with_nobody_and_one_that_never_judged_has_no_score() -> None:
    results = build_results(readers=("hybrid", "bm25"), budgets=(2,), samples=50)
    alone = replace(results, judges=JUDGES[:1], verdicts=results.verdicts.filter(pl.col("judge") == JUDGES[0]))
    assert agreement(alone, summarise(alone)) is None
    silent = pl.col("judge") == JUDGES[1]
    lost = results.verdicts.with_columns(
        status=pl.when(silent).then(pl.lit("missing")).otherwise("status"), score=pl.when(~silent).then("score")
    )
    halved = replace(results, verdicts=lost)
    assert agreement(halved, summarise(halved)) is None


def test_corrected_scores_of_the_picture_are_those_of_the_table() -> None:
    plain = build_results(readers=("hybrid", "oracle"), budgets=(2,), samples=50)
    assert calibration(plain, summarise(plain)) is None
    results = replace(plain, calibrations={JUDGES[1]: planted()})
    figure = calibration(results, summarise(results))
    assert figure is not None and "25.0 % of 20 wrong, vague replies" in figure.reading
    _, table = calibration_tables(results, summarise(results))
    shown = {row.label: [cell.value for cell in row.cells] for block in table.blocks for row in block.rows}
    drawn = figure.data.filter(pl.col("arm").is_not_null())
    assert drawn.filter(pl.col("measure") == SEEN)["arm"].n_unique() == len(shown)
    for (arm,), own in drawn.group_by("arm", maintain_order=True):
        label = str(arm).removesuffix(" (uses gold)")
        assert [f"{100 * value:.1f}" for value in own["value"]] == [v for v in shown[label] if v != "not possible"]


def test_a_judge_no_better_than_chance_is_drawn_without_a_correction() -> None:
    plain = build_results(readers=("hybrid", "bm25"), budgets=(2,), samples=50)
    blind = pl.DataFrame({"truth": ["good", "specific", "vague"] * 5, "score": [0.0, 1.0, 1.0] * 5})
    results = replace(plain, calibrations={JUDGES[0]: errors(blind)})
    figure = calibration(results, summarise(results))
    assert figure is not None and figure.svg.startswith("<svg")
    assert set(figure.data.filter(pl.col("arm").is_not_null())["measure"]) == {SEEN}


def bench_cells() -> list[dict[str, object]]:
    """Times that grow as P and K do, on two kinds of pools."""
    return [
        dict(zip(COLUMNS, (kind, 1536, p, k, p * k / 1e4, p * k / 5e3, p / 2e3, k / 5, 8.4), strict=True))
        for kind in ("LoCoMo", "never saturating")
        for p in (100, 200, 500)
        for k in (10, 20)
    ]


def test_latency_is_read_at_the_papers_cell_and_the_paper_stands_beside_its_own_pools(tmp_path: Path) -> None:
    figure = latency_grid([*bench_cells(), {"contestant": "not a cell"}])
    assert figure is not None and figure.data.height == len(bench_cells())
    assert "20 records of 200 candidates" in figure.reading and "take 0.40 ms, 4.0 times one pass" in figure.reading
    assert "from 100 to 500 candidates that is 0.20 to 1.00 ms" in figure.reading
    printed = [row for row in _rows(figure.spec) if row.get("series", "").startswith("printed")]
    assert {row["pools"] for row in printed} == {"LoCoMo"}
    assert set(figure.write(tmp_path)) == {f"latency_grid.{kind}" for kind in ("svg", "png", "csv")}
    made_up = latency_grid([{**row, "pools": "bundled sample"} for row in bench_cells()])
    assert made_up is not None and "paper" not in made_up.caption
    assert not [row for row in _rows(made_up.spec) if row.get("series", "").startswith("printed")]
    assert latency_grid([]) is None


def _rows(spec: dict[str, object]) -> list[dict[str, str]]:
    datasets = spec["datasets"]
    assert isinstance(datasets, dict)
    return [row for rows in datasets.values() for row in rows]

"""What does each arm reach, on all questions and on those without known wrong labels?"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from reports.calibration import wilson
from reports.grid import ALL, Grid
from reports.intervals import Floats, Integers
from reports.measures import measures
from reports.results import Results
from reports.tables import Cell

EVERY, AUDITED, CITED = "all", "audited", "citations"
SUBSETS: Mapping[str, tuple[str, str]] = {
    EVERY: ("All questions", "every question of the run"),
    AUDITED: ("Wrong answers left out", "without the questions whose gold answer is known to be wrong"),
    CITED: (
        "Wrong citations left out too",
        "nor those whose gold turns alone are known to be wrong",
    ),
}
_LEFT_OUT: Mapping[str, tuple[str, ...]] = {EVERY: (), AUDITED: ("answer",), CITED: ("answer", "citation")}
Columns = dict[str, dict[str, Floats]]


@dataclass(frozen=True)
class Rate:
    """An arm's mean over a subset with Wilson's interval where the measure knows 0 and 1 alone."""

    value: float | None
    low: float | None
    high: float | None
    n: int


def rates(results: Results) -> dict[Cell, dict[str, Rate]]:
    """Each arm's mean by every measure that ranks, over all kinds together: cell → subset → rate."""
    grid = Grid.of(results)
    columns = ranking_columns(results, grid)
    binary = binary_measures(columns)
    found: dict[Cell, dict[str, Rate]] = {}
    for subset in subsets_of(results):
        rows = kept_rows(results, grid, ALL, subset)
        for metric, arms in columns.items():
            for arm, column in arms.items():
                own = found.setdefault(Cell(arm, ALL, metric), {})
                own[subset] = _rate(column[rows], metric in binary)
    return found


def subsets_of(results: Results) -> tuple[str, ...]:
    """All questions, and those without known wrong labels where any are known of this run's questions."""
    faults = {results.wrong_labels.get(question) for question in results.questions["question_id"]} - {None}
    return (EVERY, *((AUDITED,) if "answer" in faults else ()), *((CITED,) if "citation" in faults else ()))


def kept_rows(results: Results, grid: Grid, kind: str, subset: str) -> Integers:
    """Places of a kind's questions in a subset."""
    ids, out = results.questions["question_id"].to_list(), _LEFT_OUT[subset]
    return np.array([i for i in grid.rows(kind) if results.wrong_labels.get(ids[i]) not in out], dtype=np.int64)


def rate_rows(found: Mapping[Cell, Mapping[str, Rate]]) -> pl.DataFrame:
    """rates.csv: `arm, metric, subset, value, low, high, n`; the ends are Wilson's, null where it does not apply."""
    rows = [
        (cell.arm, cell.metric, subset, rate.value, rate.low, rate.high, rate.n)
        for cell, own in found.items()
        for subset, rate in own.items()
    ]
    text, number = pl.String, pl.Float64
    schema = {
        "arm": text,
        "metric": text,
        "subset": text,
        "value": number,
        "low": number,
        "high": number,
        "n": pl.Int64,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def ranking_columns(results: Results, grid: Grid) -> Columns:
    """Measure → arm → (questions,) column, for every measure that ranks."""
    ranks = [measure.name for measure in measures(results) if measure.ranks]
    return {name: {arm.label: grid.matrices[name][:, i] for i, arm in enumerate(results.arms)} for name in ranks}


def binary_measures(columns: Columns) -> set[str]:
    """The measures whose every defined value is 0 or 1."""
    return {
        name
        for name, arms in columns.items()
        if all(((column == 0) | (column == 1) | np.isnan(column)).all() for column in arms.values())
    }


def _rate(column: Floats, binary: bool) -> Rate:
    known = column[~np.isnan(column)]
    found = wilson(float(known.sum()), len(known)) if binary else None
    return Rate(mean(known), found.low if found else None, found.high if found else None, len(known))


def mean(column: Floats) -> float | None:
    """None where there is nothing to average."""
    return float(column.mean()) if len(column) else None

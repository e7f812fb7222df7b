"""Which numbers does a report state for each arm, kind and measure?"""

import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
import polars as pl

from reports.grid import ALL, Grid
from reports.intervals import Floats, Integers, Means, bootstrap_means
from reports.measures import BASELINE_READER, LATENCIES, STOPPED, Measure, measures
from reports.results import Arm, Results

PRIMARY = "complete_evidence"
UNBOUNDED = "all"
COLUMNS: Mapping[str, pl.DataType] = {
    "benchmark": pl.String(),
    "split": pl.String(),
    "arm": pl.String(),
    "k": pl.String(),
    "kind": pl.String(),
    "metric": pl.String(),
    "value": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "n": pl.Int64(),
}


# The bounds of evidence, in the order of a report's tables.
UNITS: Mapping[int, str] = {0: "records", 1: "tokens", 2: "completion", 3: "none"}


class Cell(NamedTuple):
    """`arm` is a label, `kind` a question kind or `all`, `metric` a measure's name."""

    arm: str
    kind: str
    metric: str


@dataclass(frozen=True)
class Estimate:
    """A mean (or a percentile) with 95 % intervals over questions and over conversations; None is missing."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    cluster_low: float | None = None
    cluster_high: float | None = None
    n: int = 0
    clusters: int = 0


@dataclass(frozen=True)
class BudgetGroup:
    """Arms whose evidence is held to one bound, which alone may be compared. `ranked` by complete evidence.

    `unit`: records, tokens, completion, none, or mixed. `ceilings` use gold.
    """

    budget: str
    unit: str
    words: str
    ranked: tuple[Arm, ...]
    ceilings: tuple[Arm, ...]

    @property
    def arms(self) -> tuple[Arm, ...]:
        return self.ranked + self.ceilings


@dataclass(frozen=True)
class Statistics:
    """Every number of a report but its comparisons, which are between an arm and `baselines[arm]`."""

    measures: tuple[Measure, ...]
    estimates: Mapping[Cell, Estimate]
    baselines: Mapping[str, str]
    groups: tuple[BudgetGroup, ...]

    def best(self, group: BudgetGroup, kind: str, metric: str) -> frozenset[str]:
        """Labels of the arms with the highest value; empty where a ranking would mislead.

        That is: fewer than two arms to rank, no budget in common, or denominators that differ.
        """
        found = {arm.label: self.estimates[Cell(arm.label, kind, metric)] for arm in group.ranked}
        values = [each.value for each in found.values() if each.value is not None]
        unequal = len({each.n for each in found.values()}) > 1
        if group.budget == UNBOUNDED or len(values) < 2 or unequal or min(values) == max(values):
            return frozenset()
        return frozenset(label for label, each in found.items() if each.value == max(values))


def summarise(results: Results) -> Statistics:
    """Compute every estimate and interval of a report, once.

    Resamples depend on `results.seed` and the kind alone, so adding an arm moves no other arm's interval.
    Raises `ValueError` if a cell or verdict names an unknown arm or question, or appears twice.
    """
    grid = Grid.of(results)
    columns = grid.columns()
    estimates: dict[Cell, Estimate] = {}
    for kind in (ALL, *results.kinds):
        rows = grid.rows(kind)
        values = [column[rows] for column in columns.values()]
        means = bootstrap_means(
            np.column_stack(values) if values else np.empty((len(rows), 0)),
            grid.conversations[rows],
            samples=results.samples,
            rng=resamples_of(results.seed, kind),
        )
        cells = [Cell(arm, kind, name) for arm, name in columns]
        estimates |= dict(zip(cells, estimates_of(means), strict=True))
        estimates |= _latencies(kind, rows, results.arms, grid.latency)
        estimates |= _stopped(kind, rows, results.arms, grid.stopped)
    return Statistics(measures(results), estimates, baseline_of(results.arms), _groups(results.arms, estimates))


def resamples_of(seed: int, what: str) -> np.random.Generator:
    """Where the resamples of a kind (or of another named set of questions) come from."""
    return np.random.default_rng([seed, zlib.crc32(what.encode())])


def main_rows(results: Results, statistics: Statistics | None = None) -> pl.DataFrame:
    """main.csv: a row for every expected arm x kind x measure; `low, high` by question; null is missing."""
    return _rows(results, statistics, lambda found: (found.low, found.high))


def clustered_rows(results: Results, statistics: Statistics | None = None) -> pl.DataFrame:
    """clustered.csv: the rows of `main_rows` with `low, high` from resampling whole conversations."""
    return _rows(results, statistics, lambda found: (found.cluster_low, found.cluster_high))


def overall(results: Results) -> pl.DataFrame:
    """The questions of the overall row."""
    return results.questions.filter(~pl.col("kind").is_in(list(results.apart)))


def baseline_of(arms: Sequence[Arm]) -> Mapping[str, str]:
    """Label of each arm's baseline: `hybrid` held to the same bound over the same store, itself left out.

    Where parameters make several such arms, the shortest label is meant.
    """
    candidates = sorted((a for a in arms if a.reader == BASELINE_READER), key=lambda a: len(a.label))
    found: dict[str, str] = {}
    for arm in arms:
        same = [b.label for b in candidates if (b.held_to, b.store) == (arm.held_to, arm.store)]
        if same and same[0] != arm.label:
            found[arm.label] = same[0]
    return found


def budget_words(arm: Arm) -> str:
    """What an arm's evidence is held to, as a reader of the report would say it.

    `10 records`, `2,000 tokens`, `no budget`, `C6 after 10 records`.
    """
    if arm.held_to == UNBOUNDED:
        return "no budget"
    match = re.fullmatch(r"([kt]?)(\d+)", arm.held_to)
    if match:
        unit = "token" if match[1] == "t" else "record"
        return f"{int(match[2]):,} {unit}{'s' if int(match[2]) != 1 else ''}"
    point, plus, first = arm.held_to.partition("+")
    return f"{point} after {first} records" if plus else f"budget {arm.held_to}"


def series_of(arm: Arm) -> str:
    """An arm's label without its budget, which names the same reader at every budget."""
    for budget in (arm.budget, f"k{arm.k}", arm.k):
        if f"@{budget}" in arm.label:
            return arm.label.replace(f"@{budget}", "", 1)
    return arm.label


def estimates_of(means: Means) -> list[Estimate]:
    """An estimate a column."""
    ends = (means.mean, means.low, means.high, means.cluster_low, means.cluster_high)
    mean, low, high, cluster_low, cluster_high = ([_known(each) for each in end.tolist()] for end in ends)
    counts = means.n.tolist(), means.clusters.tolist()
    return [Estimate(*own) for own in zip(mean, low, high, cluster_low, cluster_high, *counts, strict=True)]


def _known(number: float) -> float | None:
    return None if math.isnan(number) else float(number)


def _latencies(kind: str, rows: Integers, arms: Sequence[Arm], latency: Floats) -> dict[Cell, Estimate]:
    """Percentiles of a question's latency; no interval, since one machine's jitter is not sampling."""
    found: dict[Cell, Estimate] = {}
    for i, arm in enumerate(arms):
        column = latency[rows, i]
        known = column[~np.isnan(column)]
        for name, (_, percentile) in LATENCIES.items():
            value = float(np.percentile(known, percentile)) if len(known) else None
            found[Cell(arm.label, kind, name)] = Estimate(value, n=len(known))
    return found


def _stopped(kind: str, rows: Integers, arms: Sequence[Arm], stopped: Floats) -> dict[Cell, Estimate]:
    """How many of an arm's known cells were stopped at the budget; None where no cell is known."""
    found: dict[Cell, Estimate] = {}
    for i, arm in enumerate(arms):
        column = stopped[rows, i]
        known = column[~np.isnan(column)]
        found[Cell(arm.label, kind, STOPPED)] = Estimate(float(known.sum()) if len(known) else None, n=len(known))
    return found


def mixed_group(statistics: Statistics) -> BudgetGroup:
    """Arms of every budget in one ranking, which says little: the larger budget alone ranks higher."""
    arms = [arm for group in statistics.groups for arm in group.ranked]
    ceilings = tuple(arm for group in statistics.groups for arm in group.ceilings)
    return BudgetGroup("mixed", "mixed", "all budgets, mixed", _ranked(arms, statistics.estimates), ceilings)


def _groups(arms: Sequence[Arm], estimates: Mapping[Cell, Estimate]) -> tuple[BudgetGroup, ...]:
    ordered = sorted(arms, key=_budget_order)
    found = []
    for key, members in groupby(ordered, key=_budget_order):
        group = list(members)
        ranked = _ranked([a for a in group if not a.uses_gold], estimates)
        ceilings = tuple(a for a in group if a.uses_gold)
        found.append(BudgetGroup(group[0].held_to, UNITS[key[0]], budget_words(group[0]), ranked, ceilings))
    return tuple(found)


def _ranked(arms: Sequence[Arm], estimates: Mapping[Cell, Estimate]) -> tuple[Arm, ...]:
    """Most complete evidence first, unknown last."""

    def merit(arm: Arm) -> float:
        value = estimates[Cell(arm.label, ALL, PRIMARY)].value
        return math.inf if value is None else -value

    return tuple(sorted(arms, key=merit))


def _budget_order(arm: Arm) -> tuple[int, int, str]:
    """Records before tokens before completion, each by size; no budget last. The first is a place in `UNITS`."""
    match = re.fullmatch(r"([a-zA-Z]*)(\d+)(.*)", arm.held_to)
    unit, size = (match[1] if not match[3] else "C", int(match[2])) if match else (arm.held_to, 0)
    return ({"": 0, "k": 0, "t": 1, UNBOUNDED: 3}.get(unit, 2), size, arm.held_to)


def _rows(
    results: Results,
    statistics: Statistics | None,
    interval: Callable[[Estimate], tuple[float | None, float | None]],
) -> pl.DataFrame:
    known = statistics or summarise(results)
    rows = []
    for arm in results.arms:
        for kind in (ALL, *results.kinds):
            for measure in known.measures:
                found = known.estimates[Cell(arm.label, kind, measure.name)]
                at = (results.benchmark, results.split, arm.label, arm.k, kind, measure.name)
                rows.append((*at, found.value, *interval(found), found.n))
    return pl.DataFrame(rows, schema=dict(COLUMNS), orient="row")

"""Which numbers does a report state for each arm, kind and measure?"""

import math
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np
import polars as pl

from reports.intervals import Floats, Integers, Means, bootstrap_means
from reports.results import ABSTENTION, EVIDENCE_METRICS, Arm, Results

ALL = "all"
PRIMARY = "complete_evidence"
BASELINE_READER = "hybrid"
UNBOUNDED = "all"
COSTS: Mapping[str, str] = {
    "records": "Records: in the evidence of a question, mean",
    "tokens": "Tokens: in the evidence of a question, mean",
    "resident": "Resident: tokens that the store's system shows before the evidence of a question, not in Tokens, mean",
    "calls": "Calls: access calls for a question, mean",
    "asks": "Asks: times a model is asked for a question, mean",
    "replaced": f"Replaced, %: share of the evidence that {BASELINE_READER} at the same budget does not hold",
}
LATENCIES: Mapping[str, tuple[str, float]] = {
    "latency_ms_median": ("Latency median, ms: of a question, on this machine", 50.0),
    "latency_ms_p95": ("Latency p95, ms: 95th percentile of a question, on this machine", 95.0),
}
STOPPED = "over_budget"
STOPPED_TITLE = "Stopped: questions on which the reader asked for more than its budget and was stopped, count"
REALISED = ("records", "tokens", "resident", "calls", "asks", STOPPED)
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


class Measure(NamedTuple):
    """`name` as in main.csv, `title` as `Head: definition`, `family`: evidence, cost, count, latency or judged."""

    name: str
    title: str
    family: str

    @property
    def head(self) -> str:
        return self.title.partition(": ")[0]

    @property
    def definition(self) -> str:
        return self.title.partition(": ")[2]

    @property
    def is_share(self) -> bool:
        return self.family in ("evidence", "judged") or self.name == "replaced"

    @property
    def ranks(self) -> bool:
        """Whether more of it is better, so that arms may be ordered by it."""
        return self.family in ("evidence", "judged")


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


def measures(results: Results) -> tuple[Measure, ...]:
    """Every measure of a report in the order of its tables and of main.csv."""
    return (
        *(Measure(name, EVIDENCE_METRICS[name], "evidence") for name in known_metrics(results)),
        *(Measure(name, title, "cost") for name, title in costs(results).items()),
        Measure(STOPPED, STOPPED_TITLE, "count"),
        *(Measure(name, title, "latency") for name, (title, _) in LATENCIES.items()),
        *(each for judge in results.judges for each in judged_measures(judge)),
    )


def known_metrics(results: Results) -> list[str]:
    """The evidence metrics of the run: LongMemEval's own only where some cell has one, since others know no user."""
    cells = results.cells
    return [
        name
        for name in EVIDENCE_METRICS
        if not name.startswith("user_") or (name in cells.columns and cells[name].count() > 0)
    ]


def costs(results: Results) -> Mapping[str, str]:
    """The costs that the run knows: resident tokens and asks of a model only where some cell has any."""
    cells = results.cells
    some = {name for name in ("resident", "asks") if name in cells.columns and cells[name].count() > 0}
    return {name: title for name, title in COSTS.items() if name in some or name not in ("resident", "asks")}


def judged_measures(judge: str) -> tuple[Measure, Measure]:
    """A judge's score with what it could not judge counted as wrong, and over judged cells alone."""
    return (
        Measure(
            f"{judge}_strict",
            f"{judge}, strict: score over every expected cell, not judged counts as 0",
            "judged",
        ),
        Measure(f"{judge}_judged", f"{judge}, judged: score over the cells it judged", "judged"),
    )


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


@dataclass(frozen=True)
class Grid:
    """Every measure's (questions, arms) matrix, NaN where not in the denominator."""

    arms: Sequence[Arm]
    kinds: Sequence[tuple[str, ...]]
    apart: Sequence[str]
    conversations: Integers
    matrices: Mapping[str, Floats]
    latency: Floats
    stopped: Floats

    @classmethod
    def of(cls, results: Results) -> "Grid":
        place = _Placer(results)
        at = place(results.cells, "cells")
        matrices = {name: place.matrix(results.cells, name, at) for name in (*EVIDENCE_METRICS, *costs(results))}
        for judge in results.judges:
            verdicts = results.verdicts.filter(pl.col("judge") == judge)
            strict, judged = judged_measures(judge)
            at_judge = place(verdicts, f"verdicts of {judge}")
            scored = verdicts.with_columns(judged=pl.when(pl.col("status") == "ok").then(pl.col("score"))).with_columns(
                strict=pl.col("judged").fill_null(0.0)
            )
            matrices[strict.name] = place.matrix(scored, "strict", at_judge)
            matrices[judged.name] = place.matrix(scored, "judged", at_judge)
        questions = results.questions
        codes = {c: i for i, c in enumerate(questions["conversation_id"].unique(maintain_order=True))}
        conversations = np.array([codes[c] for c in questions["conversation_id"]], dtype=np.int64)
        latency = place.matrix(results.cells, "latency_ms", at)
        kinds: list[tuple[str, ...]] = [(kind,) for kind in questions["kind"]]
        if ABSTENTION in questions.columns:
            kinds = [(*own, ABSTENTION) if it else own for own, it in zip(kinds, questions[ABSTENTION], strict=True)]
        halted = results.cells.with_columns(halted=pl.col("stop_reason") == STOPPED)
        stopped = place.matrix(halted, "halted", at)
        return cls(results.arms, kinds, results.apart, conversations, matrices, latency, stopped)

    def rows(self, kind: str) -> Integers:
        """Questions of a kind; the overall row leaves out the kinds that stay apart."""
        apart = self.apart if kind == ALL else ()
        wanted = [i for i, own in enumerate(self.kinds) if kind in (ALL, *own) and own[0] not in apart]
        return np.array(wanted, dtype=np.int64)

    def columns(self) -> dict[tuple[str, str], Floats]:
        """(arm label, measure) to its (questions,) column."""
        return {
            (arm.label, name): matrix[:, i] for i, arm in enumerate(self.arms) for name, matrix in self.matrices.items()
        }


class _Placer:
    """Where a row of a long table belongs in a (questions, arms) matrix."""

    def __init__(self, results: Results) -> None:
        self.questions = {q: i for i, q in enumerate(results.questions["question_id"])}
        self.arms = {arm.label: i for i, arm in enumerate(results.arms)}
        _refuse_repeats("questions", results.questions["question_id"])
        _refuse_repeats("arms", [arm.label for arm in results.arms])

    def __call__(self, frame: pl.DataFrame, what: str) -> Integers:
        keys = list(zip(frame["question_id"], frame["arm"], strict=True))
        unknown = sorted({f"{a} / {q}" for q, a in keys if q not in self.questions or a not in self.arms})
        if unknown:
            raise ValueError(f"{what}: {len(unknown)} rows of no known arm and question, first {unknown[0]!r}")
        flat = [self.questions[q] * len(self.arms) + self.arms[a] for q, a in keys]
        _refuse_repeats(what, flat)
        return np.array(flat, dtype=np.int64)

    def matrix(self, frame: pl.DataFrame, column: str, at: Integers) -> Floats:
        full = np.full((len(self.questions), len(self.arms)), np.nan)
        if column in frame.columns:
            full.flat[at] = frame[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return full


def _refuse_repeats(what: str, keys: Iterable[object]) -> None:
    found = list(keys)
    if len(set(found)) != len(found):
        raise ValueError(f"{what}: {len(found)} rows hold {len(set(found))} distinct keys; each may appear once")


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

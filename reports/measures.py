"""What does a report measure?"""

from collections.abc import Mapping
from typing import NamedTuple

from reports.results import EVIDENCE_METRICS, Results

BASELINE_READER = "hybrid"
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
    """The evidence metrics of the run: LongMemEval's own only where some cell has one, since others know no user.

    The metric of a declared comparison is one of them also where no cell has it.
    """
    cells, declared = results.cells, {results.metric, *(measure for *_, measure in results.secondary)}
    return [
        name
        for name in EVIDENCE_METRICS
        if not name.startswith("user_") or name in declared or (name in cells.columns and cells[name].count() > 0)
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

"""What does a reader of two runs side by side see?"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from reports.comparison_tables import PAIRED_HEADS, paired_cells
from reports.comparisons import Comparison, Contrast
from reports.files import templates, write
from reports.findings import chance, points
from reports.grid import ALL
from reports.measures import COSTS, LATENCIES, STOPPED, STOPPED_TITLE, Measure, judged_measures
from reports.results import EVIDENCE_METRICS, Results
from reports.shown import Block, Head, Row, Shown, Table, number_of
from reports.tables import PRIMARY

READINGS: Mapping[str, str] = {
    "above": "the second run is shown to be above the first",
    "below": "the second run is shown to be below the first",
    "equal": "the two are equal on every question",
    "unclear": "the two are not shown to differ",
    "unknown": "too few questions to say",
}
_SIDES = (Head("First", "mean of the first run on them, %"), Head("Second", "mean of the second run on them, %"))
_PLAIN_HEADS = (
    Head("First", "mean of the first run"),
    Head("Second", "mean of the second run"),
    Head("Difference", "second less first; not paired"),
    Head("n first", "questions in the first run's mean"),
    Head("n second", "questions in the second run's mean"),
)


@dataclass(frozen=True)
class Side:
    """A run as the page names it. `cells`: what its report kept of every question, None where it kept none."""

    name: str
    cells: Results | None
    arms: Sequence[str]


@dataclass(frozen=True)
class Setting:
    """What a run measured by, in both runs; `differs` is marked: numbers do not compare."""

    field: str
    first: str
    second: str
    differs: bool


def write_page(
    path: Path,
    sides: tuple[Side, Side],
    settings: Sequence[Setting],
    made: Sequence[Setting],
    comparisons: Mapping[Contrast, Comparison],
    rows: pl.DataFrame,
) -> Path:
    """Write one self-contained page on two runs.

    `made`: what else the runs were made from and differs. `comparisons`: those of `reports.comparisons.compare_runs`,
    none where the runs cannot be paired. `rows`: `arm, kind, metric, first, second, difference, n, n_second` of both
    runs' main tables.
    """
    first, second = sides
    metric = primary_of(sides)
    known = {contrast.metric for contrast in comparisons}
    labels = set(first.arms) & set(second.arms)
    gold = {arm.label for side in sides if side.cells for arm in side.cells.arms if arm.uses_gold}
    view = {
        "first": first.name,
        "second": second.name,
        "settings": settings,
        "marks": [each for each in settings if each.differs],
        "made": made,
        "facts": _facts(first, second, comparisons),
        "unpaired": "" if comparisons else _why(sides, labels),
        "measure": _measure(metric).head,
        "readings": list(readings(comparisons, metric)),
        "paired": _paired_tables(comparisons, metric, gold),
        "offline": any(side.cells is not None and side.cells.offline for side in sides),
        "plain": list(_plain_tables(rows.filter(~pl.col("metric").is_in(list(known))))),
        "samples": f"{first.cells.samples:,}" if first.cells else "",
        "seed": first.cells.seed if first.cells else "",
    }
    return write(path, templates().get_template("compare.html.j2").render(view))


def primary_of(sides: tuple[Side, Side]) -> str:
    """The measure that both protocols are about, else complete evidence."""
    named = {side.cells.metric if side.cells else PRIMARY for side in sides}
    return named.pop() if len(named) == 1 else PRIMARY


def readings(comparisons: Mapping[Contrast, Comparison], metric: str) -> Iterator[tuple[str, str]]:
    """Arm and a sentence, by one measure over all questions; no claim that intervals and Holm's p do not carry."""
    percent = number_of(_measure(metric))
    for contrast, found in comparisons.items():
        if (contrast.kind, contrast.metric) != (ALL, metric):
            continue
        if found.difference.value is None:
            yield contrast.arm, "no question is defined in both runs."
            continue
        means = f"{percent(found.before)} % in the first run, {percent(found.after)} % in the second"
        said = f"{points(found.difference.value)} points on {found.difference.n:,} common questions"
        p = f", Holm p {chance(found.holm)}" if found.holm is not None else ""
        yield contrast.arm, f"{means}: {said}{p}; {READINGS[found.verdict]}."


def _facts(first: Side, second: Side, comparisons: Mapping[Contrast, Comparison]) -> list[tuple[str, str]]:
    facts = [("First run", first.name), ("Second run", second.name)]
    if first.cells is not None and second.cells is not None:
        one, other = (set(cells.questions["question_id"]) for cells in (first.cells, second.cells))
        facts.append(("Common questions", f"{len(one & other):,} of {len(one):,} and {len(other):,}"))
    for title, here, there in (("first", first, second), ("second", second, first)):
        alone = [arm for arm in here.arms if arm not in there.arms]
        if alone:
            facts.append((f"Arms of the {title} run alone", ", ".join(alone)))
    return facts


def _why(sides: tuple[Side, Side], labels: set[str]) -> str:
    without = [side.name for side in sides if side.cells is None]
    if without:
        return (
            f"{' and '.join(dict.fromkeys(without))} kept no cells beside the report (a sealed split keeps none, an "
            "older report is written anew by suffice report): means are joined, nothing is paired or tested."
        )
    return "No arm is in both runs." if not labels else "The runs have no question in common: nothing is paired."


def _paired_tables(
    comparisons: Mapping[Contrast, Comparison], metric: str, gold: Collection[str]
) -> list[tuple[Table, bool]]:
    """A table a measure, the primary one first, each with whether it shows judges' scores."""
    metrics = list(dict.fromkeys(each.metric for each, found in comparisons.items() if found.p is not None))
    heads = (PAIRED_HEADS[0], *_SIDES, *PAIRED_HEADS[3:])
    tables = []
    for name in sorted(metrics, key=lambda own: own != metric):
        rows = [
            Row(each.arm, "uses gold" if each.arm in gold else "", each.arm in gold, paired_cells(found))
            for each, found in comparisons.items()
            if (each.kind, each.metric) == (ALL, name)
        ]
        measure = _measure(name)
        block = Block("second less first", tuple(rows))
        tables.append((Table(measure.head, heads, (block,)), measure.family == "judged"))
    return tables


def _plain_tables(rows: pl.DataFrame) -> Iterator[Table]:
    """Both means of every measure that is not paired."""
    overall = rows.filter(pl.col("kind") == ALL).filter(pl.any_horizontal(pl.col("first", "second").is_not_null()))
    for (name,), own in overall.group_by("metric", maintain_order=True):
        measure = _measure(str(name))
        number = number_of(measure)
        shown = [
            Row(
                row["arm"],
                "",
                False,
                (
                    Shown(number(row["first"])),
                    Shown(number(row["second"])),
                    Shown(_difference(row["difference"], measure)),
                    Shown("–" if row["n"] is None else f"{row['n']:,}"),
                    Shown("–" if row["n_second"] is None else f"{row['n_second']:,}"),
                ),
            )
            for row in own.iter_rows(named=True)
        ]
        yield Table(measure.head, _PLAIN_HEADS, (Block("all questions", tuple(shown)),))


def _difference(value: float | None, measure: Measure) -> str:
    if measure.is_share:
        return points(value)
    shown = number_of(measure)(None if value is None else abs(value))
    return shown if not value else f"{'−' if value < 0 else '+'}{shown}"


def _measure(name: str) -> Measure:
    """A measure by its name in main.csv."""
    if name in EVIDENCE_METRICS:
        return Measure(name, EVIDENCE_METRICS[name], "evidence")
    if name in LATENCIES:
        return Measure(name, LATENCIES[name][0], "latency")
    if name == STOPPED:
        return Measure(name, STOPPED_TITLE, "count")
    for judged in judged_measures(name.removesuffix("_strict").removesuffix("_judged")):
        if judged.name == name:
            return judged
    return Measure(name, COSTS.get(name, name), "cost")

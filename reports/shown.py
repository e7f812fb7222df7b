"""How does a number become the text of a table cell?"""

from collections.abc import Callable
from dataclasses import dataclass

from reports.comparisons import verdict
from reports.findings import points
from reports.measures import Measure
from reports.tables import Estimate


@dataclass(frozen=True)
class Shown:
    """One table cell as text; `mark` is best, above, below, equal, unclear or empty."""

    value: str
    by_question: str = ""
    by_cluster: str = ""
    n: str = ""
    mark: str = ""


@dataclass(frozen=True)
class Row:
    """`note` is what else must be known: that the arm uses gold, or its store where there are several."""

    label: str
    note: str
    is_ceiling: bool
    cells: tuple[Shown, ...]


@dataclass(frozen=True)
class Block:
    """Rows of one budget. `verbatim`: the heading is an arm's printed form and keeps its letters."""

    heading: str
    rows: tuple[Row, ...]
    verbatim: bool = False


@dataclass(frozen=True)
class Head:
    """A column's head; `n` is given here where it is the same for every row, else in the cells."""

    title: str
    definition: str
    n: str = ""


@dataclass(frozen=True)
class Table:
    """`first` is the head of the rows' own column."""

    caption: str
    heads: tuple[Head, ...]
    blocks: tuple[Block, ...]
    first: str = "Arm"

    @property
    def quotes(self) -> bool:
        """Whether published figures stand beside those of the run."""
        return any(head.title.startswith("Paper") for head in self.heads)


@dataclass(frozen=True)
class Fact:
    """A label and its value; `full` is the whole of a digest shown short."""

    label: str
    value: str
    full: str = ""


def share(found: Estimate) -> Shown:
    """A share in percent with its intervals."""
    number = number_of(Measure("", "", "evidence"))
    return Shown(
        number(found.value),
        interval(found.low, found.high, number, "–"),
        interval(found.cluster_low, found.cluster_high, number, "–"),
    )


def gain(found: Estimate) -> Shown:
    """A paired difference in percentage points, marked by the side of 0 that it is on."""
    mark = "" if found.value is None else verdict(found)
    by_question = interval(found.low, found.high, points, " to ")
    by_cluster = interval(found.cluster_low, found.cluster_high, points, " to ")
    return Shown(points(found.value), by_question, by_cluster, mark=mark)


def number_of(measure: Measure) -> Callable[[float | None], str]:
    """How values of a measure are shown: shares in percent, a dash where missing."""

    def show(value: float | None) -> str:
        if value is None:
            return "–"
        if measure.is_share:
            return f"{100 * value:.1f}"
        if measure.family == "count":
            return f"{value:,.0f}"
        if measure.family == "latency":
            return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f}"
        return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"

    return show


def interval(low: float | None, high: float | None, show: Callable[[float | None], str], dash: str) -> str:
    """Empty also where both ends are one value: there resampling cannot show any uncertainty."""
    return "" if low is None or high is None or low == high else f"{show(low)}{dash}{show(high)}"

"""What do coverage, scores and latency look like, budget by budget?"""

from collections.abc import Callable, Mapping
from typing import Any

import altair as alt
import polars as pl

from reports.drawing import COLOURS, DASHES, SHAPES, Figure, finished, legend_of, over_the_plot, scale_of
from reports.findings import percent
from reports.grid import ALL
from reports.measures import LATENCIES, judged_measures
from reports.results import Results
from reports.tables import PRIMARY, UNBOUNDED, Cell, Statistics, series_of

COVERAGE: Mapping[str, str] = {
    "complete_evidence": "All gold turns found",
    "complete_sessions": "All gold sessions found",
    "gold_hit": "Any gold turn found",
}
BANDS = 8
USES_GOLD = " (uses gold)"
BANDED = (
    "Bands, for up to eight series: 95 % interval over conversations (over questions where there is one conversation). "
    "C6+10: ten records and what six calls add."
)


def coverage(results: Results, statistics: Statistics) -> Figure | None:
    """Coverage at each budget; None if no arm has a value."""
    data = coverage_data(results, statistics)
    if data.is_empty():
        return None
    caption = f"Share of questions whose gold is found, by budget. {BANDED}"
    reading = _highest(data, PRIMARY, statistics, lambda share: f"all gold turns on {share} of the questions")
    return Figure("coverage", "Coverage at each budget", finished(coverage_chart(data)), data, reading, caption)


def scores(results: Results, statistics: Statistics) -> Figure | None:
    """Each judge's strict score at each budget; None if nobody judged."""
    strict = {judged_measures(judge)[0].name: f"Score by {judge}" for judge in results.judges}
    data = coverage_data(results, statistics, strict)
    if data.is_empty():
        return None
    measure, judge = data["metric"][0], strict[data["metric"][0]].removeprefix("Score by ")
    reading = _highest(data, measure, statistics, lambda share: f"a strict score of {share} by {judge}")
    caption = f"Score over every expected cell, not judged counts as 0. {BANDED}"
    caption += " Answers and scores are those of offline programs." if results.offline else ""
    panels = {name: title for name, title in strict.items() if name in set(data["metric"])}
    chart = coverage_chart(data, panels, alt.Scale(zero=True, nice=True))
    return Figure("scores", "Scores at each budget", finished(chart), data, reading, caption)


def latency(results: Results, statistics: Statistics) -> Figure | None:
    """Median and 95th percentile of each arm's latency, budget by budget; None if none is known."""
    data = _latency_data(statistics)
    if data.is_empty():
        return None
    least = data["median"].min()
    kind = "log" if isinstance(least, float) and least > 0 else "linear"
    budgets = list(dict.fromkeys(data["budget"]))
    rows = [
        _latency_panel(data.filter(pl.col("budget") == budget), budget, kind, budget == budgets[-1])
        for budget in budgets
    ]
    spec = finished(alt.vconcat(*rows, spacing=18).resolve_scale(x="shared"))
    ordered = data.sort("median", maintain_order=True)
    fast, slow = ordered.row(0, named=True), ordered.row(-1, named=True)
    reading = (
        f"The least median is that of {fast['arm']}, {fast['median']:.2g} ms a question, and the largest that of "
        f"{slow['arm']}, {slow['median']:.2g} ms."
    )
    caption = "Time to compose the evidence of a question: median (dot) to 95th percentile (bar), on this machine."
    return Figure("latency", "Latency of each arm", spec, data, reading, caption)


def _highest(data: pl.DataFrame, metric: str, statistics: Statistics, words: Callable[[str], str]) -> str:
    """Which series has the highest mean of a measure at the largest budget of the first unit, and at the least."""
    own = data.filter((pl.col("metric") == metric) & ~pl.col("series").str.ends_with(USES_GOLD)).sort("order")
    unit = next((group.unit for group in statistics.groups if group.budget != UNBOUNDED and group.ranked), "none")
    bounded = own.filter(pl.col("part").str.ends_with(f" {unit}"))
    if bounded.is_empty():
        return "No arm that is held to a budget has a value."
    last = bounded.filter(pl.col("order") == pl.col("order").max()).sort("value", descending=True, maintain_order=True)
    top, first = last.row(0, named=True), bounded.row(0, named=True)
    before = bounded.filter((pl.col("series") == top["series"]) & (pl.col("order") == first["order"]))
    text = f"The highest mean at {top['budget']} is that of {top['series']}: {words(percent(top['value']))}"
    if first["order"] == top["order"] or before.is_empty():
        return f"{text}."
    return f"{text}, against {percent(before['value'][0])} at {first['budget']}."


def coverage_chart(
    data: pl.DataFrame, panels: Mapping[str, str] = COVERAGE, scale: alt.Scale | None = None
) -> alt.HConcatChart:
    """`coverage_data` with 95 % bands over conversations, or over questions where there is one conversation.

    More than `BANDS` series have no band: so many would hide each other. `scale`: of the shares, 0 to 1 if None.
    """
    shares = scale or alt.Scale(domain=[0, 1])
    series = list(dict.fromkeys(data["series"]))
    budgets = list(dict.fromkeys(data.sort("order")["budget"]))
    drawn = [_coverage_panel(data, name, title, series, budgets, shares) for name, title in panels.items()]
    return alt.hconcat(*drawn, spacing=28)


def coverage_data(results: Results, statistics: Statistics, panels: Mapping[str, str] = COVERAGE) -> pl.DataFrame:
    """A row per arm and measure of `panels`: `series, budget, order, part, metric, value, low, high`.

    A completion budget is written short, `C6+10`: ten records and what six calls add.

    Points of one series are joined only within a `part`, that is between budgets of one unit.
    """
    rows = []
    names = _series_names(results)
    for order, group in enumerate(statistics.groups):
        for arm in group.arms:
            for metric in panels:
                found = statistics.estimates[Cell(arm.label, ALL, metric)]
                by_cluster = found.cluster_low is not None
                low, high = (found.cluster_low, found.cluster_high) if by_cluster else (found.low, found.high)
                if found.value is not None:
                    part = f"{names[arm.label]} {group.unit}"
                    words = group.budget if group.unit == "completion" else group.words
                    rows.append((names[arm.label], words, order, part, metric, found.value, low, high))
    columns = ["series", "budget", "order", "part", "metric", "value", "low", "high"]
    frame = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
    return frame.with_columns(pl.col("value", "low", "high").cast(pl.Float64))


def _series_names(results: Results) -> dict[str, str]:
    """Arm label to series; an arm whose budget-less label is taken at its budget keeps its full label."""
    taken: set[tuple[str, str]] = set()
    names = {}
    for arm in results.arms:
        name = series_of(arm)
        name = arm.label if (name, arm.held_to) in taken else name
        taken.add((name, arm.held_to))
        names[arm.label] = f"{name}{USES_GOLD}" if arm.uses_gold else name
    return names


def _coverage_panel(
    data: pl.DataFrame, metric: str, title: str, series: list[str], budgets: list[str], shares: alt.Scale
) -> alt.LayerChart:
    """Bands behind lines; a whisker shows the interval of a point that no line joins to another budget."""
    at = data.filter(pl.col("metric") == metric).sort("order")
    x = alt.X("budget:N", sort=budgets, title=None, axis=alt.Axis(labelAngle=0, ticks=False))
    y = alt.Y("value:Q", title=None, scale=shares, axis=alt.Axis(format="%", tickCount=5))
    base = alt.Chart(at, title=title).encode(x=x, detail="part:N")
    legend = legend_of(series, below=len(budgets) > 3)  # beside wider panels a page would cut it
    colour = alt.Color("series:N", sort=series, scale=scale_of(series, COLOURS), legend=legend)
    dash = alt.StrokeDash("series:N", sort=series, scale=scale_of(series, DASHES), legend=None)
    shape = alt.Shape("series:N", sort=series, scale=scale_of(series, SHAPES), legend=legend)
    wide = at.filter(pl.len().over("part") > 1).filter(pl.lit(len(series) <= BANDS))
    lone = at.filter(pl.len().over("part") == 1)
    band = alt.Chart(wide).mark_area(opacity=0.1).encode(x=x, y="low:Q", y2="high:Q", color=colour, detail="part:N")
    line = base.mark_line(strokeWidth=1.6).encode(y=y, color=colour, strokeDash=dash)
    point = base.mark_point(size=46, filled=True, opacity=1).encode(y=y, color=colour, shape=shape)
    whisker = alt.Chart(lone).mark_rule(strokeWidth=1.4).encode(x=x, y="low:Q", y2="high:Q", color=colour)
    return alt.layer(band, whisker, line, point).properties(width=max(230, 76 * len(budgets)), height=380)


def _latency_data(statistics: Statistics) -> pl.DataFrame:
    median, p95 = LATENCIES
    rows = []
    for group in statistics.groups:
        for arm in group.ranked:
            middle = statistics.estimates[Cell(arm.label, ALL, median)].value
            tail = statistics.estimates[Cell(arm.label, ALL, p95)].value
            if middle is not None and tail is not None:
                rows.append((arm.label, group.words, middle, tail))
    return pl.DataFrame(rows, schema=["arm", "budget", "median", "p95"], orient="row")


def _latency_panel(data: pl.DataFrame, title: str, kind: Any, last: bool) -> alt.LayerChart:
    scale = alt.Scale(type=kind, nice=True, zero=kind == "linear")
    y = alt.Y("arm:N", sort=alt.SortField("median"), title=None, axis=alt.Axis(ticks=False, domain=False))
    x = alt.X("median:Q", title="milliseconds a question" if last else None, scale=scale, axis=alt.Axis(tickCount=6))
    base = alt.Chart(data, title=over_the_plot(title)).encode(y=y)
    span = base.mark_rule(opacity=0.6, color="currentColor").encode(x=x, x2="p95:Q")
    middle = base.mark_point(filled=True, opacity=1, size=50, shape="circle", color="#0072B2").encode(x=x)
    tail = base.mark_tick(thickness=2, size=11, color="currentColor").encode(x="p95:Q")
    return alt.layer(span, middle, tail).properties(width=520, height=alt.Step(20))

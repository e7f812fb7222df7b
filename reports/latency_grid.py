"""How does the time of a selection grow with candidates and records, beside one pass over the pool?"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import polars as pl

from reports.drawing import COLOURS, DASHES, SHAPES, Figure, finished, legend_of, over_the_plot

PAPERS_POOLS = "LoCoMo"  # the paper's times stand beside pools of its benchmark alone
HEADLINE = {"d": 1536, "P": 200, "K": 20}
COLUMNS: Mapping[str, pl.DataType] = {
    "pools": pl.String(),
    "d": pl.Int64(),
    "P": pl.Int64(),
    "K": pl.Int64(),
    "median ms": pl.Float64(),
    "p95 ms": pl.Float64(),
    "floor ms": pl.Float64(),
    "x floor": pl.Float64(),
    "published ms": pl.Float64(),
}
STEPS = tuple(step * 10.0**place for place in range(-4, 5) for step in (1, 2, 5))
BAR = "M-1.2,-0.2h2.4v0.4h-2.4Z"  # a line, in the legend of points
FLOOR, PRINTED = "one pass over the pool: the floor", "printed in the paper, another machine"


def latency_grid(cells: Sequence[Mapping[str, Any]]) -> Figure | None:
    """The figure of what `suffice bench readers` measured, its `cells`; None if none has all of `COLUMNS`.

    A row is one of `pools`, dimension `d`, candidates `P` and records `K`; times are milliseconds.
    """
    whole = [{name: row[name] for name in COLUMNS} for row in cells if COLUMNS.keys() <= row.keys()]
    if not whole:
        return None
    data = pl.DataFrame(whole, schema=dict(COLUMNS))
    drawn = _drawn(data)
    beside = PRINTED in set(drawn["series"])
    series = [*(f"K = {k}" for k in data["K"].unique().sort()), FLOOR, *([PRINTED] if beside else [])]
    sizes = data["P"].unique().sort().to_list()
    ends = 0.9 * min(drawn["ms"]), 1.1 * max(drawn["ms"])
    lines = [
        alt.hconcat(
            *(_panel(own, series, sizes, ends) for _, own in kind.group_by("d", maintain_order=True)), spacing=30
        )
        for _, kind in drawn.group_by("pools", maintain_order=True)
    ]
    caption = (
        "Median milliseconds of one MemPursuit selection, one thread, pools out of cache; both axes are logarithmic. "
        + "Grey: the paper's table 14, more records taking longer. " * beside
        + "Tells of the machine that measured it alone."
    )
    chart = alt.vconcat(*lines, spacing=22)
    return Figure("latency_grid", "Latency by candidates and records", finished(chart), data, _reading(data), caption)


def _reading(data: pl.DataFrame) -> str:
    kind = data["pools"][0]
    own = data.filter(pl.col("pools") == kind)
    at = own.filter(*(pl.col(name) == value for name, value in HEADLINE.items()))
    row = (at if at.height else own).row(0, named=True)
    same = own.filter(pl.col("d") == row["d"], pl.col("K") == row["K"]).sort("P")
    text = (
        f"{row['K']} records of {row['P']} candidates ({kind} pools, {row['d']:,} dimensions) take "
        f"{row['median ms']:.2f} ms, {row['x floor']:.1f} times one pass over the pool"
    )
    if same.height > 1:
        first, last = same.row(0, named=True), same.row(-1, named=True)
        text += f"; from {first['P']} to {last['P']} candidates that is {first['median ms']:.2f} to "
        text += f"{last['median ms']:.2f} ms"
    return text + "."


def _drawn(data: pl.DataFrame) -> pl.DataFrame:
    """`pools, d, P, series, k, ms`: measured times, the floor once a pool size, and what the paper printed."""
    at = ["pools", "d", "P"]
    own = data.select(*at, series=pl.format("K = {}", "K"), k=pl.format("K = {}", "K"), ms="median ms")
    floor = data.group_by(at, maintain_order=True).agg(ms=pl.col("floor ms").median())
    floor = floor.select(*at, series=pl.lit(FLOOR), k=pl.lit(FLOOR), ms="ms")
    printed = data.filter(pl.col("pools") == PAPERS_POOLS, pl.col("published ms").is_not_null())
    printed = printed.select(*at, series=pl.lit(PRINTED), k=pl.format("K = {}", "K"), ms="published ms")
    return pl.concat([own, floor, printed]).sort("pools", "d", descending=[False, True], maintain_order=True)


def _panel(
    data: pl.DataFrame, series: Sequence[str], sizes: Sequence[int], ends: tuple[float, float]
) -> alt.LayerChart:
    kind, d = data["pools"][0], data["d"][0]
    across = alt.Scale(type="log", domain=[min(sizes) * 0.93, max(sizes) * 1.07], nice=False)
    x = alt.X("P:Q", title="candidates (P)", scale=across, axis=alt.Axis(values=list(sizes), grid=False, format="d"))
    up = alt.Scale(type="log", domain=list(ends), nice=False)
    steps = [step for step in STEPS if ends[0] <= step <= ends[1]]
    y = alt.Y("ms:Q", title="ms a question", scale=up, axis=alt.Axis(values=steps, format="~g"))
    own = series.index(FLOOR)
    rest = len(series) - own
    colours = [*COLOURS[:own], *("currentColor", "#888888")[:rest]]
    shapes = [*SHAPES[:own], *(BAR, "circle")[:rest]]
    colour = alt.Color("series:N", scale=alt.Scale(domain=list(series), range=colours), legend=legend_of(series))
    shape = alt.Shape("series:N", scale=alt.Scale(domain=list(series), range=shapes), legend=legend_of(series))
    dash = alt.StrokeDash(
        "series:N",
        scale=alt.Scale(domain=list(series), range=[*DASHES[:own], *([5, 3], [1, 0])[:rest]]),
        legend=None,
    )
    base = alt.Chart(data, title=over_the_plot(f"{kind} pools, {d:,} dimensions")).encode(x=x, y=y)
    base = base.encode(color=colour, detail="k:N")
    measured = pl.col("series").is_in([FLOOR, PRINTED]).not_()
    points = alt.Chart(data.filter(measured)).encode(x=x, y=y, color=colour, shape=shape)
    printed = alt.Chart(data.filter(pl.col("series") == PRINTED)).encode(x=x, y=y, color=colour, shape=shape)
    return alt.layer(
        base.mark_line(strokeWidth=1.6).encode(strokeDash=dash),
        printed.mark_point(size=30, opacity=1, filled=False),
        points.mark_point(size=46, filled=True, opacity=1),
    ).properties(width=300, height=250)

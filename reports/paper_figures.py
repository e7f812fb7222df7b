"""What do the papers' figures look like with this run's numbers in them?"""

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from reports.drawing import COLOURS, Figure, finished, legend_of, over_the_plot
from reports.paper_files import cell_rows, reading
from reports.paper_tables import PaperTable

OURS, PAPER = "this run", "the paper"
CAPTION = "Filled: this run, with its 95 % interval; hollow: the paper. What differs and what lacks stands below."
ABREAST = 3
LOG_FROM = 30  # a column whose largest number is more than so many times its least is drawn on a log scale


def paper_figures(tables: Sequence[PaperTable]) -> list[Figure]:
    """A picture, called as its table, of each figure of the papers for which this run has a number."""
    return [
        Figure(table.name, table.title, finished(_chart(data)), data, reading(table), CAPTION)
        for table in tables
        if ".figure" in table.name and any(cell.ours is not None for cell in table.cells)
        for data in [cell_rows(table)]
    ]


def _chart(data: pl.DataFrame) -> alt.VConcatChart:
    """A panel for each column of which this run has a number, with an axis of its own: units differ."""
    known = data.filter(pl.col("ours").is_not_null().any().over("column"))
    known = known.filter(pl.any_horizontal(pl.col("ours", "published").is_not_null().any().over("row")))
    heads = known["column"].unique(maintain_order=True).to_list()
    rows = known["row"].unique(maintain_order=True).to_list()
    panels = [
        _panel(known.filter(pl.col("column") == head), head, rows, i % ABREAST == 0) for i, head in enumerate(heads)
    ]
    lines = [alt.hconcat(*panels[i : i + ABREAST], spacing=22) for i in range(0, len(panels), ABREAST)]
    return alt.vconcat(*lines, spacing=22)


def _panel(own: pl.DataFrame, head: str, rows: Sequence[str], first: bool) -> alt.LayerChart:
    axis = alt.Axis(labels=first, ticks=False, domain=False, grid=True, labelPadding=9)
    y = alt.Y("row:N", scale=alt.Scale(domain=list(rows)), title=None, axis=axis)
    numbers = [*own["ours"].drop_nulls(), *own["published"].drop_nulls()]
    wide = min(numbers) > 0 and max(numbers) > LOG_FROM * min(numbers)
    words = "log scale" if wide else None
    scale = alt.Scale(type="log", nice=True) if wide else alt.Scale(zero=False, nice=True)
    x = alt.X("value:Q", title=words, scale=scale, axis=alt.Axis(tickCount=4))
    ours = own.select("row", value="ours", whose=pl.lit(OURS)).drop_nulls()
    paper = own.select("row", value="published", whose=pl.lit(PAPER)).drop_nulls()
    ends = alt.Chart(own.drop_nulls("low"), title=over_the_plot(head)).encode(y=y, x=alt.X("low:Q", title=words))
    seen = {"x": x, "y": y, "color": _of(alt.Color, COLOURS[:2]), "shape": _of(alt.Shape, ("circle", "diamond"))}
    return alt.layer(
        ends.mark_rule(strokeWidth=2.4, opacity=0.5, color=COLOURS[0]).encode(x2="high:Q"),
        alt.Chart(paper).mark_point(size=60, strokeWidth=1.8, opacity=1).encode(**seen),
        alt.Chart(ours).mark_point(size=46, filled=True, opacity=1).encode(**seen),
    ).properties(width=210, height=alt.Step(20))


def _of(kind: Any, cycle: Sequence[str]) -> Any:
    series = (OURS, PAPER)
    return kind("whose:N", scale=alt.Scale(domain=list(series), range=list(cycle)), legend=legend_of(series))

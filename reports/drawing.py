"""What do all pictures of a report have in common?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import vl_convert

from reports.files import alone, csv, write
from storage.places import write_whole

# Okabe & Ito 2008 without yellow, neighbours unlike in lightness; shape and dash say the same in grey.
# Eight colours and seven shapes, so that the ninth series does not look like the first.
COLOURS = ("#0072B2", "#D55E00", "currentColor", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#888888")
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "cross",
    "triangle-down",
    "triangle-right",
)
DASHES: tuple[list[int], ...] = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3], [4, 4], [1, 3])
SIDE_BY_SIDE = 12
FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
CONFIG: Mapping[str, Any] = {
    "font": FONT,
    "background": "transparent",
    "padding": {"left": 24, "right": 40, "top": 5, "bottom": 5},  # fonts differ from the one measured here
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "domainColor": "currentColor",
        "tickColor": "currentColor",
        "gridColor": "currentColor",
        "gridOpacity": 0.12,
        "domainOpacity": 0.4,
        "tickOpacity": 0.4,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "labelLimit": 320,
    },
    "axisLeft": {"labelPadding": 7},  # a point at the axis must not reach into its label
    "title": {"color": "currentColor", "fontSize": 12, "fontWeight": 600, "anchor": "start", "offset": 10},
    "legend": {
        "labelColor": "currentColor",
        "titleColor": "currentColor",
        "labelFontSize": 11,
        "labelLimit": 320,
        "symbolSize": 70,
        "symbolStrokeWidth": 0,
        "rowPadding": 3,
        "columnPadding": 28,  # as for the padding: a wider font must not reach the next column
    },
    "header": {
        "labelColor": "currentColor",
        "labelFontSize": 11,
        "labelFontWeight": 600,
        "labelAnchor": "start",
        "labelOrient": "top",
        "title": None,
    },
}


@dataclass(frozen=True)
class Figure:
    """A picture with its data and its reading. `spec`: Vega-Lite, drawn without network."""

    name: str
    title: str
    spec: dict[str, Any]
    data: pl.DataFrame
    reading: str
    caption: str

    @cached_property
    def svg(self) -> str:
        """For a page, whose text colour it takes."""
        return str(vl_convert.vegalite_to_svg(self.spec))

    def write_png(self, path: Path) -> Path:
        """Write it as a picture on white, whole or not at all."""
        spec = {**self.spec, "config": {**self.spec["config"], "background": "white"}}
        write_whole(path, vl_convert.vegalite_to_png(spec, scale=2))
        return path

    def write(self, folder: Path) -> dict[str, Path]:
        """Its picture twice and its data, `.svg`, `.png` and `.csv`; returns file name → path."""
        texts = {f"{self.name}.svg": alone(self.svg), f"{self.name}.csv": csv(self.data)}
        paths = {name: write(folder / name, text) for name, text in texts.items()}
        return paths | {f"{self.name}.png": self.write_png(folder / f"{self.name}.png")}


def finished(chart: alt.Chart | alt.LayerChart | alt.HConcatChart | alt.VConcatChart) -> dict[str, Any]:
    """A chart as Vega-Lite in the reports' style; not checked against its schema again, which is half of the work."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    return {**spec, "config": dict(CONFIG)}


def scale_of(series: Sequence[str], cycle: tuple[Any, ...]) -> alt.Scale:
    """A colour, shape or dash for each series, beginning again where there are more series than those."""
    return alt.Scale(domain=list(series), range=[cycle[i % len(cycle)] for i in range(len(series))])


def legend_of(series: Sequence[str], below: bool = False) -> alt.Legend:
    """Beside the plot, in two columns where there are many series, or below it, in four."""
    orient, columns = ("bottom", 4) if below else ("right", 1 if len(series) <= SIDE_BY_SIDE else 2)
    return alt.Legend(title=None, orient=orient, columns=columns, symbolOpacity=1, symbolFillColor="transparent")


def over_the_plot(title: str) -> alt.TitleParams:
    """A heading that begins where the plot does, whatever its labels' width."""
    return alt.TitleParams(title, frame="group")

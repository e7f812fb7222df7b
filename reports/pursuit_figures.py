"""What do a pursuit's analyses look like?"""

from collections.abc import Mapping
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import vl_convert

from reports.drawing import COLOURS, CONFIG
from reports.pursuit_analysis import (
    CURVES,
    OVERLAP_BUDGETS,
    PAIRS_GROUP,
    PAPER_GROUP,
    POLICIES,
    ROUNDING,
    Found,
    Key,
    Study,
    budgets,
    nested_curve,
    overall,
    preferring,
)
from reports.pursuit_published import OVERLAP, OVERLAP_BENCHMARK
from reports.tables import Estimate

SHADES = {"hybrid": COLOURS[0], "mem_pursuit": COLOURS[6]}  # dark and light, also in grey
ABOVE, BELOW = COLOURS[3], COLOURS[1]  # green and orange, as in the paper's histograms
BIN = 0.02
STAR = "M0,-1L.29,-.4L.95,-.31L.48,.15L.59,.81L0,.5L-.59,.81L-.48,.15L-.95,-.31L-.29,-.4Z"


def draw(study: Study, found: Found) -> dict[str, str]:
    """Figure name to SVG; drawn without network; inherits the text colour of the page it stands in."""
    rows = overall(study)
    return {
        "overlap": _svg(_overlap(found, OVERLAP if study.benchmark == OVERLAP_BENCHMARK else {})),
        "curve": _svg(_curve(rows, found)),
        "reconstruction": _svg(
            _histogram(
                rows["residual_advantage"],
                "residual of hybrid − residual of gold, a question",
                ("gold closer", "hybrid closer"),
            )
        ),
        "preference": _svg(
            _histogram(
                preferring(rows, preference_group(rows))["preference"],
                "residual score of missing evidence − of the comparator, mean of a question",
                ("missing evidence preferred", "comparator preferred"),
            )
        ),
    }


def preference_group(rows: pl.DataFrame) -> str:
    """Whose histogram is drawn: the paper's condition, or all questions where none meets it."""
    return PAIRS_GROUP if preferring(rows, PAPER_GROUP).is_empty() else PAPER_GROUP


def bins(values: pl.Series, names: tuple[str, str]) -> pl.DataFrame:
    """`start, end, side, questions`: bins of equal width none of which holds both signs; values at 0 are left out."""
    known = values.drop_nulls().to_numpy()
    signed = known[np.abs(known) > ROUNDING]
    place, counts = np.unique(np.floor(signed / BIN).astype(np.int64), return_counts=True)
    frame = pl.DataFrame({"start": place * BIN, "end": (place + 1) * BIN, "questions": counts})
    return frame.with_columns(side=pl.when(pl.Series(place >= 0)).then(pl.lit(names[0])).otherwise(pl.lit(names[1])))


def _overlap(found: Found, published: Mapping[tuple[str, str], float]) -> alt.HConcatChart:
    panels = {
        "Hybrid's records replaced": ("replaced",),
        "Gold sessions found, mean share": tuple(f"{policy} session recall" for policy in POLICIES),
        "All gold sessions found": tuple(f"{policy} complete sessions" for policy in POLICIES),
    }
    return alt.hconcat(*(_bars(found, published, title, names) for title, names in panels.items()), spacing=30)


def _bars(
    found: Found, published: Mapping[tuple[str, str], float], title: str, measures: tuple[str, ...]
) -> alt.LayerChart:
    rows: list[dict[str, Any]] = []
    for k in OVERLAP_BUDGETS:
        for measure in measures:
            policy = "mem_pursuit" if measure == "replaced" else measure.split()[0]
            own = found[Key("overlap", f"k{k}", measure)]
            low, high = _interval(own)
            rows.append(
                {"k": f"{k} records", "policy": policy, "value": own.value, "low": low, "high": high}
                | {"printed": published.get((f"k{k}", measure))}
            )
    data = pl.DataFrame(rows, infer_schema_length=None).with_columns(
        pl.col("value", "low", "high", "printed").cast(pl.Float64)
    )
    x = alt.X("k:N", sort=None, title=None, axis=alt.Axis(labelAngle=0, ticks=False))
    side = alt.XOffset("policy:N", sort=list(POLICIES))
    y = alt.Y("value:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=5))
    base = alt.Chart(data, title=title).encode(x=x, xOffset=side)
    bar = base.mark_bar(opacity=0.85, width=alt.RelativeBandSize(0.8)).encode(y=y, color=_policy_colour())
    whisker = base.mark_rule(strokeWidth=1.4, color="currentColor").encode(y="low:Q", y2="high:Q")
    printed = base.mark_point(shape="diamond", size=52, strokeWidth=1.6, opacity=1, color="currentColor").encode(
        y="printed:Q"
    )
    return alt.layer(bar, whisker, printed).properties(width=60 + 90 * len(measures), height=250)


def _curve(rows: pl.DataFrame, found: Found) -> alt.HConcatChart:
    dense = nested_curve(rows).drop_nulls("value")
    at = pl.DataFrame(
        [
            {"k": k, "policy": policy, "measure": measure, "low": low, "high": high}
            for k in budgets(rows)
            for policy in POLICIES
            for measure in CURVES.values()
            for low, high in [_interval(found[Key("curve", f"k{k}", f"{policy} {measure}")])]
        ],
        schema={"k": pl.Int64, "policy": pl.String, "measure": pl.String, "low": pl.Float64, "high": pl.Float64},
    )
    stops = pl.DataFrame(
        [
            {
                "k": found[Key("curve", "adaptive", "records")].value,
                "policy": policy,
                "measure": measure,
                "value": found[Key("curve", "adaptive", f"{policy} {measure}")].value,
            }
            for policy in POLICIES
            for measure in CURVES.values()
        ],
        schema={"k": pl.Float64, "policy": pl.String, "measure": pl.String, "value": pl.Float64},
    ).drop_nulls()
    ticks = sorted({1, 2, *budgets(rows)})
    return alt.hconcat(*(_curve_panel(dense, at, stops, measure, ticks) for measure in CURVES.values()), spacing=36)


def _curve_panel(
    dense: pl.DataFrame, at: pl.DataFrame, stops: pl.DataFrame, measure: str, ticks: list[int]
) -> alt.LayerChart:
    own = pl.col("measure") == measure
    x = alt.X("k:Q", title="records", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(values=ticks, grid=False))
    y = alt.Y("value:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=5))
    colour = _policy_colour("stroke")
    line = alt.Chart(dense.filter(own), title=measure.capitalize()).mark_line(strokeWidth=1.8)
    whisker = alt.Chart(at.filter(own)).mark_rule(strokeWidth=1.3, opacity=0.75)
    star = alt.Chart(stops.filter(own)).mark_point(
        shape=STAR, size=190, filled=True, opacity=1, stroke="currentColor", strokeWidth=0.8
    )
    return alt.layer(
        whisker.encode(x=x, y="low:Q", y2="high:Q", color=colour),
        line.encode(x=x, y=y, color=colour),
        star.encode(x=x, y=y, color=colour),
    ).properties(width=400, height=300)


def _histogram(values: pl.Series, title: str, names: tuple[str, str]) -> alt.LayerChart:
    data = bins(values, names)
    counts: Mapping[str, int] = {name: int(data.filter(pl.col("side") == name)["questions"].sum()) for name in names}
    named = {name: f"{name}: {count:,}" for name, count in counts.items()}
    data = data.with_columns(pl.col("side").replace(named))
    colour = alt.Color(
        "side:N",
        scale=alt.Scale(domain=list(named.values()), range=[ABOVE, BELOW]),
        legend=alt.Legend(title=None, orient="top", direction="vertical", symbolType="square"),
    )
    bars = (
        alt.Chart(data)
        .mark_bar(stroke=None, binSpacing=1)
        .encode(
            x=alt.X("start:Q", bin="binned", title=title, axis=alt.Axis(tickCount=9, format="+.2f", grid=False)),
            x2="end:Q",
            y=alt.Y("questions:Q", title="questions", axis=alt.Axis(tickMinStep=1)),
            color=colour,
        )
    )
    zero = alt.Chart(pl.DataFrame({"zero": [0.0]})).mark_rule(strokeDash=[5, 4], color="currentColor", opacity=0.8)
    return alt.layer(bars, zero.encode(x="zero:Q")).properties(width=760, height=260)


def _policy_colour(symbol: Any = "square") -> alt.Color:
    scale = alt.Scale(domain=list(SHADES), range=list(SHADES.values()))
    legend = alt.Legend(title=None, orient="right", symbolOpacity=1, symbolType=symbol, symbolStrokeWidth=2.4)
    return alt.Color("policy:N", scale=scale, legend=legend)


def _interval(own: Estimate) -> tuple[float | None, float | None]:
    """Over conversations, or over questions where there is one conversation."""
    return (own.cluster_low, own.cluster_high) if own.cluster_low is not None else (own.low, own.high)


def _svg(chart: alt.LayerChart | alt.HConcatChart) -> str:
    spec = chart.to_dict()
    spec["config"] = dict(CONFIG)
    return str(vl_convert.vegalite_to_svg(spec))

"""How far do judges agree, and what do their measured errors make of their scores?"""

from collections.abc import Sequence
from typing import Any

import altair as alt
import polars as pl

from reports.agreement import pairwise
from reports.calibration import WRONG, Errors, Proportion, corrected
from reports.calibration_tables import scores_of
from reports.drawing import COLOURS, SHAPES, Figure, finished, legend_of, over_the_plot, scale_of
from reports.findings import percent
from reports.grid import ALL
from reports.measures import judged_measures
from reports.results import Results
from reports.tables import Cell, Statistics, overall

OFFLINE = " Answers and scores are those of offline programs."
RATES = {
    "specific": "accepts wrong, specific replies",
    "vague": "accepts wrong, vague replies",
    "good": "rejects good replies",
}
WIDTH = 460
SCORE, PLANTED, RIGHT = "strict score", "share of planted replies", "share of right answers"
SEEN = "as judged"
READ = {SEEN: SEEN, **{truth: f"corrected by {truth} replies" for truth in WRONG}}
NUMBERS = ("value", "low", "high")


def agreement(results: Results, statistics: Statistics) -> Figure | None:
    """Each arm's strict score under every judge, and how each two judges decide on the same answers.

    None unless two judges have judged. Data: `part` (score, pair), `arm, judge, other, value, low, high, kappa, n`.
    """
    scores, pairs = _scores(results, statistics), _pairs(results)
    if scores["judge"].n_unique() < 2 or pairs.is_empty():
        return None
    data = pl.concat([scores, pairs], how="diagonal")
    chart = _stacked(_scores_panel(scores, results.judges), _pairs_panel(pairs, results.judges))
    caption = (
        "Above: score over every expected cell, not judged counts as 0, with the 95 % interval over questions. Below: "
        "distinct answers that both judged, the share decided alike (above 0.5 is right) and Cohen's kappa, darker is "
        "more alike."
    )
    if results.offline:
        caption += OFFLINE
    return Figure("agreement", "Agreement of judges", finished(chart), data, _least_alike(pairs), caption)


def calibration(results: Results, statistics: Statistics) -> Figure | None:
    """Judges' errors on planted replies, and the scores that they make likely; None where no errors were measured.

    Data: `judge, part` (error, or the bound of `arm`), `arm?, measure, value, low, high, n`.
    """
    errors = _errors(results)
    if errors.is_empty():
        return None
    likely = pl.concat([_likely(results, statistics, judge) for judge in results.calibrations])
    data = pl.concat([errors, likely], how="diagonal")
    panels = [_errors_panel(errors), *(_likely_panel(own, judge) for judge, own in _by_judge(likely).items())]
    caption = (
        "Thin: 95 % interval, Wilson's of errors, Lang & Reiczigel's of corrected scores. Thick: a reader's wrong "
        "answers lie between specific and vague, so that the two corrections bound the truth; one that is not "
        "possible is not drawn."
    )
    if results.offline:
        caption += OFFLINE
    chart = _stacked(*panels)
    title = "Errors of judges, and scores corrected for them"
    return Figure("calibration", title, finished(chart), data, _worst(errors), caption)


def _scores(results: Results, statistics: Statistics) -> pl.DataFrame:
    rows = []
    for group in statistics.groups:
        for arm in group.arms:
            for judge in results.judges:
                strict, judged = (statistics.estimates[Cell(arm.label, ALL, m.name)] for m in judged_measures(judge))
                if judged.n:
                    label = f"{arm.label} (uses gold)" if arm.uses_gold else arm.label
                    rows.append(("score", label, judge, strict.value, strict.low, strict.high, strict.n))
    names = ["part", "arm", "judge", *NUMBERS, "n"]
    return _numbers(pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None))


def _pairs(results: Results) -> pl.DataFrame:
    if len(results.judges) < 2:
        return pl.DataFrame()
    asked = overall(results).select("question_id")
    answers = results.cells.select("arm", "question_id", "answer").join(asked, on="question_id", how="semi")
    known = results.verdicts.join(answers, on=["arm", "question_id"]).filter(pl.col("answer").is_not_null())
    found = pairwise(known).filter((pl.col("one") != "all") & (pl.col("n") > 0))
    return found.select(part=pl.lit("pair"), judge="one", other="other", value="agreement", kappa="kappa", n="n")


def _least_alike(pairs: pl.DataFrame) -> str:
    row = pairs.sort("value", maintain_order=True).row(0, named=True)
    kappa = "with no kappa, as one decided all alike" if row["kappa"] is None else f"kappa {row['kappa']:.2f}"
    who = f"{row['judge']} and {row['other']}"
    who = who if len(pairs) == 1 else f"Of {len(pairs):,} pairs of judges, the least alike, {who},"
    return f"{who} decide alike on {percent(row['value'])} of {row['n']:,} distinct answers, {kappa}."


def _scores_panel(scores: pl.DataFrame, judges: Sequence[str]) -> alt.LayerChart:
    arms = list(dict.fromkeys(scores["arm"]))
    axis = alt.Axis(format="%", tickCount=5)
    x = alt.X("value:Q", title=SCORE, scale=alt.Scale(zero=True, nice=True), axis=axis)
    y = alt.Y("arm:N", sort=arms, title=None, axis=alt.Axis(ticks=False, domain=False))
    base = alt.Chart(scores, title=over_the_plot("Scores by judge")).encode(y=y, color=_named("judge", judges, COLOURS))
    return alt.layer(
        base.mark_rule(strokeWidth=1.6, opacity=0.6).encode(x=alt.X("low:Q", title=SCORE), x2="high:Q"),
        base.mark_point(size=46, filled=True, opacity=1).encode(x=x, shape=_named("judge", judges, SHAPES)),
    ).properties(width=WIDTH, height=alt.Step(18))


def _pairs_panel(pairs: pl.DataFrame, judges: Sequence[str]) -> alt.LayerChart:
    """Half of a square: each pair once."""
    shown = pairs.with_columns(
        said=pl.format("{} %", (100 * pl.col("value")).round(1)),
        kappa_said=pl.when(pl.col("kappa").is_null())
        .then(pl.lit("no kappa"))
        .otherwise(pl.format("kappa {}", pl.col("kappa").round(2).cast(pl.String).str.replace("-", "−"))),
    )
    axis = alt.Axis(labelAngle=0, ticks=False, domain=False, labelLimit=110)
    base = alt.Chart(shown, title=over_the_plot("Decided alike")).encode(
        x=alt.X("judge:N", sort=list(judges), title=None, axis=axis),
        y=alt.Y("other:N", sort=list(judges), title=None, axis=alt.Axis(ticks=False, domain=False)),
    )
    scale = alt.Scale(domain=[0, 1], scheme="blues")
    ink = alt.condition("datum.value > 0.62", alt.value("white"), alt.value("#111"))
    return alt.layer(
        base.mark_rect(stroke="white", strokeWidth=1).encode(color=alt.Color("value:Q", scale=scale, legend=None)),
        base.mark_text(fontSize=12, fontWeight=600, dy=-7).encode(text="said:N", color=ink),
        base.mark_text(fontSize=10.5, dy=9).encode(text="kappa_said:N", color=ink),
    ).properties(width=alt.Step(118), height=alt.Step(52))


def _errors(results: Results) -> pl.DataFrame:
    rows = []
    for judge, found in results.calibrations.items():
        rates: dict[str, Proportion | None] = {truth: found.false_accept.get(truth) for truth in WRONG}
        for truth, own in (rates | {"good": found.false_reject}).items():
            if own is not None and own.rate is not None:
                rows.append((judge, "error", RATES[truth], own.rate, own.low, own.high, own.n))
    names = ["judge", "part", "measure", *NUMBERS, "n"]
    return _numbers(pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None))


def _likely(results: Results, statistics: Statistics, judge: str) -> pl.DataFrame:
    """What each arm scores, and what that corrects to by each kind of wrong reply."""
    rows, scores = [], scores_of(results, judge)
    for group in statistics.groups:
        for arm in group.arms:
            label = f"{arm.label} (uses gold)" if arm.uses_gold else arm.label
            n, own = len(scores.get(arm.label, [])), _bounds(scores.get(arm.label, []), results.calibrations[judge])
            rows += [(judge, group.words, label, measure, *numbers, n) for measure, numbers in own.items()]
    names = ["judge", "part", "arm", "measure", *NUMBERS, "n"]
    return _numbers(pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None))


def _bounds(
    scores: Sequence[float | None], errors: Errors
) -> dict[str, tuple[float | None, float | None, float | None]]:
    """Measure → value, low, high; nothing where there are no scores or no correction is possible."""
    seen, _ = corrected(scores, errors)
    found = {READ[truth]: own for truth in WRONG if (own := corrected(scores, errors, truth)[1])}
    as_judged = {SEEN: (seen.rate, seen.low, seen.high)} if seen.n else {}
    return as_judged | {name: (own.value, own.low, own.high) for name, own in found.items()}


def _by_judge(likely: pl.DataFrame) -> dict[str, pl.DataFrame]:
    return {str(judge): own for (judge,), own in likely.group_by("judge", maintain_order=True)}


def _worst(errors: pl.DataFrame) -> str:
    row = errors.sort("value", descending=True, maintain_order=True).row(0, named=True)
    does, _, what = row["measure"].partition(" ")
    return f"The error seen most is that of {row['judge']}: it {does} {percent(row['value'])} of {row['n']:,} {what}."


def _errors_panel(errors: pl.DataFrame) -> alt.LayerChart:
    """A line of rows a judge, each error a little below the one before it."""
    measures = list(RATES.values())
    y = alt.Y("judge:N", sort=None, title=None, axis=alt.Axis(ticks=False, domain=False))
    base = alt.Chart(errors, title=over_the_plot("Errors on planted replies")).encode(
        y=y, yOffset=alt.YOffset("measure:N", sort=measures), color=_named("measure", measures, COLOURS)
    )
    return alt.layer(
        base.mark_rule(strokeWidth=1.6, opacity=0.6).encode(x=alt.X("low:Q", title=PLANTED), x2="high:Q"),
        base.mark_point(size=46, filled=True, opacity=1).encode(
            x=_share(PLANTED), shape=_named("measure", measures, SHAPES)
        ),
    ).properties(width=WIDTH, height=alt.Step(9))


def _likely_panel(likely: pl.DataFrame, judge: str) -> alt.LayerChart:
    """A row an arm: thick between the two corrections, thin as far as their intervals reach."""
    measures, bounds = list(READ.values()), likely.filter(pl.col("measure") != SEEN)
    spans = bounds.group_by("arm", maintain_order=True).agg(
        least=pl.col("value").min(), most=pl.col("value").max(), low=pl.col("low").min(), high=pl.col("high").max()
    )
    arms = likely["arm"].unique(maintain_order=True).to_list()
    y = alt.Y("arm:N", sort=arms, title=None, axis=alt.Axis(ticks=False, domain=False))
    title = over_the_plot(f"Scores by {judge}, and corrected for its errors")
    span = alt.Chart(spans, title=title).encode(y=y)
    x = _share(RIGHT)
    return alt.layer(
        span.mark_rule(strokeWidth=1, color="currentColor").encode(x=alt.X("low:Q", title=RIGHT), x2="high:Q"),
        span.mark_rule(strokeWidth=3.2, opacity=0.45, color="currentColor").encode(
            x=alt.X("least:Q", title=RIGHT), x2="most:Q"
        ),
        alt.Chart(likely)
        .mark_point(size=46, filled=True, opacity=1)
        .encode(x=x, y=y, color=_named("measure", measures, COLOURS), shape=_named("measure", measures, SHAPES)),
    ).properties(width=WIDTH, height=alt.Step(18))


def _share(title: str) -> alt.X:
    return alt.X("value:Q", title=title, scale=alt.Scale(zero=True, nice=True), axis=alt.Axis(format="%", tickCount=5))


def _named(field: str, series: Sequence[str], cycle: tuple[Any, ...]) -> Any:
    """A series' colour or shape, in one legend."""
    kind = alt.Shape if cycle is SHAPES else alt.Color
    return kind(f"{field}:N", sort=list(series), scale=scale_of(series, cycle), legend=legend_of(series))


def _stacked(*panels: alt.LayerChart) -> alt.VConcatChart:
    return alt.vconcat(*panels, spacing=26).resolve_scale(color="independent", shape="independent")


def _numbers(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col(NUMBERS).cast(pl.Float64))

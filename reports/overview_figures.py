"""How do a run's arms compare at a glance?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import altair as alt
import polars as pl

from reports.comparisons import Comparison, Contrast
from reports.drawing import COLOURS, Figure, finished, over_the_plot
from reports.figures import coverage, latency, scores
from reports.findings import percent, points
from reports.grid import ALL
from reports.judge_figures import agreement, calibration
from reports.results import Results
from reports.tables import PRIMARY, Cell, Statistics, baseline_of, overall

COSTS = {"calls": "access calls a question, mean", "tokens": "tokens of evidence a question, mean"}
SIDES = ("above", "below", "unclear", "equal")
SIDE_COLOURS = (COLOURS[3], COLOURS[1], "#888888", "#888888")
SIDE_SHAPES = ("triangle-right", "triangle-left", "circle", "cross")
KEY_STEP = 16
LOG_FROM = 8  # a cost that spans more than so many times its least is drawn on a log scale
KNOWN = 0.95  # the share of questions for which an arm must be known to stand beside others


def overview(results: Results, statistics: Statistics, comparisons: Mapping[Contrast, Comparison]) -> list[Figure]:
    """A report's figures; one that has nothing to show is left out.

    Arms whose complete evidence is known for much fewer questions than that of others are left out, as captions say.
    """
    counts = {arm.label: statistics.estimates[Cell(arm.label, ALL, PRIMARY)].n for arm in results.arms}
    whole = {label for label, n in counts.items() if n >= KNOWN * max(counts.values())}
    groups = [
        replace(
            group,
            ranked=tuple(arm for arm in group.ranked if arm.label in whole),
            ceilings=tuple(arm for arm in group.ceilings if arm.label in whole),
        )
        for group in statistics.groups
    ]
    kept = replace(results, arms=[arm for arm in results.arms if arm.label in whole])
    known = replace(statistics, groups=tuple(group for group in groups if group.arms))

    def forest(results: Results, statistics: Statistics) -> Figure | None:
        return _forest(results, statistics, comparisons)

    drawn = (coverage, _cost, latency, forest, _heat_map, _reuse, scores, agreement, calibration)
    fewer = len(counts) - len(whole)
    arms = f"{fewer:,} arm{'s' if fewer != 1 else ''}"
    left = f" Left out: {arms} known for less than {100 * KNOWN:.0f} % of the questions." if fewer else ""
    found = [figure for draw in drawn if (figure := draw(kept, known)) is not None]
    return [replace(figure, caption=figure.caption + left) for figure in found]


def _cost(results: Results, statistics: Statistics) -> Figure | None:
    """Complete evidence against calls and tokens; arms that no other beats at a lower or equal cost are the front.

    A cost that is the same for all arms has no panel.
    """
    rows = []
    for arm in (arm for arm in results.arms if not arm.uses_gold):
        quality = statistics.estimates[Cell(arm.label, ALL, PRIMARY)].value
        for cost in COSTS:
            spent = statistics.estimates[Cell(arm.label, ALL, cost)].value
            if quality is not None and spent is not None:
                rows.append((arm.label, cost, spent, quality))
    if not rows:
        return None
    data = pl.DataFrame(rows, schema=["arm", "cost", "spent", "quality"], orient="row")
    data = pl.concat([_front(own) for _, own in data.group_by("cost", maintain_order=True)])
    costs = [cost for cost in COSTS if data.filter(pl.col("cost") == cost)["spent"].n_unique() > 1] or ["tokens"]
    panels = [_cost_panel(data.filter(pl.col("cost") == cost), COSTS[cost]) for cost in costs]
    tokens = data.filter((pl.col("cost") == "tokens") & pl.col("front").is_not_null()).sort("front")
    reading = (
        f"{len(tokens):,} of {data['arm'].n_unique():,} arms are not beaten by another that hands over as few tokens"
    )
    cheapest, best = tokens.row(0, named=True), tokens.row(-1, named=True)
    reading += (
        f": from {cheapest['arm']} ({cheapest['spent']:,.0f} tokens, {percent(cheapest['quality'])}) to {best['arm']} "
        f"({best['spent']:,.0f}, {percent(best['quality'])})."
    )
    chart = alt.hconcat(*panels, spacing=24)
    caption = "Numbered: the Pareto front, more complete evidence than any arm that costs no more. Grey: all others."
    return Figure("cost", "Quality against calls and tokens", finished(chart), data, reading, caption)


def _front(own: pl.DataFrame) -> pl.DataFrame:
    """With `front`: the arm's place on the front by cost, null for one that is beaten; of equals the first stands."""
    ordered = own.with_row_index("at").sort(["spent", "quality", "at"], descending=[False, True, False])
    before = pl.col("quality").cum_max().shift(1)
    leads = before.is_null() | (pl.col("quality") > before)
    numbered = ordered.with_columns(front=pl.when(leads).then(leads.cast(pl.Int64).cum_sum()))
    return numbered.sort("at").drop("at")


def _cost_panel(data: pl.DataFrame, title: str) -> alt.HConcatChart:
    front = data.filter(pl.col("front").is_not_null()).sort("front")
    least, most = (float(own) for own in (data["spent"].to_numpy().min(), data["spent"].to_numpy().max()))
    wide = least > 0 and most > LOG_FROM * least
    scale = alt.Scale(type="log", nice=True) if wide else alt.Scale(zero=True, nice=True)
    x = alt.X(
        "spent:Q",
        title=f"{title} (log scale)" if wide else title,
        scale=scale,
        axis=alt.Axis(tickCount=4, grid=not wide),
    )
    y = alt.Y("quality:Q", title="all gold turns found", scale=alt.Scale(zero=False), axis=alt.Axis(format="%"))
    others = alt.Chart(data.filter(pl.col("front").is_null())).encode(x=x, y=y)
    leading = alt.Chart(front).encode(x=x, y=y)
    chart = alt.layer(
        others.mark_point(size=32, color="#888888", opacity=0.75, strokeWidth=1.2),
        leading.mark_line(color=COLOURS[0], interpolate="step-after", strokeWidth=1.4, opacity=0.7),
        leading.mark_point(size=52, color=COLOURS[0], filled=True, opacity=1),
        *(_numbers(leading, odd, away) for odd, away in ((1, -8), (0, 9))),  # on both free sides of the steps in turn
    ).properties(width=300, height=320)
    named = front.select("front", text=pl.format("{}  {}", "front", "arm"))
    key = alt.Chart(named).mark_text(align="left", fontSize=11, color="currentColor", limit=230)
    rows = alt.Y("front:O", axis=None)
    return alt.hconcat(
        chart,
        key.encode(y=rows, x=alt.value(0), text="text:N").properties(width=210, height=alt.Step(KEY_STEP)),
        spacing=8,
    )


def _numbers(leading: alt.Chart, odd: int, away: int) -> alt.Chart:
    """The places on the front that are odd, or else even, `away` points right of and below theirs."""
    text = leading.mark_text(dx=away, dy=away, fontSize=11, fontWeight=600, color="currentColor")
    return text.encode(text="front:Q").transform_filter(f"datum.front % 2 == {odd}")


def _forest(results: Results, statistics: Statistics, comparisons: Mapping[Contrast, Comparison]) -> Figure | None:
    """Complete evidence of each arm less hybrid's, bound by bound."""
    rows, baselines = [], baseline_of(results.arms)
    for group in statistics.groups:
        for arm in group.ranked:
            pair = comparisons.get(Contrast(arm.label, baselines.get(arm.label, ""), ALL, PRIMARY))
            if pair is None or pair.difference.value is None:
                continue
            found = pair.difference
            low, high = found.cluster_low, found.cluster_high
            rows.append((arm.label, group.words, found.value, found.low, found.high, low, high, pair.verdict, found.n))
    if not rows:
        return None
    names = ["arm", "budget", "difference", "low", "high", "cluster_low", "cluster_high", "side", "n"]
    data = pl.DataFrame(rows, schema=names, orient="row", infer_schema_length=None)
    data = data.with_columns(pl.col(names[2:7]).cast(pl.Float64))
    budgets = list(dict.fromkeys(data["budget"]))
    known = [value for name in names[2:7] for value in data[name].drop_nulls()]
    ends = 100 * min(0.0, *known), 100 * max(0.0, *known)
    panels = [_forest_panel(data.filter(pl.col("budget") == own), own, ends, own == budgets[-1]) for own in budgets]
    counts = {side: int((data["side"] == side).sum()) for side in SIDES}
    top = data.sort("difference", descending=True).row(0, named=True)
    reading = (
        f"Of {len(data):,} arms with a hybrid to stand beside, {counts['above']:,} are shown to be above it and "
        f"{counts['below']:,} below; the highest difference is "
        f"{points(top['difference'])} points, {top['arm']}."
    )
    caption = (
        "All gold turns found, arm less hybrid under the same bound, percentage points, paired. Thick: 95 % interval "
        "over questions; thin: over conversations. A triangle: neither reaches 0 and Holm's p is at most 0.05; a grey "
        "dot: a difference is not shown."
    )
    return Figure(
        "differences", "Differences from hybrid", finished(alt.vconcat(*panels, spacing=16)), data, reading, caption
    )


def _forest_panel(data: pl.DataFrame, title: str, ends: tuple[float, float], last: bool) -> alt.LayerChart:
    scale, words = alt.Scale(domain=list(ends), nice=True), "percentage points" if last else None
    shown = data.with_columns(pl.col("difference", "low", "high", "cluster_low", "cluster_high") * 100)
    y = alt.Y(
        "arm:N", sort=alt.SortField("difference", "descending"), title=None, axis=alt.Axis(ticks=False, domain=False)
    )
    axis = alt.Axis(tickCount=6, labelExpr="datum.value == 0 ? '0' : format(datum.value, '+')")
    x = alt.X("difference:Q", title=words, scale=scale, axis=axis)
    colour = alt.Color("side:N", scale=alt.Scale(domain=list(SIDES), range=list(SIDE_COLOURS)), legend=None)
    shape = alt.Shape("side:N", scale=alt.Scale(domain=list(SIDES), range=list(SIDE_SHAPES)), legend=None)
    base = alt.Chart(shown, title=over_the_plot(title)).encode(y=y)
    thin = base.mark_rule(strokeWidth=1).encode(
        x=alt.X("cluster_low:Q", title=words), x2="cluster_high:Q", color=colour
    )
    thick = base.mark_rule(strokeWidth=3.2, opacity=0.55).encode(
        x=alt.X("low:Q", title=words), x2="high:Q", color=colour
    )
    middle = base.mark_point(size=52, filled=True, opacity=1).encode(x=x, color=colour, shape=shape)
    zero = (
        alt.Chart(pl.DataFrame({"zero": [0.0]}))
        .mark_rule(color="currentColor", opacity=0.7)
        .encode(x=alt.X("zero:Q", title=words))
    )
    return alt.layer(zero, thin, thick, middle).properties(width=520, height=alt.Step(18))


def _heat_map(results: Results, statistics: Statistics) -> Figure | None:
    """All gold turns found, arm by kind."""
    kinds = (ALL, *results.kinds)
    rows = []
    for group in statistics.groups:
        for arm in group.arms:
            for kind in kinds:
                found = statistics.estimates[Cell(arm.label, kind, PRIMARY)]
                if found.value is not None:
                    shown = f"{arm.label} (uses gold)" if arm.uses_gold else arm.label
                    rows.append((shown, group.words, kind, found.value, found.n))
    if not rows:
        return None
    data = pl.DataFrame(rows, schema=["arm", "budget", "kind", "value", "n"], orient="row")
    drawn = [kind for kind in kinds if kind in set(data["kind"])]
    budgets = list(dict.fromkeys(data["budget"]))
    panels = [_heat_panel(data.filter(pl.col("budget") == own), own, drawn, own == budgets[0]) for own in budgets]
    own = data.filter((pl.col("kind") != ALL) & ~pl.col("arm").str.ends_with("(uses gold)"))
    means = own.group_by("kind", maintain_order=True).agg(pl.col("value").mean()).sort("value", maintain_order=True)
    reading = "No arm without gold has a measure by kind."
    if len(means):
        reading = (
            f"Over all arms but those that use gold, {means['kind'][0]} questions are the hardest to find all gold "
            f"turns for ({percent(means['value'][0])} on average), {means['kind'][-1]} the easiest "
            f"({percent(means['value'][-1])})."
        )
    caption = "All gold turns found, %, darker is more. Arms by complete evidence within a bound."
    return Figure("kinds", "Arm by question type", finished(alt.vconcat(*panels, spacing=14)), data, reading, caption)


def _heat_panel(data: pl.DataFrame, title: str, kinds: Sequence[str], first: bool) -> alt.LayerChart:
    arms = list(dict.fromkeys(data["arm"]))
    axis = alt.Axis(orient="top", labelAngle=0, ticks=False, domain=False, labels=first)
    base = alt.Chart(data, title=over_the_plot(title)).encode(
        x=alt.X("kind:N", sort=list(kinds), title=None, axis=axis),
        y=alt.Y("arm:N", sort=arms, title=None, axis=alt.Axis(ticks=False, domain=False)),
    )
    scale = alt.Scale(domain=[0, 1], scheme="blues")
    cell = base.mark_rect(stroke="white", strokeWidth=1).encode(color=alt.Color("value:Q", scale=scale, legend=None))
    ink = alt.condition("datum.value > 0.62", alt.value("white"), alt.value("#111"))
    number = base.mark_text(fontSize=10.5).encode(text="shown:N", color=ink)
    number = number.transform_calculate(shown="format(100 * datum.value, '.1f')")
    return alt.layer(cell, number).properties(width=alt.Step(86), height=alt.Step(19))


def _reuse(results: Results, statistics: Statistics) -> Figure | None:
    """Which part of each arm's evidence states some other arm has too."""
    asked = overall(results).select("question_id")
    arms = pl.col("arm").is_in([arm.label for arm in results.arms])
    known = results.cells.filter(arms & pl.col("evidence_hash").is_not_null())
    known = known.join(asked, on="question_id", how="semi")
    if known.is_empty():
        return None
    holders = known.with_columns(holders=pl.len().over("question_id", "evidence_hash"))
    parts: Callable[[pl.Expr], pl.Expr] = lambda chosen: chosen.sum().cast(pl.Int64)  # noqa: E731
    data = holders.group_by("arm", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("states"), shared=parts(pl.col("holders") > 1)
    )
    data = data.with_columns(share=pl.col("shared") / pl.col("states"))
    states = known.select("question_id", "evidence_hash").n_unique()
    reading = (
        f"{len(known):,} cells hold {states:,} distinct evidence states, so {percent(1 - states / len(known))} of the "
        "answers and verdicts need no further call."
    )
    data = data.sort("share", descending=True, maintain_order=True)
    y = alt.Y("arm:N", sort=data["arm"].to_list(), title=None, axis=alt.Axis(ticks=False, domain=False))
    axis = alt.Axis(format="%", tickCount=5)
    x = alt.X("share:Q", title="share of states", scale=alt.Scale(domain=[0, 1]), axis=axis)
    base = alt.Chart(data).encode(y=y)
    whole = base.mark_bar(color="currentColor", opacity=0.1).encode(x=alt.X("one:Q")).transform_calculate(one="1")
    bar = base.mark_bar(color=COLOURS[0]).encode(x=x)
    chart = alt.layer(whole, bar).properties(width=460, height=alt.Step(17))
    caption = "Dark: the arm's evidence states that at least one other arm has too, which are answered and judged once."
    return Figure("reuse", "States that arms share", finished(chart), data, reading, caption)

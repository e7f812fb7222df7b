"""What may be concluded from a run, and what may not?"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

from reports.results import Arm, Results
from reports.tables import (
    ALL,
    BASELINE_READER,
    PRIMARY,
    UNBOUNDED,
    BudgetGroup,
    Cell,
    Estimate,
    Statistics,
    overall,
)

FEW_CLUSTERS = 30
ROUNDING = 1e-9  # a sum of fractions that is 0 on paper need not be 0 in floating point
Verdict = Literal["above", "below", "unclear", "equal", "unknown"]

SIDES: Mapping[Verdict, str] = {
    "above": "above it with no interval reaching 0",
    "equal": "equal to it on every question",
    "unclear": "not distinguishable from it",
    "below": "below it with no interval reaching 0",
}


@dataclass(frozen=True)
class Finding:
    """A sentence. `kind`: `result` says what was found, `limit` what cannot be concluded.

    `topic` is the budget a result is about, empty for a limit.
    """

    kind: Literal["result", "limit"]
    text: str
    topic: str = ""


def findings(results: Results, statistics: Statistics) -> tuple[Finding, ...]:
    """Sentences by rule from the numbers, results before limits; no claim that an interval does not carry."""
    found = [
        Finding("result", text, group.words) for group in statistics.groups for text in _of_group(statistics, group)
    ]
    return (*found, *(Finding("limit", text) for text in _limits(results, statistics)))


def verdict(difference: Estimate) -> Verdict:
    """Which side of 0 a paired difference is on: `above` or `below` only if no interval of it reaches 0."""
    if difference.value is None or difference.low is None or difference.high is None:
        return "unknown"
    lows = [end for end in (difference.low, difference.cluster_low) if end is not None]
    highs = [end for end in (difference.high, difference.cluster_high) if end is not None]
    if min(lows) == max(highs) == 0:
        return "equal"
    return "above" if min(lows) > ROUNDING else "below" if max(highs) < -ROUNDING else "unclear"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, signed, with a true minus."""
    if difference is None:
        return "–"
    rounded = round(100 * difference, 1)
    return "0.0" if rounded == 0 else f"{rounded:+.1f}".replace("-", "−")


def _of_group(statistics: Statistics, group: BudgetGroup) -> Iterator[str]:
    known = [a for a in group.ranked if statistics.estimates[Cell(a.label, ALL, PRIMARY)].value is not None]
    if group.budget == UNBOUNDED:
        for arm in known:
            yield _unbounded(statistics, arm)
        return
    if known:
        yield _leader(statistics, group, known)
        yield from _against_baseline(statistics, group, known)
    yield from _ceiling(statistics, group)


def _unbounded(statistics: Statistics, arm: Arm) -> str:
    found = statistics.estimates[Cell(arm.label, ALL, PRIMARY)]
    tokens = statistics.estimates[Cell(arm.label, ALL, "tokens")].value
    cost = "" if tokens is None else f" at {tokens:,.0f} tokens a question"
    return f"{arm.label} holds all gold turns on {percent(found.value)} of questions{cost}."


def _leader(statistics: Statistics, group: BudgetGroup, known: list[Arm]) -> str:
    tops = statistics.best(group, ALL, PRIMARY)
    arm = known[0]
    found = statistics.estimates[Cell(arm.label, ALL, PRIMARY)]
    shown = f"{percent(found.value)} of {found.n:,} questions ({_intervals(found, percent)})"
    if len(tops) > 1:
        shared = _listed([a.label for a in known if a.label in tops])
        return f"{shared} hand over all gold turns equally often: on {shown}."
    if not tops:
        return f"{arm.label} hands over all gold turns on {shown}; no ranking is given."
    return f"{arm.label} hands over all gold turns most often: on {shown}."


def _against_baseline(statistics: Statistics, group: BudgetGroup, known: list[Arm]) -> Iterator[str]:
    """The leader's (or else the runner-up's) difference to hybrid, then every other arm's side of 0."""
    compared = [a for a in known if a.label in statistics.baselines]
    if not compared:
        return
    first = compared[0]
    difference = statistics.differences[Cell(first.label, ALL, PRIMARY)]
    baseline = statistics.baselines[first.label]
    role = "The next, " if known[0].label == baseline else ""
    comma = "," if role else ""
    yield (
        f"{role}{first.label}{comma} differs from {baseline} by {points(difference.value)} points "
        f"({_intervals(difference, points)}): {_concluded(difference)}."
    )
    sides: dict[Verdict, list[str]] = {}
    for arm in compared:
        if arm is not first:
            side = verdict(statistics.differences[Cell(arm.label, ALL, PRIMARY)])
            sides.setdefault(side, []).append(arm.label)
    parts = [
        f"{_listed(sides[side])} {'is' if len(sides[side]) == 1 else 'are'} {words}"
        for side, words in SIDES.items()
        if side in sides
    ]
    if parts:
        yield f"Against {baseline}, " + "; ".join(parts) + "."


def _concluded(difference: Estimate) -> str:
    if difference.low is None or difference.high is None:
        return "too few questions for an interval, so nothing is concluded"
    side = verdict(difference)
    if side in ("above", "below"):
        return f"{side} {BASELINE_READER}, and no interval reaches 0"
    if side == "equal":
        return "no difference on any question"
    if difference.low > 0 or difference.high < 0:
        return "it holds for these questions, but not once whole conversations are resampled, so it is open"
    return "the interval includes 0, so neither is shown to be better"


def _ceiling(statistics: Statistics, group: BudgetGroup) -> Iterator[str]:
    for arm in group.ceilings:
        found = statistics.estimates[Cell(arm.label, ALL, PRIMARY)]
        if found.value is not None:
            yield (
                f"With gold in hand, {arm.label} reaches {percent(found.value)}: the ceiling of this budget, "
                f"not a reader."
            )


def _limits(results: Results, statistics: Statistics) -> Iterator[str]:
    yield from _few_clusters(statistics)
    yield from _multiplicity(statistics)
    yield from _missing_cells(results, statistics)
    yield from _unjudged(results, statistics)
    yield from _store_within_budget(results)
    if results.offline and results.judges:
        yield (
            "Answers and scores come from offline programs, not from language models: they compare arms "
            "within this run and stand beside no paper's judged accuracy."
        )


def _few_clusters(statistics: Statistics) -> Iterator[str]:
    clusters = max((each.clusters for each in statistics.estimates.values()), default=0)
    if clusters == 1:
        yield "All questions come from one conversation, so nothing can be said about other conversations."
    elif 1 < clusters < FEW_CLUSTERS:
        yield (
            f"The questions come from {clusters} conversations. Intervals over conversations rest on "
            f"{clusters} units and tend to be too narrow; what they leave open is open."
        )


def _multiplicity(statistics: Statistics) -> Iterator[str]:
    ranked = {arm.label for group in statistics.groups for arm in group.ranked}
    count = sum(c.kind == ALL and c.metric == PRIMARY and c.arm in ranked for c in statistics.differences)
    if count > 1:
        yield (
            f"{count} differences are shown for each measure without correction for multiple comparisons: "
            f"about 1 in 20 intervals of true zeros would miss 0."
        )


def _missing_cells(results: Results, statistics: Statistics) -> Iterator[str]:
    questions = overall(results)
    left_out = results.questions.height - questions.height
    if left_out:
        yield (
            f"{left_out:,} questions of kind {_listed(list(results.apart))} have rows of their own and stay "
            f"out of every overall number."
        )
    with_gold = questions.filter(pl.col("gold_turn_ids").list.len() > 0).height
    without = questions.height - with_gold
    if without:
        yield (
            f"{without:,} of {questions.height:,} questions name no gold turn and are in no evidence "
            f"measure; they are in cost, latency and, where a judge expects them, scores."
        )
    short = {arm.label: statistics.estimates[Cell(arm.label, ALL, PRIMARY)].n for arm in results.arms}
    lacking = {label: with_gold - n for label, n in short.items() if n < with_gold}
    if lacking:
        worst = _listed([f"{label} ({count:,})" for label, count in lacking.items()])
        yield (
            f"Of {with_gold:,} questions with gold, cells are missing of {worst}: their means are over fewer "
            f"questions, and no arm is marked best where denominators differ."
        )


def _unjudged(results: Results, statistics: Statistics) -> Iterator[str]:
    for judge in results.judges:
        open_cells = results.verdicts.filter((pl.col("judge") == judge) & (pl.col("status") != "ok")).height
        if open_cells:
            total = results.verdicts.filter(pl.col("judge") == judge).height
            yield (
                f"{judge} has no score for {open_cells:,} of {total:,} cells: strict means count them as 0, "
                f"means over judged cells leave them out."
            )


def _store_within_budget(results: Results) -> Iterator[str]:
    sizes = results.records.group_by("store", "conversation_id").len()
    for budget in sorted({int(a.k) for a in results.arms if a.k.isdigit()}):
        small = sizes.filter(pl.col("len") <= budget)["conversation_id"].n_unique()
        if small:
            yield (
                f"At {budget} records the budget covers the whole store of {small} "
                f"conversation{'s' if small != 1 else ''}: there is nothing to select there."
            )


def _intervals(found: Estimate, show: Callable[[float | None], str]) -> str:
    by_question = f"95 % interval {_range(found.low, found.high, show)}"
    if found.cluster_low is None:
        return by_question
    over = f"{_range(found.cluster_low, found.cluster_high, show)} over {found.clusters} conversations"
    return f"{by_question}; {over}"


def _range(low: float | None, high: float | None, show: Callable[[float | None], str]) -> str:
    return f"{show(low).removesuffix(' %')} to {show(high).removesuffix(' %')}"


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]

"""What was found in a run, in sentences that claim what the numbers carry?"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from reports.comparisons import DECLARED, LEVEL, SECONDARY, Comparison, Contrast, Verdict, declared, verdict
from reports.grid import ALL
from reports.limits import limits, listed
from reports.rates import AUDITED, CITED
from reports.results import Arm, Results
from reports.tables import PRIMARY, UNBOUNDED, BudgetGroup, Cell, Estimate, Statistics

SIDES: Mapping[Verdict, str] = {
    "above": "shown to be above it",
    "equal": "equal to it on every question",
    "unclear": "not shown to differ from it",
    "below": "shown to be below it",
}
PHRASES: Mapping[str, tuple[str, str]] = {
    "complete_evidence": ("finds all gold turns", "on {} of {} questions"),
    "gold_hit": ("finds a gold turn", "on {} of {} questions"),
    "complete_sessions": ("finds all gold sessions", "on {} of {} questions"),
    "evidence_recall": ("finds, of a question's gold turns,", "{} on average of {} questions"),
    "session_recall": ("finds, of a question's gold sessions,", "{} on average of {} questions"),
}
TOPICS: Mapping[str, str] = {DECLARED: "declared comparison", SECONDARY: "declared beside it"}
Pair = tuple[str, str]
"""An arm and another that it is compared with."""
WITHOUT: Mapping[str, str] = {
    AUDITED: "Without the questions whose gold answer is known to be wrong",
    CITED: "Without those whose gold turns are known to be wrong as well",
}


@dataclass(frozen=True)
class Finding:
    """A sentence. `kind`: `result` says what was found, `limit` what cannot be concluded.

    `topic` is the budget a result is about, empty for a limit.
    """

    kind: Literal["result", "limit"]
    text: str
    topic: str = ""


def findings(
    results: Results, statistics: Statistics, comparisons: Mapping[Contrast, Comparison]
) -> tuple[Finding, ...]:
    """Sentences by rule from the numbers, results before limits; no claim that an interval does not carry.

    `comparisons`: those of `reports.comparisons.compare`. A difference is shown only where no interval of it reaches 0
    and Holm's p is at most 0.05.
    """
    found = [
        Finding("result", text, TOPICS[family])
        for contrast, family in declared(results).items()
        for text in _declared(contrast, comparisons)
    ]
    for group in statistics.groups:
        said = _of_group(statistics, group, comparisons)
        found += [Finding("result", _marked(text, pairs, results), group.words) for text, pairs in said]
    return (*found, *(Finding("limit", text) for text in limits(results, statistics, comparisons)))


def _marked(text: str, pairs: Sequence[Pair], results: Results) -> str:
    """On a sealed split, a sentence that rests on a pair of arms that was not declared begins with "Exploratory"."""
    sealing = results.sealing
    if sealing is None or all(sealing.is_declared(*pair) for pair in pairs):
        return text
    return f"Exploratory: {text}"


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, signed, with a true minus."""
    if difference is None:
        return "–"
    rounded = round(100 * difference, 1)
    return "0.0" if rounded == 0 else f"{rounded:+.1f}".replace("-", "−")


def chance(p: float | None) -> str:
    """A p value with as many digits as matter, after = or <."""
    if p is None:
        return "–"
    if p < 0.0001:
        return "< 0.0001"
    return f"= {p:.4f}" if p < 0.01 else f"= {p:.3f}" if p < 1 else "= 1"


def _declared(contrast: Contrast, comparisons: Mapping[Contrast, Comparison]) -> Iterator[str]:
    """A comparison that the protocol is about, on all questions and without known wrong labels."""
    whole = comparisons[contrast]
    yield from _compared(whole)
    for subset, words in WITHOUT.items():
        part = comparisons.get(contrast._replace(subset=subset))
        if part is not None and part.difference.value is not None:
            changed = "" if part.verdict == whole.verdict else f" {_concluded(part)}"
            same = "" if changed else " The conclusion is the same."
            p = f"{'Holm p' if part.tests > 1 else 'p'} {chance(part.holm)}"
            said = [*_intervals(part.difference, points), p]
            yield (
                f"{words}, {part.difference.n:,} are left and the difference is {points(part.difference.value)} points "
                f"({'; '.join(said)}).{changed or same}"
            )


def _of_group(
    statistics: Statistics, group: BudgetGroup, comparisons: Mapping[Contrast, Comparison]
) -> Iterator[tuple[str, Sequence[Pair]]]:
    """The group's sentences, each with the pairs of arms that it compares."""
    known = [a for a in group.ranked if statistics.estimates[Cell(a.label, ALL, PRIMARY)].value is not None]
    if group.budget == UNBOUNDED:
        for arm in known:
            yield _unbounded(statistics, arm), ()
        return
    if known:
        yield _leader(statistics, group, known), [(known[0].label, other.label) for other in known[1:]]
        yield from _against_baseline(statistics, known, comparisons)
    yield from ((text, ()) for text in _ceiling(statistics, group))


def _unbounded(statistics: Statistics, arm: Arm) -> str:
    found = statistics.estimates[Cell(arm.label, ALL, PRIMARY)]
    tokens = statistics.estimates[Cell(arm.label, ALL, "tokens")].value
    cost = "" if tokens is None else f" at {tokens:,.0f} tokens a question"
    return f"{arm.label} holds all gold turns on {percent(found.value)} of questions{cost}."


def _leader(statistics: Statistics, group: BudgetGroup, known: Sequence[Arm]) -> str:
    tops = statistics.best(group, ALL, PRIMARY)
    arm = known[0]
    found = statistics.estimates[Cell(arm.label, ALL, PRIMARY)]
    spread = "; ".join(_intervals(found, percent))
    shown = f"{percent(found.value)} of {found.n:,} questions" + (f" ({spread})" if spread else "")
    if len(tops) > 1:
        shared = listed([a.label for a in known if a.label in tops])
        return f"{shared} hand over all gold turns equally often: on {shown}."
    if not tops:
        return f"{arm.label} hands over all gold turns on {shown}; no ranking is given."
    return f"{arm.label} hands over all gold turns most often: on {shown}."


def _against_baseline(
    statistics: Statistics, known: Sequence[Arm], comparisons: Mapping[Contrast, Comparison]
) -> Iterator[tuple[str, Sequence[Pair]]]:
    """The leader (or else the runner-up) against its baseline, then on which side of its own every other arm is."""
    compared = [
        comparisons[Contrast(a.label, statistics.baselines[a.label], ALL, PRIMARY)]
        for a in known
        if a.label in statistics.baselines
    ]
    if not compared:
        return
    pairs = [(each.contrast.arm, each.contrast.baseline) for each in compared]
    if compared[0].family not in TOPICS:
        yield from ((text, pairs[:1]) for text in _compared(compared[0]))
    for baseline in dict.fromkeys(own for _, own in pairs):  # one a store
        others = [each for each in compared[1:] if each.contrast.baseline == baseline]
        if sides := _sides(others):
            yield f"Against {baseline}, {sides}.", [(each.contrast.arm, baseline) for each in others]


def _sides(others: Sequence[Comparison]) -> str:
    """On which side of one baseline each arm is; empty where nothing is known of any."""
    found: dict[Verdict, list[str]] = {}
    for each in others:
        found.setdefault(each.verdict, []).append(each.contrast.arm)
    return "; ".join(
        f"{listed(found[side])} {'is' if len(found[side]) == 1 else 'are'} {words}"
        for side, words in SIDES.items()
        if side in found
    )


def _compared(found: Comparison) -> Iterator[str]:
    """Both means, the difference with its uncertainty, and what follows."""
    arm, baseline, _, metric, _ = found.contrast
    verb, share = PHRASES.get(metric, (f"scores by {metric.replace('_', ' ')}", "{} over {} questions"))
    if found.before is None or found.after is None:
        yield f"{baseline} and {arm} have no question in common on which both are measured, so nothing is concluded."
        return
    before = share.format(percent(found.before), f"{found.difference.n:,}")
    after = share.partition(" of ")[0].partition(" over ")[0].format(percent(found.after))
    said = _intervals(found.difference, points)
    if found.p is not None:
        name = "exact McNemar" if found.test == "mcnemar" else "sign-flip"
        rivals = "comparisons" if found.family == SECONDARY else "arms"
        adjusted = f"Holm p {chance(found.holm)} among {found.tests} {rivals}"
        said.append(f"{adjusted if found.tests > 1 else f'p {chance(found.p)}'}, {name}")
    if found.cluster_p is not None:
        said.append(f"by conversation p {chance(found.cluster_p)}")
    yield (
        f"{baseline} {verb} {before}, {arm} {after}: difference {points(found.difference.value)} points "
        f"({'; '.join(said)}). {_concluded(found)}"
    )


def _concluded(found: Comparison) -> str:
    difference, (arm, baseline, *_) = found.difference, found.contrast
    if difference.low is None or difference.high is None:
        return "That is too few questions for an interval, so nothing is concluded."
    side = found.verdict
    if side in ("above", "below"):
        return f"{arm} is shown to be {side} {baseline}: no interval reaches 0."
    if side == "equal":
        return "They are equal on every question."
    if verdict(difference) in ("above", "below"):
        return f"A difference is not shown: no interval reaches 0, but the p is above {LEVEL}."
    if difference.low > 0 or difference.high < 0:
        return (
            "It holds for these questions, but not once whole conversations are resampled: for other conversations a "
            "difference is not shown."
        )
    least = found.detectable
    missed = "" if least is None else f", and one below {100 * least:.1f} points would often be missed with so few"
    return f"A difference is not shown: the interval includes 0{missed}."


def _ceiling(statistics: Statistics, group: BudgetGroup) -> Iterator[str]:
    for arm in group.ceilings:
        found = statistics.estimates[Cell(arm.label, ALL, PRIMARY)]
        if found.value is not None:
            yield (
                f"With gold in hand, {arm.label} reaches {percent(found.value)}: the ceiling of this budget, "
                f"not a reader."
            )


def _intervals(found: Estimate, show: Callable[[float | None], str]) -> list[str]:
    """Both intervals in words, but one of no width, as in the tables: there resampling cannot show any uncertainty."""
    sides = [
        (found.low, found.high, ""),
        (found.cluster_low, found.cluster_high, f" over {found.clusters} conversations"),
    ]
    said = [
        f"{show(low).removesuffix(' %')} to {show(high).removesuffix(' %')}{over}"
        for low, high, over in sides
        if low is not None and high is not None and low != high
    ]
    return [f"95 % interval {said[0]}", *said[1:]] if said else []

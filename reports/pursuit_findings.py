"""What may be said of each figure of a pursuit's analysis?"""

from collections.abc import Mapping, Sequence

from reports.comparisons import Verdict, verdict
from reports.findings import percent, points
from reports.grid import ALL
from reports.pursuit_analysis import DIFFERENCE, OVERLAP_BUDGETS, PAIRS_GROUP, PAPER_GROUP, Found, Key
from reports.tables import Estimate

AGAINST_HYBRID: Mapping[Verdict, str] = {
    "above": "above hybrid",
    "below": "below hybrid",
    "unclear": "not distinguishable from hybrid",
    "equal": "equal to hybrid",
    "unknown": "without an interval against hybrid",
}
AGAINST_ZERO: Mapping[Verdict, str] = {
    "above": "above 0 with no interval reaching it",
    "below": "below 0 with no interval reaching it",
    "unclear": "not distinguishable from 0",
    "equal": "0 on every question",
    "unknown": "without an interval",
}


def readings(found: Found, budgets: Sequence[int]) -> dict[str, str]:
    """Figure → one sentence by rule; it claims a side only where neither interval reaches 0."""
    return {
        "overlap": _overlap(found),
        "curve": _curve(found, budgets),
        "reconstruction": _reconstruction(found),
        "preference": _preference(found),
    }


def _overlap(found: Found) -> str:
    replaced = [f"{percent(found[Key('overlap', f'k{k}', 'replaced')].value)} at {k}" for k in OVERLAP_BUDGETS]
    covered = [_covered(found, "overlap", f"k{k}", "complete sessions", f"at {k}") for k in OVERLAP_BUDGETS]
    return (
        f"mem_pursuit replaces {' and '.join(replaced)} of hybrid's records and finds all gold sessions on "
        f"{', and '.join(covered)}."
    )


def _curve(found: Found, budgets: Sequence[int]) -> str:
    sides: dict[str, list[str]] = {}
    for k in budgets:
        side = verdict(found[Key("curve", f"k{k}", f"{DIFFERENCE} complete evidence")])
        sides.setdefault(AGAINST_HYBRID[side], []).append(str(k))
    said = "; ".join(f"{side} at {_listed(where)}" for side, where in sides.items())
    size = found[Key("curve", "adaptive", "records")].value
    adaptive = _covered(found, "curve", "adaptive", "complete evidence", "")
    return (
        f"In complete evidence mem_pursuit is {said} records; stopping by itself it takes {number(size, 1)} records on "
        f"average and finds all gold turns on {adaptive}, hybrid being cut to the same sizes."
    )


def _reconstruction(found: Found) -> str:
    own = {name: found[Key("reconstruction", ALL, name)] for name in ("gold closer", "hybrid closer", "equal")}
    mean = found[Key("reconstruction", ALL, "mean advantage")]
    if mean.value is None:
        return "No question has gold records and as many candidates, so nothing is compared."
    return (
        f"Gold records reconstruct the question more closely than as many of hybrid's on "
        f"{percent(own['gold closer'].value)} of {mean.n:,} questions, less closely on "
        f"{percent(own['hybrid closer'].value)} and equally on {percent(own['equal'].value)}; their mean advantage is "
        f"{signed(mean.value)}, {AGAINST_ZERO[verdict(mean)]}."
    )


def _preference(found: Found) -> str:
    group = PAPER_GROUP if found[Key("preference", PAPER_GROUP, "mean preference")].n else PAIRS_GROUP
    mean = found[Key("preference", group, "mean preference")]
    if mean.value is None:
        return "No question has two gold records in its pool and another to compare with, so nothing is compared."
    cosine = found[Key("preference", group, "mean by cosine alone")].value
    return (
        f"With one gold record held, the residual score prefers the missing evidence to the most similar other record "
        f"on {percent(found[Key('preference', group, 'missing preferred')].value)} of {mean.n:,} questions with "
        f"{group} ({comparisons(found, group):,} comparisons); the mean difference is {signed(mean.value)}, "
        f"{AGAINST_ZERO[verdict(mean)]}, where the query cosine of the same pairs differs by {signed(cosine)}."
    )


def comparisons(found: Found, group: str) -> int:
    """How many singletons a group's questions had."""
    mean = found[Key("preference", group, "comparisons")]
    return 0 if mean.value is None else round(mean.value * mean.n)


def signed(value: float | None) -> str:
    """Three digits with their sign, a true minus."""
    if value is None:
        return "–"
    return "0.000" if round(value, 3) == 0 else f"{value:+.3f}".replace("-", "−")


def number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def _covered(found: Found, figure: str, group: str, measure: str, where: str) -> str:
    hybrid, pursuit, difference = (
        found[Key(figure, group, f"{name} {measure}")] for name in ("hybrid", "mem_pursuit", DIFFERENCE)
    )
    return (
        f"{percent(pursuit.value)} of questions{' ' * bool(where)}{where} (hybrid {percent(hybrid.value)}; "
        f"{_side(difference)})"
    )


def _side(difference: Estimate) -> str:
    return f"{points(difference.value)} points, {AGAINST_ZERO[verdict(difference)]}"


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"

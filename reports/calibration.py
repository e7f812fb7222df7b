"""How often a judge errs, and what accuracy its verdicts would show without its errors."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from statistics import NormalDist

import polars as pl

WRONG = ("specific", "vague")


@dataclass(frozen=True)
class Proportion:
    """`k` of `n`, with a confidence interval; the rate and the interval are None where n is 0.

    `k` is a sum of credits in [0, 1] and need not be whole: repeats and grades give parts of one.
    """

    k: float
    n: int
    low: float | None
    high: float | None

    @property
    def rate(self) -> float | None:
        """The share, in [0, 1]."""
        return self.k / self.n if self.n else None


@dataclass(frozen=True)
class Estimate:
    """A corrected share with its interval, all in [0, 1]."""

    value: float
    low: float
    high: float


def wilson(k: float, n: int, level: float = 0.95) -> Proportion:
    """The Wilson score interval of `k` successes in `n` trials.

    Of credits that are parts of one it is at least as wide as it need be, as they vary less. Source: Wilson 1927.
    Raises `ValueError` unless 0 <= k <= n and 0 < level < 1.
    """
    if not 0 <= k <= n or not 0 < level < 1:
        raise ValueError(f"0 <= k <= n and 0 < level < 1 expected, k = {k}, n = {n}, level = {level} found")
    if not n:
        return Proportion(k, n, None, None)
    z = _z(level)
    centre, half = k + z * z / 2, z * sqrt(k * (n - k) / n + z * z / 4)
    low, high = (centre - half) / (n + z * z), (centre + half) / (n + z * z)
    return Proportion(k, n, 0.0 if k == 0 else low, 1.0 if k == n else high)


def rogan_gladen(
    accepted: Proportion, false_accept: Proportion, false_reject: Proportion, level: float = 0.95
) -> Estimate | None:
    """The share of right answers behind `accepted`, the share that a judge with these error rates accepts.

    value = (accepted - false accepts) / (1 - false accepts - false rejects), cut to [0, 1]. The interval is Lang &
    Reiczigel's, which adds the uncertainty of both error rates; it is centred on its own adjusted estimate, so that
    near 0 and 1 it may lie beside the value, and it is then widened to hold it. None where a count is 0 or the judge is
    no better than chance (rates that sum to 1 or more). Sources: Rogan & Gladen 1978; Lang & Reiczigel 2014.
    """
    if accepted.rate is None or false_accept.rate is None or false_reject.rate is None:
        return None
    informed = 1 - false_accept.rate - false_reject.rate
    if informed <= 0:
        return None
    value = min(1.0, max(0.0, (accepted.rate - false_accept.rate) / informed))
    z = _z(level)
    n, positives, negatives = accepted.n + z * z, false_reject.n + 2, false_accept.n + 2
    seen = (accepted.k + z * z / 2) / n
    sensitivity = (false_reject.n - false_reject.k + 1) / positives
    specificity = (false_accept.n - false_accept.k + 1) / negatives
    informed = sensitivity + specificity - 1
    if informed <= 0:
        return None
    share = (seen + specificity - 1) / informed
    of_positives = sensitivity * (1 - sensitivity) / positives
    of_negatives = specificity * (1 - specificity) / negatives
    middle = share + 2 * z * z * (share * of_positives - (1 - share) * of_negatives)
    spread = seen * (1 - seen) / n + share**2 * of_positives + (1 - share) ** 2 * of_negatives
    half = z * sqrt(spread) / informed
    return Estimate(value, max(0.0, min(middle - half, value)), min(1.0, max(middle + half, value)))


@dataclass(frozen=True)
class Errors:
    """A judge's measured error rates.

    `false_accept`: the mean score of the wrong replies it was given, by how they are wrong (`specific`, `vague`);
    `false_reject`: what the right ones lack to 1, on average. `unjudged`: replies without a score; they count
    neither way.
    """

    false_accept: dict[str, Proportion]
    false_reject: Proportion
    unjudged: int


def errors(cases: pl.DataFrame) -> Errors:
    """The error rates behind `cases`: `truth: String` (`good`, `specific`, `vague`; others count nothing), `score?`."""
    known = cases.filter(pl.col("truth").is_in(["good", *WRONG]))
    judged = known.filter(pl.col("score").is_not_null())
    wrong = {truth: judged.filter(pl.col("truth") == truth)["score"] for truth in WRONG}
    good = judged.filter(pl.col("truth") == "good")["score"]
    return Errors(
        false_accept={truth: _credit(found.to_list()) for truth, found in wrong.items() if len(found)},
        false_reject=_credit((1 - good).to_list()),
        unjudged=len(known) - len(judged),
    )


def corrected(
    scores: Sequence[float | None], found: Errors, wrong: str = "specific"
) -> tuple[Proportion, Estimate | None]:
    """The mean of `scores` (not judged counts 0) and what it corrects to.

    `wrong`: by which false accepts. Vague replies are the harder test: the wrong answers of a reader lie somewhere
    between both, so the two corrections bound the truth rather than give it.
    """
    seen = _credit([score or 0.0 for score in scores])
    rate = found.false_accept.get(wrong)
    return seen, rogan_gladen(seen, rate, found.false_reject) if rate else None


def _credit(credits: Sequence[float]) -> Proportion:
    """Their sum of their number; rounding does not take it out of bounds."""
    return wilson(min(max(fsum(credits), 0.0), len(credits)), len(credits))


def _z(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)

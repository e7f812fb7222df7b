"""Is a paired difference more than chance, and how large a one would this many questions show?"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import asin, sqrt
from statistics import NormalDist

import numpy as np

from reports.intervals import Floats

EXACT_UNITS = 14
SIGNS_AT_ONCE = 2_000_000
ROUNDING = 1e-9  # sums that are equal on paper need not be in floating point


@lru_cache(maxsize=65_536)
def mcnemar(wins: int, losses: int) -> float:
    """Two-sided exact p of `wins` against `losses` among the pairs that differ; 1 where none does.

    Twice the smaller tail of the binomial with rate 1/2, at most 1. Source: McNemar 1947, exact form.
    Raises `ValueError` if a count is negative.
    """
    if wins < 0 or losses < 0:
        raise ValueError(f"counts of at least 0 expected, wins = {wins}, losses = {losses} found")
    n = wins + losses
    term = tail = 1
    for i in range(min(wins, losses)):
        term = term * (n - i) // (i + 1)
        tail += term
    return float(min(1.0, 2 * tail / 2**n))


def sign_flip(differences: Floats, *, samples: int, rng: np.random.Generator) -> Floats:
    """(c,) two-sided p of the paired permutation test of each column's sum.

    `differences`: (m, c), a row per unit: a question's difference, or a conversation's sum of them; NaN counts as no
    difference. Under the null hypothesis each is as likely with the other sign. All 2**m signs are tried up to 14
    units, so that p is exact and no less than 2 / 2**m; else `samples` random ones, the observed one counted among
    them, and all columns see the same. Raises `ValueError` if `differences` is not 2-D or `samples` < 1.
    Source: Fisher 1935; counting the observed one: Phipson & Smyth 2010.
    """
    if differences.ndim != 2 or samples < 1:
        raise ValueError(
            f"(units, columns) and samples of at least 1 expected, {differences.ndim}-D and {samples} found"
        )
    values = np.nan_to_num(differences)
    units = len(values)
    observed = np.abs(values.sum(axis=0)) - ROUNDING * (1 + np.abs(values).sum(axis=0))
    exact = units <= EXACT_UNITS
    reached = np.zeros(values.shape[1], dtype=np.int64)
    for signs in _all_signs(units) if exact else _random_signs(units, samples, rng):
        reached += (np.abs(signs @ values) >= observed).sum(axis=0)
    return reached / 2**units if exact else (reached + 1) / (samples + 1)


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """The p values of one family, adjusted: with all of them at once, an error of the first kind stays below level.

    A test without a p (None) is no member. Source: Holm 1979: the i-th smallest of m times (m - i + 1), running
    maximum, at most 1.
    """
    known = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        adjusted[place] = highest
    return adjusted


def cohen_h(one: float, other: float) -> float:
    """Effect size of two rates in [0, 1]: positive where `one` is larger. Source: Cohen 1988, ch. 6."""
    return 2 * (asin(sqrt(min(1.0, max(0.0, one)))) - asin(sqrt(min(1.0, max(0.0, other)))))


def odds_ratio(wins: int, losses: int) -> float | None:
    """Wins for each loss among the pairs that differ (the conditional odds ratio); None where none is lost."""
    return wins / losses if losses else None


def detectable(error: float, *, level: float = 0.95, power: float = 0.8) -> float:
    """The smallest true difference that a two-sided test at this standard error finds in `power` of all samples.

    (z of the level + z of the power) * `error`, normal. With few units the truth is larger.
    """
    normal = NormalDist()
    return (normal.inv_cdf((1 + level) / 2) + normal.inv_cdf(power)) * error


def _all_signs(units: int) -> Iterator[Floats]:
    places = np.arange(2**units)[:, None] >> np.arange(units)
    yield np.where(places & 1, -1.0, 1.0)


def _random_signs(units: int, samples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Chunks (b, units) of +1 and -1, the same rows whatever the chunk size."""
    rows = max(1, SIGNS_AT_ONCE // units)
    for start in range(0, samples, rows):
        bits = rng.integers(0, 2, size=(min(rows, samples - start), units), dtype=np.int64)
        yield (2 * bits - 1).astype(np.float64)

"""How sure are we of a mean over questions?"""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

COLUMNS_AT_ONCE = 1024
WEIGHTS_AT_ONCE = 2_000_000
FLOAT32_WHOLE = 2**24  # float32 holds every whole number up to here
TIE = 1e-12  # a resampled mean this close to the mean is the mean, however its sum was ordered


@dataclass(frozen=True)
class Means:
    """Means of c columns with their intervals; every array is (c,).

    `low, high` resample questions, `cluster_low, cluster_high` whole conversations, percentile; those with `bca_` are
    bias-corrected and accelerated. `error` and `cluster_error` are standard errors by linearisation, not resampling.
    All are NaN where fewer than two units (questions, conversations) hold a defined value: one unit says nothing
    about spread. `n` and `clusters` count the questions and conversations that do.
    """

    mean: Floats
    low: Floats
    high: Floats
    cluster_low: Floats
    cluster_high: Floats
    n: Integers
    clusters: Integers
    bca_low: Floats
    bca_high: Floats
    cluster_bca_low: Floats
    cluster_bca_high: Floats
    error: Floats
    cluster_error: Floats


def bootstrap_means(
    values: Floats, clusters: Integers, *, samples: int, rng: np.random.Generator, level: float = 0.95
) -> Means:
    """Percentile and BCa bootstrap of every column's mean, by question and by conversation.

    `values`: (n, c), a row per question, NaN where a question is not in that column's denominator.
    `clusters`: (n,) code of each row's conversation, any non-negative integers.
    All columns see the same resamples, so a column of paired differences `a - b` gets exactly the interval of
    the difference of the resampled means (where `a` and `b` are defined on the same questions). A resample in
    which a column has no defined value is left out for that column.
    Raises `ValueError` if the shapes disagree, `samples` < 1, or `level` is outside (0, 1).
    Source: Efron & Tibshirani 1993, ch. 13 and 14.3; clusters: Field & Welsh 2007 (randomised cluster bootstrap), where
    BCa's jackknife leaves out a conversation at a time.
    """
    _check(values, clusters, samples, level)
    distinct, which = _distinct_columns(values)
    found = _bootstrap(distinct, clusters, samples, rng, level)
    return Means(*(getattr(found, field.name)[which] for field in fields(Means)))


def _bootstrap(values: Floats, clusters: Integers, samples: int, rng: np.random.Generator, level: float) -> Means:
    defined = ~np.isnan(values)
    sums = np.where(defined, values, 0.0)
    counts = defined.astype(np.float64)
    cluster_sums, cluster_counts = _by_cluster(clusters, sums), _by_cluster(clusters, counts)
    n = defined.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = sums.sum(axis=0) / n
    ends = _ends(sums, counts, mean, samples, level, rng)
    cluster_ends = _ends(cluster_sums, cluster_counts, mean, samples, level, rng)
    return Means(
        mean,
        *ends[:2],
        *cluster_ends[:2],
        n,
        (cluster_counts > 0).sum(axis=0),
        *ends[2:],
        *cluster_ends[2:],
        _error(sums, counts, mean),
        _error(cluster_sums, cluster_counts, mean),
    )


def _check(values: Floats, clusters: Integers, samples: int, level: float) -> None:
    if values.ndim != 2:
        raise ValueError(f"values must be 2-D (questions, columns), got {values.ndim}-D")
    if clusters.shape != (len(values),):
        raise ValueError(f"clusters ({clusters.shape}) must have one code for each of {len(values)} questions")
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples}")
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, got {level}")


def _by_cluster(clusters: Integers, columns: Floats) -> Floats:
    """(g, c) sums of the rows of each cluster, clusters by ascending code."""
    codes, position = np.unique(clusters, return_inverse=True)
    totals = np.zeros((len(codes), columns.shape[1]))
    np.add.at(totals, position, columns)
    return totals


def _ends(
    sums: Floats, counts: Floats, mean: Floats, samples: int, level: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    """Percentile low and high, BCa low and high of each ratio sum/count, units (rows) drawn with replacement."""
    found = np.full((4, sums.shape[1]), np.nan)
    seed = int(rng.integers(2**63))  # every block of columns replays the same resamples
    enough = np.flatnonzero((counts > 0).sum(axis=0) >= 2)
    skew = _acceleration(sums, counts)
    for start in range(0, len(enough), COLUMNS_AT_ONCE):
        block = enough[start : start + COLUMNS_AT_ONCE]
        means = _resampled_means(sums[:, block], counts[:, block], samples, np.random.default_rng(seed))
        means.sort(axis=1)
        for row, share in enumerate(_shares(means, mean[block], skew[block], level)):
            found[row, block] = _quantile(means, share)
    return found[0], found[1], found[2], found[3]


def _shares(means: Floats, mean: Floats, skew: Floats, level: float) -> list[Floats]:
    """At which share of the sorted resamples (c, samples) each end lies: percentile, then BCa. NaN: nowhere."""
    normal = NormalDist()
    half = (1 - level) / 2
    known = (~np.isnan(means)).sum(axis=1)
    below = (means < (mean - TIE)[:, None]).sum(axis=1) + (means <= (mean + TIE)[:, None]).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        under = below / (2 * known)
    bias = np.array([normal.inv_cdf(share) if 0 < share < 1 else np.nan for share in under])
    corrected = []
    for z in (normal.inv_cdf(half), -normal.inv_cdf(half)):
        shifted = bias + (bias + z) / (1 - skew * (bias + z))
        corrected.append(np.array([np.nan if np.isnan(each) else normal.cdf(each) for each in shifted]))
    return [np.full(len(mean), half), np.full(len(mean), 1 - half), *corrected]


def _acceleration(sums: Floats, counts: Floats) -> Floats:
    """(c,) how skewed each ratio is, from leaving out one unit at a time; 0 where it never changes."""
    with np.errstate(invalid="ignore", divide="ignore"):
        left = (sums.sum(axis=0) - sums) / (counts.sum(axis=0) - counts)
    left[~((counts > 0) & np.isfinite(left))] = np.nan
    used = np.maximum((~np.isnan(left)).sum(axis=0), 1)
    away = np.nan_to_num(np.nansum(left, axis=0) / used - left)
    spread = (away**2).sum(axis=0)
    return np.where(spread > TIE**2, (away**3).sum(axis=0) / (6 * np.where(spread > 0, spread, 1.0) ** 1.5), 0.0)


def _error(sums: Floats, counts: Floats, mean: Floats) -> Floats:
    """(c,) standard error of each ratio sum/count over units; of single questions it is sd / sqrt(n)."""
    units, total = (counts > 0).sum(axis=0), counts.sum(axis=0)
    residuals = np.where(counts > 0, sums - mean * counts, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.sqrt((residuals**2).sum(axis=0) * units / (units - 1)) / total
    return np.where(units >= 2, found, np.nan)


def _resampled_means(sums: Floats, counts: Floats, samples: int, rng: np.random.Generator) -> Floats:
    """(c, samples) ratio of the resampled sums and counts; NaN where a resample holds no defined value.

    Columns of whole numbers whose sums stay within 2**24, as those of rates and their differences do, go through
    float32, which is exact for them; all others, as scores between 0 and 1, through float64.
    """
    denominators, which = _distinct_columns(counts)
    whole = (sums == np.rint(sums)).all(axis=0) & (len(sums) * np.abs(sums).max(axis=0) <= FLOAT32_WHOLE)
    narrow, wide = sums[:, whole].astype(np.float32), sums[:, ~whole]
    below = denominators.astype(np.float32)
    means = np.empty((sums.shape[1], samples))
    start = 0
    for weights in _weights(len(sums), samples, rng):
        stop = start + len(weights)
        means[whole, start:stop] = (weights @ narrow).T
        if wide.shape[1]:
            means[~whole, start:stop] = (weights.astype(np.float64) @ wide).T
        total = (weights @ below).T.astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            means[:, start:stop] /= total if len(total) == 1 else total[which]
        start = stop
    return means


def _distinct_columns(columns: Floats) -> tuple[Floats, Integers]:
    """The distinct columns and, for each given column, its place among them: arms share many."""
    seen: dict[bytes, int] = {}
    which = np.array([seen.setdefault(column.tobytes(), len(seen)) for column in columns.T], dtype=np.int64)
    first = np.unique(which, return_index=True)[1]
    return np.ascontiguousarray(columns[:, first]), which


def _weights(units: int, samples: int, rng: np.random.Generator) -> Iterator[NDArray[np.float32]]:
    """Chunks (b, units) of how often each resample draws each unit, the same rows whatever the chunk size."""
    rows = max(1, WEIGHTS_AT_ONCE // units)
    for start in range(0, samples, rows):
        size = min(rows, samples - start)
        drawn = rng.integers(0, units, size=(size, units))
        drawn += np.arange(size)[:, None] * units
        yield np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units).astype(np.float32)


def _quantile(ordered: Floats, share: Floats) -> Floats:
    """(c,) the quantile at each row's own share of (c, samples), sorted, NaN last and left out; linear between two."""
    known = (~np.isnan(ordered)).sum(axis=1)
    place = np.nan_to_num(share) * np.maximum(known - 1, 0)
    lower = place.astype(np.int64)
    upper = np.minimum(lower + 1, np.maximum(known - 1, 0))
    rows = np.arange(len(ordered))
    low, high = ordered[rows, lower], ordered[rows, upper]
    return np.where(np.isnan(share), np.nan, low + (high - low) * (place - lower))

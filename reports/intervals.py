"""How sure are we of a mean over questions?"""

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

COLUMNS_AT_ONCE = 512
WEIGHTS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class Means:
    """Means of c columns with two percentile intervals each; every array is (c,).

    `low, high` resample questions, `cluster_low, cluster_high` whole conversations. An interval is NaN where
    fewer than two units (questions, conversations) hold a defined value: one unit says nothing about spread.
    `n` and `clusters` count the questions and conversations that do.
    """

    mean: Floats
    low: Floats
    high: Floats
    cluster_low: Floats
    cluster_high: Floats
    n: Integers
    clusters: Integers


def bootstrap_means(
    values: Floats, clusters: Integers, *, samples: int, rng: np.random.Generator, level: float = 0.95
) -> Means:
    """Percentile bootstrap of every column's mean, by question and by conversation.

    `values`: (n, c), a row per question, NaN where a question is not in that column's denominator.
    `clusters`: (n,) code of each row's conversation, any non-negative integers.
    All columns see the same resamples, so a column of paired differences `a - b` gets exactly the interval of
    the difference of the resampled means (where `a` and `b` are defined on the same questions). A resample in
    which a column has no defined value is left out for that column.
    Raises `ValueError` if the shapes disagree, `samples` < 1, or `level` is outside (0, 1).
    Source: Efron & Tibshirani 1993, ch. 13; clusters: Field & Welsh 2007 (randomised cluster bootstrap).
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
    low, high = _percentiles(sums, counts, samples, level, rng)
    cluster_low, cluster_high = _percentiles(cluster_sums, cluster_counts, samples, level, rng)
    return Means(mean, low, high, cluster_low, cluster_high, n, (cluster_counts > 0).sum(axis=0))


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


def _percentiles(
    sums: Floats, counts: Floats, samples: int, level: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """(c,) lower and upper percentile of resampled ratios sum/count, units (rows) drawn with replacement."""
    width = sums.shape[1]
    low, high = np.full(width, np.nan), np.full(width, np.nan)
    seed = int(rng.integers(2**63))  # every block of columns replays the same resamples
    enough = np.flatnonzero((counts > 0).sum(axis=0) >= 2)
    for start in range(0, len(enough), COLUMNS_AT_ONCE):
        block = enough[start : start + COLUMNS_AT_ONCE]
        means = _resampled_means(sums[:, block], counts[:, block], samples, np.random.default_rng(seed))
        low[block], high[block] = _quantiles(means, level)
    return low, high


def _resampled_means(sums: Floats, counts: Floats, samples: int, rng: np.random.Generator) -> Floats:
    """(c, samples) ratio of the resampled sums and counts; NaN where a resample holds no defined value."""
    denominators, which = _distinct_columns(counts)
    means = np.empty((sums.shape[1], samples))
    start = 0
    for weights in _weights(len(sums), samples, rng):
        stop = start + len(weights)
        with np.errstate(invalid="ignore", divide="ignore"):
            means[:, start:stop] = ((weights @ sums) / (weights @ denominators)[:, which]).T
        start = stop
    return means


def _distinct_columns(columns: Floats) -> tuple[Floats, Integers]:
    """The distinct columns and, for each given column, its place among them: arms share many."""
    seen: dict[bytes, int] = {}
    which = np.array([seen.setdefault(column.tobytes(), len(seen)) for column in columns.T], dtype=np.int64)
    first = np.unique(which, return_index=True)[1]
    return np.ascontiguousarray(columns[:, first]), which


def _weights(units: int, samples: int, rng: np.random.Generator) -> Iterator[Floats]:
    """Chunks (b, units) of how often each resample draws each unit, the same rows whatever the chunk size."""
    rows = max(1, WEIGHTS_AT_ONCE // units)
    for start in range(0, samples, rows):
        size = min(rows, samples - start)
        drawn = rng.integers(0, units, size=(size, units))
        drawn += np.arange(size)[:, None] * units
        yield np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units).astype(np.float64)


def _quantiles(means: Floats, level: float) -> tuple[Floats, Floats]:
    """(c,) lower and upper quantile of each row of (c, samples), NaN left out."""
    ends = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile(means, ends, axis=1)
    for row in np.flatnonzero(np.isnan(low)):
        kept = means[row][~np.isnan(means[row])]
        low[row], high[row] = np.quantile(kept, ends) if len(kept) else (np.nan, np.nan)
    return low, high

"""How much better did arms do where their protocol was made than on the sealed split?"""

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reports.results import EVIDENCE_METRICS, Arm
from reports.sealing import Optimism

_AT_ONCE = 4_000_000


def optimism(
    open_cells: pl.DataFrame,
    sealed_cells: pl.DataFrame,
    arms: Sequence[Arm],
    apart: Sequence[str],
    *,
    samples: int,
    seed: int,
) -> list[Optimism]:
    """Both splits' overall evidence metrics of every arm side by side, from `Results.cells` of each."""
    columns = [(arm.label, metric) for metric in EVIDENCE_METRICS for arm in arms]
    rng = np.random.default_rng(seed)
    first, second = (_values(cells, columns, apart) for cells in (open_cells, sealed_cells))
    drawn = _resampled(first, samples, rng) - _resampled(second, samples, rng)
    return [_row(*columns[place], first[:, place], second[:, place], drawn[place]) for place in range(len(columns))]


def _row(
    arm: str, metric: str, first: NDArray[np.float64], second: NDArray[np.float64], drawn: NDArray[np.float64]
) -> Optimism:
    held = [values[~np.isnan(values)] for values in (first, second)]
    low = high = None
    if min(map(len, held)) >= 2:
        low, high = (float(end) for end in np.nanquantile(drawn, [0.025, 0.975]))
    means = [float(values.mean()) if len(values) else None for values in held]
    difference = None if means[0] is None or means[1] is None else means[0] - means[1]
    return Optimism(arm, metric, means[0], means[1], difference, low, high, len(held[0]), len(held[1]))


def _values(cells: pl.DataFrame, columns: Sequence[tuple[str, str]], apart: Sequence[str]) -> NDArray[np.float64]:
    """(questions, columns) values of the overall row, NaN where undefined or missing."""
    kept = cells.filter(~pl.col("kind").is_in(list(apart)))
    by_arm = {str(name): frame.sort("question_id") for (name,), frame in kept.group_by("arm")}
    empty = kept.clear()
    return np.column_stack(
        [
            by_arm.get(arm, empty)[metric].fill_null(float("nan")).to_numpy().astype(np.float64)
            for arm, metric in columns
        ]
    )


def _resampled(values: NDArray[np.float64], samples: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """(columns, samples) means of `values`, questions drawn with replacement alike for all columns; NaN where none
    drawn has a value."""
    n = len(values)
    if not n:
        return np.full((values.shape[1], samples), np.nan)
    sums, counts = np.nan_to_num(values), (~np.isnan(values)).astype(np.float64)
    means, step = [], max(1, _AT_ONCE // n)
    for start in range(0, samples, step):
        size = min(step, samples - start)
        places = rng.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
        drawn = np.bincount(places.ravel(), minlength=size * n).reshape(size, n).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            means.append((drawn @ sums) / (drawn @ counts))
    return np.concatenate(means).T

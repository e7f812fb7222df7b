"""Which set spans the largest volume, each record scaled by its relevance?"""

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

import numpy as np
from numba import njit

from readers.types import Access, Budget, Evidence, Floats, Ints, Pool, Query, selected


@dataclass(frozen=True)
class Dpp:
    """Greedy MAP of the determinantal point process L = Diag(r)·S·Diag(r), r = exp(alpha·rel).

    `alpha`: ≥ 0, weight of relevance; Chen et al. write it θ / 2(1 − θ), so 1 is θ = 2/3 (inferred default).
    `eps`: > 0, the gain d² below which no record adds volume; the rest then follow by relevance.
    Raises `ValueError` outside.
    """

    alpha: float = 1.0
    eps: float = 1e-10

    title: ClassVar[str] = "The set of largest volume, records scaled by relevance"
    source: ClassVar[str] = "Chen, Zhang & Zhou 2018, Fast Greedy MAP Inference for DPP, NeurIPS (1709.05135)"

    def __post_init__(self) -> None:
        if not (isfinite(self.alpha) and self.alpha >= 0):
            raise ValueError(f"alpha ({self.alpha}) must be finite and at least 0")
        if not (isfinite(self.eps) and self.eps > 0):
            raise ValueError(f"eps ({self.eps}) must be finite and greater than 0")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        order, gains = dpp(pool.vectors, pool.dense, budget.most(pool), alpha=self.alpha, eps=self.eps)
        return selected(pool, order, budget, gains=gains)


def dpp(vectors: Floats, relevance: Floats, k: int, *, alpha: float = 1.0, eps: float = 1e-10) -> tuple[Ints, Floats]:
    """The first min(k, n) records of the greedy MAP, with the gain log d² of each in log det L.

    `vectors`: (n, d), unit rows; their dot products are S. `relevance`: (n,). Ties within 1e-12 in log d² go
    to the lower index. Once every d² < eps the rest follow by relevance with the gain NaN; records with a
    non-finite relevance or vector come last, in index order.
    Source: Chen et al. 2018, algorithm 1. Here d² = r²c², c² from the Cholesky factor of S alone, so that
    weights stay in the exponent and no alpha overflows; c² ≤ 1e-12 counts as 0, whatever its weight.
    """
    order, gains = _dpp(np.ascontiguousarray(vectors), np.asarray(relevance, np.float64), k, float(alpha), float(eps))
    return order, gains


@njit(cache=True, nogil=True)
def _dpp(vectors, relevance, k, alpha, eps):  # type: ignore[no-untyped-def]
    size = len(relevance)
    order = np.empty(min(k, size), np.int64)
    gains = np.full(len(order), np.nan)
    variance = np.empty(size)
    usable = np.empty(size, np.bool_)
    for i in range(size):
        variance[i] = _dot(vectors[i], vectors[i])
        usable[i] = np.isfinite(relevance[i]) and np.isfinite(variance[i])
    free = usable.copy()
    steps = min(len(order), usable.sum())
    factor = np.empty((steps, size))
    score = np.empty(size)
    diverse = True
    for step in range(steps):
        if diverse:
            for i in range(size):
                independent = variance[i] > 1e-12  # below, the Cholesky update leaves rounding noise
                score[i] = 2 * alpha * relevance[i] + np.log(variance[i]) if independent else -np.inf
            diverse = _highest(score, free) >= np.log(eps)
            if not diverse:
                score[:] = relevance
        best = _highest(score, free)
        pick = 0
        while not (free[pick] and score[pick] >= best - 1e-12):
            pick += 1
        order[step] = pick
        free[pick] = False
        if diverse:
            gains[step] = score[pick]
            _condition(vectors, pick, variance, factor, step, free)
    order[steps:] = np.flatnonzero(~usable)[: len(order) - steps]
    return order, gains


@njit(cache=True, nogil=True)
def _highest(score, free):  # type: ignore[no-untyped-def]
    best = -np.inf
    for i in range(len(score)):
        if free[i]:
            best = max(best, score[i])
    return best


@njit(cache=True, nogil=True)
def _condition(vectors, pick, variance, factor, step, free):  # type: ignore[no-untyped-def]
    row = factor[step]
    for i in range(len(row)):
        row[i] = _dot(vectors[i], vectors[pick]) if free[i] else 0.0
    for earlier in range(step):
        weight = factor[earlier, pick]
        for i in range(len(row)):
            row[i] -= weight * factor[earlier, i]
    scale = 1 / np.sqrt(variance[pick])
    for i in range(len(row)):
        row[i] *= scale
        variance[i] -= row[i] * row[i]


# Summed in float64 and in one order for every row: equal rows have similarities equal to the last bit.
# Repeated where it is needed, because numba's cache does not notice a change in another file's function.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(left, right):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(left)):
        total += np.float64(left[i]) * np.float64(right[i])
    return total

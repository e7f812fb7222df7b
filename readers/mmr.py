"""Which records are relevant without repeating what is already selected?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from readers.types import Access, Budget, Evidence, Floats, Ints, Pool, Query, selected


@dataclass(frozen=True)
class Mmr:
    """Maximal marginal relevance: each step takes the largest trade·rel_i − (1 − trade)·max_{j in S} s_ij.

    `trade`: weight of relevance, in [0, 1]; 1 is the dense order. Raises `ValueError` outside.
    """

    trade: float = 0.5

    title: ClassVar[str] = "Relevance to the question minus similarity to what is already selected"
    source: ClassVar[str] = "Carbonell & Goldstein 1998, The Use of MMR, SIGIR"

    def __post_init__(self) -> None:
        if not 0 <= self.trade <= 1:
            raise ValueError(f"trade ({self.trade}) must be in [0, 1]")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        order, gains = mmr(pool.vectors, pool.dense, budget.most(pool), trade=self.trade)
        return selected(pool, order, budget, gains=gains)


def mmr(vectors: Floats, relevance: Floats, k: int, *, trade: float = 0.5) -> tuple[Ints, Floats]:
    """The first min(k, n) records by marginal relevance, with the score each had when it was taken.

    `vectors`: (n, d), unit rows; their dot product is the similarity s. `relevance`: (n,).
    The first pick has the largest relevance and the score trade·rel. Ties within 1e-12 go to the lower index.
    A record with a non-finite relevance or vector comes last, in index order, with the score NaN.
    Source: Carbonell & Goldstein 1998. pyversity's `diversity` is 1 − trade; it clips cosines at 0.
    """
    order, gains = _mmr(np.ascontiguousarray(vectors), np.asarray(relevance, np.float64), k, float(trade))
    return order, gains


@njit(cache=True, nogil=True)
def _mmr(vectors, relevance, k, trade):  # type: ignore[no-untyped-def]
    size = len(relevance)
    order = np.empty(min(k, size), np.int64)
    gains = np.full(len(order), np.nan)
    nearest = np.full(size, -np.inf)
    score = np.empty(size)
    usable = np.empty(size, np.bool_)
    for i in range(size):
        usable[i] = np.isfinite(relevance[i]) and np.isfinite(_dot(vectors[i], vectors[i]))
    free = usable.copy()
    steps = min(len(order), usable.sum())
    for step in range(steps):
        best = -np.inf
        for i in range(size):
            if free[i]:
                score[i] = relevance[i] if step == 0 else trade * relevance[i] - (1 - trade) * nearest[i]
                best = max(best, score[i])
        pick = 0
        while not (free[pick] and score[pick] >= best - 1e-12):
            pick += 1
        order[step] = pick
        gains[step] = score[pick] if step else trade * score[pick]
        free[pick] = False
        for i in range(size):
            if free[i]:
                nearest[i] = max(nearest[i], _dot(vectors[i], vectors[pick]))
    order[steps:] = np.flatnonzero(~usable)[: len(order) - steps]
    return order, gains


# Summed in float64 and in one order for every row: equal rows have similarities equal to the last bit.
# Repeated where it is needed, because numba's cache does not notice a change in another file's function.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dot(left, right):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(left)):
        total += np.float64(left[i]) * np.float64(right[i])
    return total

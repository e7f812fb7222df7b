"""Which set serves every aspect of the question?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from readers.fca_ms import requirement_vectors
from readers.requirements import Requirement, attributes, coverage, rules, unit
from readers.types import Access, Budget, Evidence, Floats, Ints, Pool, Query, selected


@dataclass(frozen=True)
class Xquad:
    """xQuAD: each step takes the largest (1 − trade)·P(d|q) + trade·Σ_a P(a|q)·P(d|a)·Π_{s in S}(1 − P(s|a)).

    `trade`: weight of the aspects, in [0, 1]; 0 is the dense order. Raises `ValueError` outside.
    The aspects are the question's requirements by rules (`readers.requirements`), of equal weight; but for the question
    itself they have no vector and are met by attributes alone, as in `fca_ms`. P(d|q) and P(d|a) are min-max of cosine
    and of the coverage c(r, m) of FCA-MS.
    """

    trade: float = 0.5

    title: ClassVar[str] = "Relevance plus requirements by rules not served yet (xQuAD)"
    source: ClassVar[str] = "Santos, Macdonald & Ounis 2010, WWW; requirements after arXiv 2610.09348"

    def __post_init__(self) -> None:
        if not 0 <= self.trade <= 1:
            raise ValueError(f"trade ({self.trade}) must be in [0, 1]")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        return by_requirements(query, pool, budget, access, rules(query.text), trade=self.trade, encode=False)


def by_requirements(
    query: Query,
    pool: Pool,
    budget: Budget,
    access: Access,
    requirements: Sequence[Requirement],
    *,
    trade: float,
    encode: bool,
) -> Evidence:
    """The pool by `xquad` with `requirements` as aspects; `encode`: those beyond the question have own vectors."""
    vectors = unit(requirement_vectors(query, requirements, access, encode))
    strength = coverage(requirements, vectors, attributes(access.notes(pool.ids)), unit(pool.vectors))
    usable = np.asarray(np.isfinite(pool.vectors).all(axis=1))
    order, gains = xquad(pool.dense, strength, budget.most(pool), trade=trade, usable=usable)
    return selected(pool, order, budget, gains=gains)


def xquad(
    relevance: Floats,
    coverage: Floats,
    k: int,
    *,
    trade: float = 0.5,
    usable: NDArray[np.bool_] | None = None,
) -> tuple[Ints, Floats]:
    """The first min(k, n) records by xQuAD, with the score each had when it was taken.

    `relevance`: (n,). `coverage`: (A, n), A may be 0. `usable`: (n,) bool, all where not given.
    Ties within 1e-12 go to the lower index. Records that are not usable or lack a finite
    relevance come last, in index order, with the score NaN.
    Raises `ValueError` if the lengths differ.
    Source: Santos et al. 2010; inferred: min-max over the usable records for both probabilities, 0 where all
    values are equal; a strength that is not finite counts as the least.
    """
    relevance = np.asarray(relevance, np.float64)
    coverage = np.asarray(coverage, np.float64)
    if coverage.ndim != 2 or coverage.shape[1] != len(relevance):
        raise ValueError(f"coverage {coverage.shape} must be (aspects, {len(relevance)})")
    usable = np.isfinite(relevance) if usable is None else usable & np.isfinite(relevance)
    aspects = np.array([_unit_range(row, usable) for row in coverage]).reshape(coverage.shape)
    order, gains = _xquad(_unit_range(relevance, usable), aspects, usable, min(k, len(relevance)), float(trade))
    return order, gains


def _unit_range(values: Floats, usable: NDArray[np.bool_]) -> Floats:
    """`values` (n,) scaled to [0, 1] over usable records' finite values; 0 elsewhere, or if all are equal."""
    known = usable & np.isfinite(values)
    scaled = np.zeros(len(values))
    if known.any():
        low, high = values[known].min(), values[known].max()
        if high > low:
            scaled[known] = (values[known] - low) / (high - low)
    return scaled


@njit(cache=True, nogil=True)
def _xquad(relevance, coverage, usable, k, trade):  # type: ignore[no-untyped-def]
    size = len(relevance)
    order = np.empty(k, np.int64)
    gains = np.full(k, np.nan)
    unserved = np.full(len(coverage), 1 / max(len(coverage), 1))
    score = np.empty(size)
    free = usable.copy()
    steps = min(k, usable.sum())
    for step in range(steps):
        best = -np.inf
        for i in range(size):
            if free[i]:
                served = 0.0
                for a in range(len(coverage)):
                    served += unserved[a] * coverage[a, i]
                score[i] = (1 - trade) * relevance[i] + trade * served
                best = max(best, score[i])
        pick = 0
        while not (free[pick] and score[pick] >= best - 1e-12):
            pick += 1
        order[step] = pick
        gains[step] = score[pick]
        free[pick] = False
        for a in range(len(coverage)):
            unserved[a] *= 1 - coverage[a, pick]
    order[steps:] = np.flatnonzero(~usable)[: k - steps]
    return order, gains

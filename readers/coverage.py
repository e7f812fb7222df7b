"""Which set stands for the whole pool best?"""

from dataclasses import dataclass
from math import ceil, isfinite
from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from readers.types import Access, Budget, Evidence, Floats, Ints, Pool, Query, selected


@dataclass(frozen=True)
class FacilityLocation:
    """Greedy maximum of Σ_i rel_i·max_{j in S} s_ij: every relevant record has a near one in the set.

    Cosines and relevance are clipped at 0 (inferred: it makes the objective monotone and submodular).
    """

    title: ClassVar[str] = "The set to which every relevant record of the pool is near"
    source: ClassVar[str] = "Cornuéjols, Fisher & Nemhauser 1977, Location of Bank Accounts, Management Science"

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        order, gains = facility_location(pool.vectors, pool.dense, budget.most(pool))
        return selected(pool, order, budget, gains=gains)


@dataclass(frozen=True)
class LinBilmes:
    """Greedy maximum of Σ_i min(Σ_{j in S} s_ij, alpha·Σ_j s_ij) + lam·Σ_k √(Σ_{j in S∩P_k} rel_j).

    `alpha`: in [0, 1], share of a record's similarity to the pool at which it counts as covered.
    `lam`: ≥ 0, weight of diversity over the clusters P_k. `clusters`: in (0, 1], clusters per candidate;
    0.2 is Lin & Bilmes's. Inferred: alpha, lam, clipping as for `FacilityLocation`, and clusters from a
    farthest-first traversal of the pool where they use k-means, so that nothing is drawn at random.
    Raises `ValueError` outside these ranges.
    """

    alpha: float = 0.1
    lam: float = 1.0
    clusters: float = 0.2

    title: ClassVar[str] = "Coverage of the pool plus diversity over its clusters"
    source: ClassVar[str] = "Lin & Bilmes 2011, Submodular Functions for Document Summarization, ACL"

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha ({self.alpha}) must be in [0, 1]")
        if not (isfinite(self.lam) and self.lam >= 0):
            raise ValueError(f"lam ({self.lam}) must be finite and at least 0")
        if not 0 < self.clusters <= 1:
            raise ValueError(f"clusters ({self.clusters}) must be in (0, 1]")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        order, gains = lin_bilmes(
            pool.vectors,
            pool.dense,
            budget.most(pool),
            alpha=self.alpha,
            lam=self.lam,
            clusters=self.clusters,
        )
        return selected(pool, order, budget, gains=gains)


def facility_location(vectors: Floats, relevance: Floats, k: int) -> tuple[Ints, Floats]:
    """The first min(k, n) records of the greedy maximum, with the gain of each.

    `vectors`: (n, d), unit rows. `relevance`: (n,). Ties within 1e-12 go to the lower index. A record with a
    non-finite relevance or vector covers nothing, needs no cover and comes last, in index order, gain NaN.
    """
    similarity, reward, usable = _ground(vectors, relevance)
    order, gains = _facility_location(similarity, reward, usable, min(k, len(reward)))
    return order, gains


def lin_bilmes(
    vectors: Floats,
    relevance: Floats,
    k: int,
    *,
    alpha: float = 0.1,
    lam: float = 1.0,
    clusters: float = 0.2,
) -> tuple[Ints, Floats]:
    """The first min(k, n) records of the greedy maximum, with the gain of each.

    Shapes, ties and non-finite records as in `facility_location`. Every record costs 1: a token budget
    cuts the order and does not scale the gains as Lin & Bilmes's costs do.
    """
    similarity, reward, usable = _ground(vectors, relevance)
    cluster = farthest_first(similarity, usable, ceil(clusters * int(usable.sum())))
    order, gains = _lin_bilmes(similarity, reward, usable, cluster, min(k, len(reward)), float(alpha), float(lam))
    return order, gains


def farthest_first(similarity: Floats, usable: NDArray[np.bool_], count: int) -> Ints:
    """Cluster codes (n,) in [0, count): each record with the nearest centre of a farthest-first traversal.

    The first centre is the first usable record, the next the one least similar to all centres so far; ties
    go to the lower index and to the earlier centre. Unusable records get the code 0. Source: Gonzalez 1985.
    """
    codes: Ints = _farthest_first(similarity, usable, count)
    return codes


def _ground(vectors: Floats, relevance: Floats) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Similarity (n, n), relevance (n,), both ≥ 0 and 0 for unusable records; and which are usable."""
    relevance = np.asarray(relevance, np.float64)
    similarity = _similarities(np.ascontiguousarray(vectors))
    usable = np.isfinite(relevance) & np.isfinite(np.diagonal(similarity))
    if not usable.all():
        similarity[~usable] = 0
        similarity[:, ~usable] = 0
    return similarity, np.where(usable, np.maximum(relevance, 0), 0), usable


# Both greedy kernels are lazy (Minoux 1978): a record's last gain bounds its present one, so only records
# whose bound reaches the best fresh gain are computed again. The slack is 1e-12 for ties, 1e-12 for rounding.
@njit(cache=True, nogil=True)
def _facility_location(similarity, reward, usable, k):  # type: ignore[no-untyped-def]
    size = len(reward)
    order = np.empty(k, np.int64)
    gains = np.full(k, np.nan)
    nearest = np.zeros(size)
    bound = np.where(usable, np.inf, -np.inf)
    steps = min(k, usable.sum())
    for step in range(steps):
        fresh = np.zeros(size, np.bool_)
        best = -np.inf
        while True:
            pick = _stale(bound, fresh)
            if pick < 0 or bound[pick] < best - 2e-12:
                break
            bound[pick] = _cover_gain(similarity[pick], reward, nearest)
            fresh[pick] = True
            best = max(best, bound[pick])
        pick = _first(bound, fresh, best)
        order[step] = pick
        gains[step] = bound[pick]
        bound[pick] = -np.inf
        for i in range(size):
            nearest[i] = max(nearest[i], similarity[pick, i])
    order[steps:] = np.flatnonzero(~usable)[: k - steps]
    return order, gains


@njit(cache=True, nogil=True)
def _lin_bilmes(similarity, reward, usable, cluster, k, alpha, lam):  # type: ignore[no-untyped-def]
    size = len(reward)
    order = np.empty(k, np.int64)
    gains = np.full(k, np.nan)
    covered = np.zeros(size)
    ceiling = np.empty(size)
    for i in range(size):
        ceiling[i] = alpha * similarity[i].sum()
    mass = np.zeros(size)
    bound = np.where(usable, np.inf, -np.inf)
    steps = min(k, usable.sum())
    for step in range(steps):
        fresh = np.zeros(size, np.bool_)
        best = -np.inf
        while True:
            pick = _stale(bound, fresh)
            if pick < 0 or bound[pick] < best - 2e-12:
                break
            held = mass[cluster[pick]]
            bound[pick] = _saturating_gain(similarity[pick], covered, ceiling) + lam * (
                np.sqrt(held + reward[pick]) - np.sqrt(held)
            )
            fresh[pick] = True
            best = max(best, bound[pick])
        pick = _first(bound, fresh, best)
        order[step] = pick
        gains[step] = bound[pick]
        bound[pick] = -np.inf
        mass[cluster[pick]] += reward[pick]
        for i in range(size):
            covered[i] += similarity[pick, i]
    order[steps:] = np.flatnonzero(~usable)[: k - steps]
    return order, gains


@njit(cache=True, nogil=True)
def _stale(bound, fresh):  # type: ignore[no-untyped-def]
    """The record of the highest bound that is not fresh, or -1; taken records have the bound -inf."""
    pick, best = -1, -np.inf
    for i in range(len(bound)):
        if not fresh[i] and bound[i] > best:
            pick, best = i, bound[i]
    return pick


@njit(cache=True, nogil=True)
def _first(bound, fresh, best):  # type: ignore[no-untyped-def]
    pick = 0
    while not (fresh[pick] and bound[pick] >= best - 1e-12):
        pick += 1
    return pick


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _cover_gain(row, reward, nearest):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(row)):
        total += reward[i] * max(row[i] - nearest[i], 0.0)
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _saturating_gain(row, covered, ceiling):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(row)):
        total += min(covered[i] + row[i], ceiling[i]) - min(covered[i], ceiling[i])
    return total


@njit(cache=True, nogil=True)
def _farthest_first(similarity, usable, count):  # type: ignore[no-untyped-def]
    size = len(usable)
    codes = np.zeros(size, np.int64)
    nearest = np.where(usable, -np.inf, np.inf)
    for code in range(count):
        centre = np.argmin(nearest)
        for i in range(size):
            if usable[i] and similarity[centre, i] > nearest[i]:
                nearest[i] = similarity[centre, i]
                codes[i] = code
        nearest[centre] = np.inf
        codes[centre] = code
    return codes


# Summed in one order for every pair, unlike BLAS: equal rows have similarities equal to the last bit.
# float32 halves the time, and its error of 1e-7 is that of the vectors themselves.
@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _similarities(vectors):  # type: ignore[no-untyped-def]
    size, width = vectors.shape
    similarity = np.empty((size, size))
    for i in range(size):
        for j in range(i + 1):
            total = np.float32(0)
            for x in range(width):
                total += vectors[i, x] * vectors[j, x]
            similarity[i, j] = similarity[j, i] = 0.0 if total < 0 else total
    return similarity

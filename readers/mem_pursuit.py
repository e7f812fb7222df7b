"""Which memories together reconstruct the query best?

`mem_pursuit` walks one question's pool, `mem_pursuit_batch` many, `MemPursuit` is the reader.
Source: Feng & Fan, "Recall What Is Missing", arXiv 2610.15642v1, section 3 and appendices A.1, B.4. Where the paper is
silent the rules below decide, so that two implementations agree to the last selection.
"""

import math
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from readers import pursuit_kernels as kernels
from readers.types import Access, Budget, Evidence, Floats, Ints, Pool, Query, StopReason, selected

_FLOAT32, _FLOAT64, _INT64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.int64)
_TURN = 16  # questions that a thread takes at a time: handing over one by one costs more than it evens out
_REASONS: tuple[StopReason, ...] = ("budget", "pool_exhausted", "adaptive", "empty_pool")


@dataclass(frozen=True)
class Pursuit:
    """The path of one question; n <= min(k, finite memories of the pool).

    `order`: (n,) int64, pool indices in order of entry; its first j are the answer for every j <= n.
    `weights`: (n,) float64, aligned with `order`: the simplex weights at the end of the path (>= 0, sum 1).
    `residual_norms`: (n,) float64, ||r|| (not squared) after each entry.
    `gains`: (n,) float64, by how much each entry lowered ||r||^2; the first against the empty reconstruction, ||q||^2,
    so it is negative where the best cosine is under 1/2.
    `certificate`: how far the objective can be from its optimum over the pool (B.4); None for an empty path.
    `stop_reason`: `budget`, `pool_exhausted` (no finite memory is left), `adaptive` or `empty_pool`.
    """

    order: NDArray[np.int64]
    weights: NDArray[np.float64]
    residual_norms: NDArray[np.float64]
    gains: NDArray[np.float64]
    certificate: float | None
    stop_reason: StopReason


def mem_pursuit(
    query: Floats,
    memories: Floats,
    k: int,
    *,
    ridge: float = 1e-10,
    tau: float | None = None,
    patience: int = 2,
    gram: Floats | None = None,
) -> Pursuit:
    """The pursuit path of one question.

    `query`: (d,), finite; `memories`: (P, d) in native rank order; both read as float32, rows meant to be unit length.
    Each step takes the unselected memory with the largest residual score and refits all weights over the simplex,
    minimising 1/2 ||q - sum(w m)||^2 + ridge/2 ||w||^2. A memory stays on the path though its weight falls to 0.

    Ties within 1e-12 go to the lower index. At ||r||^2 <= 1e-12 the ranking falls back to the query cosine. Rows with
    NaN or infinity are never selected; zero rows may be. Of exact duplicates all may enter, sharing their weight.
    `tau`: stop after `patience` consecutive entries that lower ||r||^2 by at most this part of it, or of 1e-12
    where it is less (the paper: 1e-5).
    `gram`: (P, P), the memories' inner products where a store keeps them; float64 is used as it is, any other type to
    rank only, with what decides computed from `memories`. The same path either way.

    Raises `ValueError` for shapes that do not match, a non-finite query, k < 0, tau < 0, patience < 1 or a ridge that
    is not positive and finite.
    """
    _check(k, ridge, tau, patience)
    vector = _array(query, _FLOAT32, 1, "query")
    matrix = _array(memories, _FLOAT32, 2, "memories")
    if matrix.shape[1] != vector.shape[0]:
        raise ValueError(f"memories are {matrix.shape[1]}-dimensional, the query has {vector.shape[0]} dimensions")
    size = matrix.shape[0]
    return _walk(vector, matrix, _scratch.indices(size), _gram(gram, size), k, ridge, tau, patience)


def mem_pursuit_batch(
    queries: Floats,
    memories: Floats | Sequence[Floats],
    k: int,
    *,
    rows: Sequence[Ints] | Ints | None = None,
    ridge: float = 1e-10,
    tau: float | None = None,
    patience: int = 2,
    gram: Floats | None = None,
    threads: int = 1,
) -> list[Pursuit]:
    """The pursuit paths of Q questions, in order; the same whatever `threads` is.

    `queries`: (Q, d). `memories`: Q pools, each (P_i, d), or, with `rows`, one store (N, d) of which `rows[i]` (P_i,)
    are the pool of question i: nothing is copied, and `order` still indexes the pool. `gram`: (N, N), with `rows` only.
    Threads are plain ones, each running nogil kernels: numba's own parallel loops end the process when two Python
    threads enter them at once.

    Raises `ValueError` as `mem_pursuit` does, where there are not as many pools as queries, where a row index is
    outside the store, and for threads < 1.
    """
    _check(k, ridge, tau, patience)
    if threads < 1:
        raise ValueError(f"threads is {threads}, it must be at least 1")
    vectors = _array(queries, _FLOAT32, 2, "queries")
    pools = memories if rows is None else rows
    if len(pools) != len(vectors):
        given = "memories" if rows is None else "rows"
        raise ValueError(f"{given} ({len(pools)} pools) must match queries ({len(vectors)})")
    if rows is None:
        if gram is not None:
            raise ValueError("gram is one store's: it needs rows, which say where in the store each pool is")

        def one(i: int) -> Pursuit:
            return mem_pursuit(vectors[i], memories[i], k, ridge=ridge, tau=tau, patience=patience)
    else:
        store = _array(memories, _FLOAT32, 2, "memories")
        if store.shape[1] != vectors.shape[1]:
            raise ValueError(f"memories are {store.shape[1]}-dimensional, queries have {vectors.shape[1]} dimensions")
        products = _gram(gram, len(store))
        places = [_rows(r, len(store)) for r in rows]

        def one(i: int) -> Pursuit:
            return _walk(vectors[i], store, places[i], products, k, ridge, tau, patience)

    def some(start: int) -> list[Pursuit]:
        return [one(i) for i in range(start, min(start + _TURN, len(vectors)))]

    starts = range(0, len(vectors), _TURN)
    if threads == 1 or len(starts) < 2:
        return [path for start in starts for path in some(start)]
    with ThreadPoolExecutor(threads) as crew:
        return [path for paths in crew.map(some, starts) for path in paths]


@dataclass(frozen=True)
class MemPursuit:
    """The reader: the pursuit path over the pool's vectors, cut to the budget. Ties go to the better native rank.

    Parameters as in `mem_pursuit`, which says what of them raises `ValueError`.
    """

    ridge: float = 1e-10
    tau: float | None = None
    patience: int = 2

    title: ClassVar[str] = "MemPursuit: memories that together reconstruct the query"
    source: ClassVar[str] = "Feng & Fan, arXiv 2610.15642, section 3"

    def __post_init__(self) -> None:
        _check(0, self.ridge, self.tau, self.patience)

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        """The path's longest prefix within the budget. `gains` are falls of the squared residual norm.

        `weights` are those at the end of the path, so they need not sum to 1 where tokens cut it short.
        """
        path = mem_pursuit(
            query.vector, pool.vectors, budget.most(pool), ridge=self.ridge, tau=self.tau, patience=self.patience
        )
        return selected(pool, path.order, budget, gains=path.gains, weights=path.weights, stop_reason=path.stop_reason)


class _Workspace(threading.local):
    """Scratch memory of one thread, grown when a question needs more and never read before it is written."""

    def __init__(self) -> None:
        self.fitted = (0, 0, 0)
        self.floats = np.empty(0)
        self.integers = np.empty(0, dtype=np.uint32)
        self.narrow = np.empty(0, dtype=np.float32)
        self.coarse = np.empty((0, 0), dtype=np.int8)
        self.short = np.empty(0, dtype=np.int16)
        self.places = _frozen(np.arange(0))

    def fit(self, size: int, dim: int, steps: int) -> None:
        if (size, dim, steps) == self.fitted:
            return
        floats, integers = kernels.floats_needed(size, dim, steps), kernels.integers_needed(size, steps)
        if self.floats.shape[0] < floats:
            self.floats = np.empty(floats)
        if self.integers.shape[0] < integers:
            self.integers = np.empty(integers, dtype=np.uint32)
        if self.narrow.shape[0] != dim:
            self.narrow = np.empty(dim, dtype=np.float32)
        width = -(-dim // kernels.LANES) * kernels.LANES
        if self.coarse.shape[0] < size or self.coarse.shape[1] != width:
            self.coarse, self.short = np.empty((size, width), dtype=np.int8), np.empty(width, dtype=np.int16)
        self.fitted = (size, dim, steps)

    def indices(self, size: int) -> NDArray[np.int64]:
        if self.places.shape[0] != size:
            self.places = _frozen(np.arange(size, dtype=np.int64))
        return self.places


def _walk(
    query: NDArray[np.float32],
    memories: NDArray[np.float32],
    rows: NDArray[np.int64],
    gram: tuple[NDArray[np.float32], NDArray[np.float64]],
    k: int,
    ridge: float,
    tau: float | None,
    patience: int,
) -> Pursuit:
    size = rows.shape[0]
    steps = min(k, size)
    scratch = _scratch
    scratch.fit(size, memories.shape[1], steps)
    order, result = np.empty(steps, dtype=np.int64), np.empty((3, steps))
    length, certificate, reason = kernels.pursue(
        query,
        memories,
        rows,
        gram[0],
        gram[1],
        ridge,
        -1.0 if tau is None else tau,
        patience,
        order,
        result,
        scratch.floats,
        scratch.integers,
        scratch.narrow,
        scratch.coarse,
        scratch.short,
    )
    if reason == kernels.BAD_QUERY:
        raise ValueError("the query holds NaN or infinity")
    if length < steps:
        order, result = order[:length], result[:, :length]
    weights, residual_norms, gains = result
    return Pursuit(order, weights, residual_norms, gains, certificate if length else None, _REASONS[reason])


def _check(k: int, ridge: float, tau: float | None, patience: int) -> None:
    if k < 0:
        raise ValueError(f"k is {k}, it must be at least 0")
    if not 0 < ridge < math.inf:
        raise ValueError(f"ridge is {ridge}, it must be positive and finite: it makes the weights of duplicates unique")
    if tau is not None and not tau >= 0:
        raise ValueError(f"tau is {tau}, it must be at least 0 (None switches adaptive stopping off)")
    if patience < 1:
        raise ValueError(f"patience is {patience}, it must be at least 1")


def _array(values: Any, dtype: np.dtype[Any], axes: int, name: str) -> NDArray[Any]:
    """`values` as a read-only, C-contiguous array of `dtype`; read-only, so that one compiled kernel serves all."""
    array = np.asarray(values)
    if array.ndim != axes:
        raise ValueError(f"{name} must have {axes} dimension{'s' * (axes > 1)}, not {array.ndim} {array.shape}")
    if array.dtype is not dtype or not array.flags.carray:
        array = np.require(array, dtype, ["C", "A"])
    return _frozen(array)


def _gram(gram: Floats | None, size: int) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """(the Gram where it is rounded, the Gram where it is float64); the other one is empty."""
    if gram is None:
        return _NO_GRAM
    products = np.asarray(gram)
    if products.shape != (size, size):
        raise ValueError(f"gram {products.shape} must be ({size}, {size}) to match memories ({size})")
    if products.dtype == np.float64:
        return _NO_GRAM[0], _array(products, _FLOAT64, 2, "gram")
    return _array(products, _FLOAT32, 2, "gram"), _NO_GRAM[1]


def _rows(rows: Ints, size: int) -> NDArray[np.int64]:
    places = _array(rows, _INT64, 1, "the rows of a pool")
    if places.size and (places.min() < 0 or places.max() >= size):
        raise ValueError(f"rows {places.min()} to {places.max()} must lie in a store of {size}")
    return places


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    if not values.flags.writeable:
        return values
    view = values.view()
    view.setflags(write=False)
    return view


_NO_GRAM = (_frozen(np.empty((0, 0), dtype=np.float32)), _frozen(np.empty((0, 0))))
_scratch = _Workspace()

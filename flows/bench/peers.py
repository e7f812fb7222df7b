"""What else computes MemPursuit's path, or would be used in its place?

Every peer's `run` is `(query (d,) float32, memories (P, d) float32, relevance (P,) float32, k) -> order (k,)`,
unit rows, k <= P. `relevance` is the query cosine, which those that want it are given for free.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
_RIDGE = 1e-10


@dataclass(frozen=True)
class Peer:
    """`package`: what must be installed for it besides Suffice. `same_path`: it computes MemPursuit's own order."""

    title: str
    package: str | None
    same_path: bool
    run: Callable[[Array, Array, Array, int], Array]

    def installed(self) -> bool:
        """Whether `run` can run here."""
        return self.package is None or find_spec(self.package) is not None


def full_gram(query: Array, memories: Array, relevance: Array, k: int) -> Array:
    """Residual pursuit as the paper describes its own (arXiv 2610.15642, C.7): numba, the whole Gram, dense refits."""
    order: Array = _full_gram(query, memories, k, _RIDGE)
    return order


def naive(query: Array, memories: Array, relevance: Array, k: int) -> Array:
    """The same in plain numpy."""
    rows, q = memories.astype(np.float64), query.astype(np.float64)
    gram, cosines = rows @ rows.T, rows @ q
    order = [int(np.argmax(cosines))]
    support, alpha = [order[0]], np.zeros(len(rows))
    alpha[order[0]] = 1.0
    while len(order) < k:
        scores = cosines - gram[:, support] @ alpha[support]
        scores[order] = -np.inf
        order.append(int(np.argmax(scores)))
        support.append(order[-1])
        while True:
            system = gram[np.ix_(support, support)] + _RIDGE * np.eye(len(support))
            solved = np.linalg.solve(system, np.stack([cosines[support], np.ones(len(support))], axis=1))
            x = solved[:, 0] - (solved[:, 0].sum() - 1) / solved[:, 1].sum() * solved[:, 1]
            if x.min() >= 0:
                alpha[support] = x
                break
            now = alpha[support]
            part = np.where(x < 0, now / np.where(x < 0, now - x, 1.0), np.inf)
            leaving = int(np.argmin(part))
            alpha[support] = now + part[leaving] * (x - now)
            alpha[support.pop(leaving)] = 0.0
    return np.array(order)


def nnls(query: Array, memories: Array, relevance: Array, k: int) -> Array:
    """Residual pursuit whose refit is scipy's nnls, the sum of the weights held at 1 by a heavy row."""
    from scipy.optimize import nnls as solve

    rows, q = memories.astype(np.float64), query.astype(np.float64)
    order: list[int] = []
    residual = q
    for _ in range(k):
        scores = rows @ residual
        scores[order] = -np.inf
        order.append(int(np.argmax(scores)))
        chosen = rows[order]
        weights, _ = solve(np.vstack([chosen.T, np.full(len(order), 1e3)]), np.append(q, 1e3))
        residual = q - weights @ chosen
    return np.array(order)


def omp(query: Array, memories: Array, relevance: Array, k: int) -> Array:
    """scikit-learn's orthogonal matching pursuit: sign and sum of the weights are free. By index: it tells no order."""
    from sklearn.linear_model import orthogonal_mp

    return np.flatnonzero(orthogonal_mp(memories.T, query, n_nonzero_coefs=k))


def mmr(query: Array, memories: Array, relevance: Array, k: int) -> Array:
    """pyversity's maximal marginal relevance."""
    from pyversity import mmr as diversify

    return np.asarray(diversify(memories, relevance, k, 0.5).indices)


def dpp(query: Array, memories: Array, relevance: Array, k: int) -> Array:
    """pyversity's greedy determinantal point process."""
    from pyversity import dpp as diversify

    return np.asarray(diversify(memories, relevance, k, 0.5).indices)


PEERS: dict[str, Peer] = {
    "full_gram": Peer("numba with the full Gram", None, True, full_gram),
    "naive": Peer("naive numpy active set", None, True, naive),
    "nnls": Peer("numpy and scipy's nnls", "scipy", True, nnls),
    "omp": Peer("scikit-learn OMP", "sklearn", False, omp),
    "mmr": Peer("pyversity MMR", "pyversity", False, mmr),
    "dpp": Peer("pyversity DPP", "pyversity", False, dpp),
}


@njit(cache=True, error_model="numpy")
def _full_gram(query, memories, k, ridge):  # type: ignore[no-untyped-def]
    gram = np.dot(memories, memories.T).astype(np.float64)
    cosines = np.dot(memories, query).astype(np.float64)
    size = len(cosines)
    order, free, alpha = np.empty(k, np.int64), np.ones(size, np.bool_), np.zeros(size)
    support = np.empty(k, np.int64)
    used = 0
    for t in range(k):
        scores = cosines - np.dot(gram, alpha)
        pick = -1
        for i in range(size):
            if free[i] and (pick < 0 or scores[i] > scores[pick]):
                pick = i
        order[t], free[pick] = pick, False
        support[used] = pick
        used += 1
        if t == 0:
            alpha[pick] = 1.0
        while True:
            system, sides = np.empty((used, used)), np.ones((used, 2))
            for i in range(used):
                sides[i, 0] = cosines[support[i]]
                for j in range(used):
                    system[i, j] = gram[support[i], support[j]]
                system[i, i] += ridge
            solved = np.linalg.solve(system, sides)
            nu, total = -1.0, 0.0
            for i in range(used):
                nu += solved[i, 0]
                total += solved[i, 1]
            nu /= total
            part, leaving = 1.0, -1
            for i in range(used):
                x, now = solved[i, 0] - nu * solved[i, 1], alpha[support[i]]
                if x < 0.0 and (leaving < 0 or now / (now - x) < part):
                    part, leaving = now / (now - x), i
            for i in range(used):
                x = solved[i, 0] - nu * solved[i, 1]
                alpha[support[i]] += part * (x - alpha[support[i]])
            if leaving < 0:
                break
            alpha[support[leaving]] = 0.0
            used -= 1
            for i in range(leaving, used):
                support[i] = support[i + 1]
    return order

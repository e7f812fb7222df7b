"""How much of a question do given memories leave unexplained?

The refit of `readers.mem_pursuit` over a set that somebody else chose. Source: Feng & Fan, "Recall What Is Missing",
arXiv 2610.15642v1, Eq. 3 and 6.
"""

import numpy as np
from numpy.typing import NDArray

from readers.mem_pursuit import mem_pursuit
from readers.types import Floats


def simplex_residual(query: Floats, rows: Floats, *, ridge: float = 1e-10) -> float:
    """R(S|q) = ||r(q, S)||, the distance from `query` (d,) to the convex hull of `rows` (n, d).

    In [0, 2] for unit vectors; ||q|| where `rows` is empty. The norm is not squared. Raises as `residual` does.
    """
    return float(np.linalg.norm(residual(query, rows, ridge=ridge)))


def residual(query: Floats, rows: Floats, *, ridge: float = 1e-10) -> NDArray[np.float64]:
    """r(q, S) of Eq. 3, (d,): `query` (d,) less its best convex combination of `rows` (n, d), read as float32.

    The weights are the exact minimum of Eq. 6: a pursuit that may take every row ends with the refit over all of them,
    whatever the order in which it took them. Rows with NaN or infinity have no part in it; with no rows left r = q.
    Raises `ValueError` as `readers.mem_pursuit.mem_pursuit` does: shapes that do not match, a non-finite query.
    """
    path = mem_pursuit(query, rows, len(rows), ridge=ridge)
    members = np.asarray(rows, np.float32)[path.order].astype(np.float64)
    remaining: NDArray[np.float64] = np.asarray(query, np.float32).astype(np.float64) - path.weights @ members
    return remaining

"""The residual of a given set: cases by hand, agreement with a general solver, what must hold for any set."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from readers.mem_pursuit import mem_pursuit
from readers.reconstruction import residual, simplex_residual


def _unit(rng: np.random.Generator, rows: int, dim: int) -> NDArray[np.float32]:
    drawn = rng.normal(size=(rows, dim))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def _projected(query: NDArray[np.float32], rows: NDArray[np.float32]) -> float:
    """Distance to the hull by SLSQP over the weights."""
    members, q, n = rows.astype(np.float64), query.astype(np.float64), len(rows)
    found = minimize(
        lambda w: float(((q - w @ members) ** 2).sum()),
        np.full(n, 1 / n),
        jac=lambda w: -2 * members @ (q - w @ members),
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(n)},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-15},
    )
    return float(np.sqrt(found.fun))


X, Y, Z = np.eye(3, dtype=np.float32)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([X], 0.0),  # the query itself
        ([Y], 2**0.5),  # orthogonal
        ([-X], 2.0),  # opposite
        ([Y, Z], 1.5**0.5),  # weights 1/2, 1/2: ||(1, -1/2, -1/2)||
        ([Y, X], 0.0),  # all weight on the query
        ([Y, Y], 2**0.5),  # a copy adds nothing
        ([np.float32([0.6, 0.8, 0]), np.float32([0.6, -0.8, 0])], 0.4),  # midpoint (0.6, 0, 0)
        ([Y, np.float32([0, -1, 0])], 1.0),  # the origin
    ],
)
def test_residuals_computed_by_hand(rows: list[NDArray[np.float32]], expected: float) -> None:
    assert simplex_residual(X, np.stack(rows)) == pytest.approx(expected, abs=1e-7)


def test_no_rows_leave_the_whole_query() -> None:
    assert simplex_residual(X, np.empty((0, 3), np.float32)) == 1.0
    assert residual(X, np.float32([[np.nan, 0, 0]])).tolist() == [1, 0, 0]


def test_one_row_leaves_their_difference() -> None:
    assert residual(X, Y[None]).tolist() == [1, -1, 0]


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(2, 16))
@settings(max_examples=60, deadline=None)
def test_the_residual_is_the_distance_that_a_general_solver_finds(seed: int, size: int, dim: int) -> None:
    rng = np.random.default_rng(seed)
    query, rows = _unit(rng, 1, dim)[0], _unit(rng, size, dim)
    assert simplex_residual(query, rows) == pytest.approx(_projected(query, rows), abs=2e-6)


@given(st.integers(0, 2**32), st.integers(2, 30))
@settings(max_examples=60, deadline=None)
def test_more_rows_never_hurt_and_their_order_does_not_matter(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    query, rows = _unit(rng, 1, 24)[0], _unit(rng, size, 24)
    whole = simplex_residual(query, rows)
    assert whole <= simplex_residual(query, rows[:-1]) + 1e-12
    assert simplex_residual(query, rows[rng.permutation(size)]) == pytest.approx(whole, abs=1e-9)


def test_the_residual_of_a_prefix_is_the_norm_on_the_path() -> None:
    rng = np.random.default_rng(3)
    query, rows = _unit(rng, 1, 32)[0], _unit(rng, 80, 32)
    path = mem_pursuit(query, rows, 20)
    for size in (1, 5, 20):
        assert simplex_residual(query, rows[path.order[:size]]) == pytest.approx(path.residual_norms[size - 1])


def test_shapes_that_do_not_match_are_refused() -> None:
    with pytest.raises(ValueError, match="dimension"):
        simplex_residual(X, np.ones((2, 4), np.float32))

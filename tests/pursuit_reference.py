"""What is the pursuit path by the book: full float64 Gram, one fresh dense solve per refit, no shortcuts?

Shares nothing with `readers.mem_pursuit` but the rules: no factor is kept, no score is bounded or rounded, nothing is
saturated, and every refit is solved as a bordered KKT system by LU.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Reference:
    """`order`, `weights` (at the end), `losses` (||r||^2 after each entry), `paths` (all weights after each entry)."""

    order: list[int]
    weights: Array
    losses: Array
    certificate: float | None
    stop_reason: str
    paths: list[Array]


def reference_path(
    query: NDArray[np.float32],
    memories: NDArray[np.float32],
    k: int,
    *,
    ridge: float = 1e-10,
    tau: float | None = None,
    patience: int = 2,
) -> Reference:
    """The path of `mem_pursuit`, step by step as appendix A.1 writes it."""
    rows, q = memories.astype(np.float64), query.astype(np.float64)
    finite = np.isfinite(rows).all(axis=1)
    safe = np.where(finite[:, None], rows, 0.0)
    gram, cosines, square = safe @ safe.T, safe @ q, float(q @ q)
    slack = 1e-14 * max(
        1.0, gram.diagonal().max(initial=0.0), float(np.sqrt(gram.diagonal().max(initial=0.0) * square))
    )
    free, order, alpha = finite.copy(), [], np.zeros(len(rows))
    loss, losses, paths, streak, reason = square, [], [], 0, "budget"
    while len(order) < k and free.any():
        covered = loss <= 1e-12
        scores = cosines if covered or not order else cosines - gram @ alpha
        pick = int(np.flatnonzero(free & (scores >= scores[free].max() - 1e-12))[0])
        order.append(pick)
        free[pick] = False
        alpha[order] = simplex_weights(gram[np.ix_(order, order)], cosines[order], ridge, alpha[order], slack)
        residual = q - alpha @ safe
        before, loss = loss, float(residual @ residual)
        losses.append(loss)
        paths.append(alpha.copy())
        if tau is not None:
            streak = streak + 1 if before - loss <= tau * max(before, 1e-12) else 0
            if streak >= patience:
                reason = "adaptive"
                break
    if reason != "adaptive" and not free.any():
        reason = "pool_exhausted" if len(rows) else "empty_pool"
    certificate = None
    if order:
        scores = cosines - gram @ alpha
        nu = alpha @ scores - ridge * alpha @ alpha
        certificate = max(0.0, float(scores[free].max() - nu)) if free.any() else 0.0
    return Reference(order, alpha[order], np.array(losses), certificate, reason, paths)


def simplex_weights(
    gram: Array, cosines: Array, ridge: float, start: Array | None = None, slack: float = 1e-14
) -> Array:
    """argmin over the simplex of alpha G alpha / 2 - b alpha + ridge/2 alpha^2, from `start` or a vertex."""
    n = len(cosines)
    alpha = np.zeros(n) if start is None or not start.any() else start.copy()
    if not alpha.any():
        alpha[int(np.argmax(cosines - gram.diagonal() / 2))] = 1.0
    support = list(np.flatnonzero(alpha > 0))
    nu = _multiplier(gram, cosines, ridge, alpha)
    for _ in range(10 * n + 50):
        scores = cosines - gram @ alpha - ridge * alpha
        outside = [i for i in range(n) if i not in support]
        if not outside or scores[outside].max() <= nu + slack:
            break
        support.append(outside[int(np.argmax(scores[outside]))])
        while True:
            solved, nu = _bordered(gram[np.ix_(support, support)], cosines[support], ridge)
            if solved.min() >= 0:
                alpha[:] = 0
                alpha[support] = solved
                break
            now = alpha[support]
            part = np.where(solved < 0, now / np.where(solved < 0, now - solved, 1.0), np.inf)
            leaving = int(np.argmin(part))
            alpha[support] = np.maximum(now + part[leaving] * (solved - now), 0.0)
            alpha[support[leaving]] = 0.0
            del support[leaving]
    return alpha


def objective(query: Array, memories: Array, alpha: Array, ridge: float) -> float:
    """Eq. 2."""
    residual = query - alpha @ memories
    return float(residual @ residual) / 2 + ridge / 2 * float(alpha @ alpha)


def optimum_bounds(query: NDArray[np.float32], memories: NDArray[np.float32], ridge: float) -> tuple[float, float]:
    """(lower, upper) bound of Eq. 2 over the full simplex: the value reached, less its own Frank-Wolfe gap."""
    rows, q = memories.astype(np.float64), query.astype(np.float64)
    gram, cosines = rows @ rows.T, rows @ q
    alpha = simplex_weights(gram, cosines, ridge)
    gradient = gram @ alpha + ridge * alpha - cosines
    value = objective(q, rows, alpha, ridge)
    return value - max(0.0, float(alpha @ gradient - gradient.min())), value


def _multiplier(gram: Array, cosines: Array, ridge: float, alpha: Array) -> float:
    return float(alpha @ (cosines - gram @ alpha - ridge * alpha))


def _bordered(gram: Array, cosines: Array, ridge: float) -> tuple[Array, float]:
    n = len(cosines)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = gram + ridge * np.eye(n)
    system[:n, n] = system[n, :n] = 1.0
    right = np.append(cosines, 1.0)
    solution = np.linalg.solve(system, right)
    solution += np.linalg.solve(system, right - system @ solution)
    return solution[:n], float(solution[n])

"""How is the pursuit path of one question computed exactly, without allocating, in few reads of the pool?

`pursue` is the entry; what it calls stands below it in the order of use. Only plain arrays, and every array that is
written to is handed in. The rules are those of `readers.mem_pursuit`; this is how they are kept cheap.

*Scores.* The score of a memory is m.r with r = q - sum(alpha m), read in float32 straight from the pool, four memories
at a time, and only for memories that can still win. Refits are exact and each simplex contains the one before it, so
the reconstruction moves from step s to step t by at most sqrt(2 F_s - 2 F_t), F being the objective of Eq. 2: a score
read at step s bounds the score at step t. What float32 leaves open, by its worst-case rounding bound, is decided in
float64.

*Weights.* In float64 over the support F: L = chol(G_FF + ridge I), z = L^-1 b and w = L^-1 1 are carried along;
nu = (w.z - 1) / (w.w) and x = L^-T (z - nu w). Where x has a negative entry the step ends at the first blocking memory,
which leaves F by Givens rotations of L, z and w; a memory outside F returns when its score exceeds nu.

*Saturation.* Once no unselected score exceeds nu, KKT holds for every larger set: weights stay, the tail is one sort.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

TIE = 1e-12
"""Scores this close are equal; the lowest pool index wins."""
COVERED = 1e-12
"""At or below this squared residual the query is covered: the ranking falls back to the query cosine."""
SLACK = 1e-14
"""A score must exceed nu by this much, per unit of squared norm, to enter the support."""

BUDGET, POOL_EXHAUSTED, ADAPTIVE, EMPTY_POOL = range(4)
NO_GRAM, ROUNDED_GRAM, EXACT_GRAM = range(3)

_ROUNDING = 1.01 * 2.0**-24  # unit roundoff of float32, with room for its higher orders
_WIDE = 1e12  # beyond this squared norm float32 scores could overflow: float64 throughout
_REASSOCIATE = {"reassoc", "contract", "nsz"}  # lets reductions vectorise; NaN and infinity keep their meaning


class _Pool(NamedTuple):
    """One question: what is read, how large it is, and room for the residual."""

    query: Any  # (d,) float32
    memories: Any  # (N, d) float32
    rows: Any  # (P,) pool index -> row
    gram: Any  # (N, N) or empty
    gram_kind: Any
    ridge: Any
    norm: Any  # largest row norm
    query_norm: Any
    scale: Any  # of a product of two vectors, at least 1
    wide: Any  # float32 scores could overflow
    residual: Any  # (d,) float64
    narrow: Any  # (d,) float32, the residual rounded
    row: Any  # (d,) float64, one memory


class _Fit(NamedTuple):
    """The refit, by place in the path (`order` ... `inside`) or by place in the support (the rest)."""

    order: Any  # (n,) pool index
    weights: Any  # (n,)
    cosines: Any  # (n + 1,) products with the query
    inner: Any  # (n + 1, n + 1) products among selected memories
    inside: Any  # (n + 1,) 1 in the support, 0 outside
    support: Any  # (n + 1,) path place of each support place
    lower: Any  # (n + 1, n + 1) Cholesky factor of inner[F, F] + ridge I
    z: Any
    w: Any
    x: Any
    work: Any


class _Scores(NamedTuple):
    """What is known of the scores, by pool index (`relevance` ... `exact`) or by step (the rest)."""

    live: Any  # unselected finite memories, ascending
    relevance: Any  # float32 product with the query
    seen: Any  # last score read
    step: Any  # the step it was read at
    near: Any  # candidates that float32 cannot tell apart
    exact: Any  # float64 scores, where asked for
    bound: Any
    todo: Any
    energy: Any  # 2 F
    error: Any  # rounding bound of the scores read at that step
    radius: Any  # how far a score read at that step can be off by now


@njit(cache=True, nogil=True, _nrt=False)
def floats_needed(size, dim, steps):  # type: ignore[no-untyped-def]
    """Length of the float64 workspace for a pool of `size` and a path of at most `steps`."""
    return 2 * (steps + 1) * (steps + 1) + 8 * (steps + 1) + 2 * dim + 4 * size


@njit(cache=True, nogil=True, _nrt=False)
def integers_needed(size, steps):  # type: ignore[no-untyped-def]
    """Length of the int64 workspace for a pool of `size` and a path of at most `steps`."""
    return 4 * size + 2 * (steps + 1)


@njit(cache=True, nogil=True, _nrt=False)
def pursue(  # type: ignore[no-untyped-def]
    query, memories, rows, gram, gram_kind, ridge, tau, patience, order, weights, losses, floats, integers, narrow
):
    """The path of one question. Returns (length, certificate or NaN, reason); fills `order`, `weights`, `losses`.

    `query` (d,) and `memories` (N, d) float32; `rows` (P,) int64, pool index -> row of `memories` and of `gram`.
    `gram` (N, N): float32 (`ROUNDED_GRAM`), float64 (`EXACT_GRAM`) or empty (`NO_GRAM`). `tau` < 0: no adaptive stop.
    `order`, `weights`, `losses` (n,), n <= P: path, final weights, squared residual norms.
    `floats`, `integers`: at least `floats_needed(P, d, n)`, `integers_needed(P, n)`; `narrow` (d,) float32.
    """
    size, steps = rows.shape[0], order.shape[0]
    if size == 0:
        return 0, math.nan, EMPTY_POOL
    fit, scores, residual, row = _carve(floats, integers, size, memories.shape[1], order, weights)
    alive, norm = _relevance(query, memories, rows, scores)
    query_norm = math.sqrt(_dot64(query, query))
    scale = max(1.0, norm * norm, norm * query_norm)
    wide = norm * norm > _WIDE or query_norm * query_norm > _WIDE
    pool = _Pool(
        query, memories, rows, gram, gram_kind, ridge, norm, query_norm, scale, wide, residual, narrow, row
    )
    slack = SLACK * scale
    last = min(steps, alive)
    reason = POOL_EXHAUSTED if last == alive else BUDGET

    length, used, streak, certificate = 0, 0, 0, math.nan
    nu, loss, energy = -math.inf, query_norm * query_norm, query_norm * query_norm
    while True:
        left = alive - length
        done = length == last or reason == ADAPTIVE
        if left == 0 or steps == 0:
            certificate = 0.0 if length else math.nan
            break
        covered = length > 0 and loss <= COVERED and not done
        if length == 0 or covered:
            pick, peak = _most_relevant(pool, scores, left)
        else:
            pick, peak = _best(pool, fit, scores, left, length, used, nu, loss, energy)
        if pick >= 0:
            _inner_row(pool, fit, pick, length)
            score = _score(fit, length, used)
            peak = score if math.isnan(peak) else peak
        if length > 0 and not covered and (pick < 0 or peak <= nu + slack):
            certificate = 0.0
            if not done:
                length, adaptive = _tail(pool, fit, scores, losses, left, length, used, last, tau, patience - streak, loss)
                reason = ADAPTIVE if adaptive else reason
            break
        if done:
            certificate = peak - nu
            break
        order[length] = pick
        weights[length] = 0.0
        _forget(scores.live, left, pick)
        fit.inside[length] = 0
        length += 1
        if length == 1 or score > nu + slack:
            used, nu = _refit(fit, length - 1, length, used, ridge, slack)
        before = loss
        loss, energy = _objective(fit, used, nu, ridge, query_norm)
        losses[length - 1] = loss
        if tau >= 0.0:
            streak = streak + 1 if before - loss <= tau * max(before, COVERED) else 0
            if streak >= patience:
                reason = ADAPTIVE
    return length, certificate, reason


@njit(cache=True, nogil=True, _nrt=False)
def _carve(floats, integers, size, dim, order, weights):  # type: ignore[no-untyped-def]
    """The workspaces cut into named arrays."""
    n = order.shape[0] + 1
    square, f, g = n * n, 2 * n * n, 2 * n * n + 8 * n
    h, p = g + 2 * dim, 4 * size
    fit = _Fit(
        order,
        weights,
        floats[f : f + n],
        floats[:square].reshape(n, n),
        integers[p : p + n],
        integers[p + n : p + 2 * n],
        floats[square : 2 * square].reshape(n, n),
        floats[f + n : f + 2 * n],
        floats[f + 2 * n : f + 3 * n],
        floats[f + 3 * n : f + 4 * n],
        floats[f + 4 * n : f + 5 * n],
    )
    scores = _Scores(
        integers[:size],
        floats[h : h + size],
        floats[h + size : h + 2 * size],
        integers[size : 2 * size],
        integers[2 * size : 3 * size],
        floats[h + 2 * size : h + 3 * size],
        floats[h + 3 * size : h + 4 * size],
        integers[3 * size : 4 * size],
        floats[f + 5 * n : f + 6 * n],
        floats[f + 6 * n : f + 7 * n],
        floats[f + 7 * n : f + 8 * n],
    )
    return fit, scores, floats[g : g + dim], floats[g + dim : g + 2 * dim]


# --- which memory is next ---------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False)
def _relevance(query, memories, rows, scores):  # type: ignore[no-untyped-def]
    """Reads the pool once: relevance of every memory, the finite ones into `live`. Returns (alive, largest norm)."""
    size = rows.shape[0]
    relevance, live = scores.relevance, scores.live
    largest, alive = 0.0, 0
    i = 0
    while i < size:
        if i + 4 <= size:
            a, b, c, d, aa, bb, cc, dd = _dots_and_squares(
                memories[rows[i]], memories[rows[i + 1]], memories[rows[i + 2]], memories[rows[i + 3]], query
            )
            relevance[i], relevance[i + 1], relevance[i + 2], relevance[i + 3] = a, b, c, d
            scores.seen[i], scores.seen[i + 1], scores.seen[i + 2], scores.seen[i + 3] = aa, bb, cc, dd
            i += 4
        else:
            relevance[i], scores.seen[i] = _dot_and_square(memories[rows[i]], query)
            i += 1
    for i in range(size):
        square = scores.seen[i]
        if not (math.isfinite(square) and math.isfinite(relevance[i])):
            row = memories[rows[i]]
            if not _finite(row):
                continue
            square, relevance[i] = _dot64(row, row), _dot64(row, query)  # finite, but float32 overflowed
        largest = max(largest, square)
        scores.seen[i], scores.step[i] = relevance[i], 0
        live[alive] = i
        alive += 1
    return alive, math.sqrt(largest) * (1.0 + 1e-4)


@njit(cache=True, nogil=True, _nrt=False)
def _most_relevant(pool, scores, left):  # type: ignore[no-untyped-def]
    """The unselected memory with the best query cosine: (pool index, NaN)."""
    error = _ROUNDING * pool.norm * pool.query_norm * pool.query.shape[0] + 1e-13 * pool.scale
    count, _ = _indistinct(scores.relevance, scores.live, left, error, scores.near)
    if count == 1:
        return scores.near[0], math.nan
    for c in range(count):
        i = scores.near[c]
        scores.exact[i] = _dot64(pool.memories[pool.rows[i]], pool.query)
    pick, _ = _lowest_of_best(scores.exact, scores.near, count)
    return pick, math.nan


@njit(cache=True, nogil=True, _nrt=False)
def _best(pool, fit, scores, left, length, used, nu, loss, energy):  # type: ignore[no-untyped-def]
    """The unselected memory with the best residual score, and that score in float64.

    The score is NaN where float32 already settled which memory it is. (-1, NaN) where none can exceed nu.
    """
    dim = pool.query.shape[0]
    mass = pool.query_norm + pool.norm
    if pool.wide:
        error = 1e-13 * pool.scale
        _residual64(pool, fit, used)
        for a in range(left):
            i = scores.live[a]
            scores.seen[i], scores.step[i] = _dot64(pool.memories[pool.rows[i]], pool.residual), length
    elif pool.gram_kind != NO_GRAM:
        rounded = pool.norm if pool.gram_kind == ROUNDED_GRAM else 0.0
        error = _ROUNDING * dim * pool.norm * (pool.query_norm + rounded) + 1e-13 * pool.scale
        _gram_scores(pool, fit, scores, left, length, used)
    else:
        error = _ROUNDING * pool.norm * (dim * math.sqrt(max(loss, 0.0)) + (dim * 1e-6 + 2.0 * used + 6.0) * mass)
    scores.energy[length], scores.error[length] = energy, error
    for s in range(1, length):
        moved = math.sqrt(max(scores.energy[s] - energy, 0.0) + 1e-13 * pool.scale)
        scores.radius[s] = pool.norm * moved + scores.error[s]
    scores.radius[0], scores.radius[length] = math.inf, error
    if not pool.wide and pool.gram_kind == NO_GRAM:
        _read_contenders(pool, fit, scores, left, length, used, nu, error)
    count, top = _indistinct_at(scores, left, length, error)
    if count == 0 or top + error <= nu:
        return -1, math.nan
    if count == 1:
        return scores.near[0], math.nan
    _residual64(pool, fit, used)
    for c in range(count):
        i = scores.near[c]
        scores.exact[i] = _dot64(pool.memories[pool.rows[i]], pool.residual)
    return _lowest_of_best(scores.exact, scores.near, count)


@njit(cache=True, nogil=True, _nrt=False)
def _read_contenders(pool, fit, scores, left, length, used, nu, error):  # type: ignore[no-untyped-def]
    """Reads the float32 scores of all memories that could be the best one or exceed nu; the likeliest four first."""
    memories, rows, narrow = pool.memories, pool.rows, pool.narrow
    live, seen, step, radius, todo = scores.live, scores.seen, scores.step, scores.radius, scores.todo
    _residual32(pool, fit, used)
    floor = nu - TIE
    first = _four_highest(seen, live, left, todo)
    waiting = first
    a = 0
    while True:
        if waiting == 4:
            i, j, k, m = todo[0], todo[1], todo[2], todo[3]
            seen[i], seen[j], seen[k], seen[m] = _dots32(
                memories[rows[i]], memories[rows[j]], memories[rows[k]], memories[rows[m]], narrow
            )
            step[i], step[j], step[k], step[m] = length, length, length, length
            floor = max(floor, max(max(seen[i], seen[j]), max(seen[k], seen[m])) - error - TIE)
            waiting = 0
        if a == left:
            break
        i = live[a]
        a += 1
        if step[i] != length and seen[i] + radius[step[i]] >= floor:
            todo[waiting] = i
            waiting += 1
    for t in range(waiting):
        i = todo[t]
        if step[i] != length:
            seen[i], step[i] = _dot32(memories[rows[i]], narrow), length


@njit(cache=True, nogil=True, _nrt=False)
def _four_highest(seen, live, left, out):  # type: ignore[no-untyped-def]
    """Four live memories with high last scores into `out`; 0 where fewer than four are left. Order is free."""
    if left < 4:
        return 0
    for t in range(4):
        best = -1
        for a in range(left):
            i = live[a]
            if best >= 0 and seen[i] <= seen[best]:
                continue
            taken = False
            for u in range(t):
                taken = taken or out[u] == i
            if not taken:
                best = i
        out[t] = best
    return 4


@njit(cache=True, nogil=True, _nrt=False)
def _gram_scores(pool, fit, scores, left, length, used):  # type: ignore[no-untyped-def]
    """Scores of all live memories from the stored Gram."""
    rows, seen, step, live = pool.rows, scores.seen, scores.step, scores.live
    for a in range(left):
        i = live[a]
        seen[i], step[i] = scores.relevance[i], length
    for c in range(used):
        s = fit.support[c]
        weight = fit.weights[s]
        products = pool.gram[rows[fit.order[s]]]
        for a in range(left):
            i = live[a]
            seen[i] -= weight * products[rows[i]]


@njit(cache=True, nogil=True, _nrt=False)
def _indistinct(values, live, left, error, near):  # type: ignore[no-untyped-def]
    """Live memories whose value may be the largest, given that each is off by at most `error`. Returns (count, top)."""
    top = -math.inf
    for a in range(left):
        top = max(top, values[live[a]])
    count = 0
    for a in range(left):
        if values[live[a]] >= top - 2.0 * error - TIE:
            near[count] = live[a]
            count += 1
    return count, top


@njit(cache=True, nogil=True, _nrt=False)
def _indistinct_at(scores, left, length, error):  # type: ignore[no-untyped-def]
    """The same among the scores that were read at step `length`."""
    top, count = -math.inf, 0
    for a in range(left):
        i = scores.live[a]
        if scores.step[i] == length:
            top = max(top, scores.seen[i])
    for a in range(left):
        i = scores.live[a]
        if scores.step[i] == length and scores.seen[i] >= top - 2.0 * error - TIE:
            scores.near[count] = i
            count += 1
    return count, top


@njit(cache=True, nogil=True, _nrt=False)
def _lowest_of_best(exact, near, count):  # type: ignore[no-untyped-def]
    """(lowest pool index within `TIE` of the largest value, the largest value)."""
    peak = -math.inf
    for c in range(count):
        peak = max(peak, exact[near[c]])
    pick = -1
    for c in range(count):
        i = near[c]
        if exact[i] >= peak - TIE and (pick < 0 or i < pick):
            pick = i
    return pick, peak


@njit(cache=True, nogil=True, _nrt=False)
def _forget(live, left, pick):  # type: ignore[no-untyped-def]
    """Takes `pick` out of `live`, which stays ascending."""
    shift = False
    for a in range(left):
        shift = shift or live[a] == pick
        if shift and a + 1 < left:
            live[a] = live[a + 1]


@njit(cache=True, nogil=True, _nrt=False)
def _tail(pool, fit, scores, losses, left, length, used, last, tau, patience, loss):  # type: ignore[no-untyped-def]
    """After saturation: the rest of the path by final score. Returns (length, whether it stopped adaptively)."""
    wanted = last - length
    adaptive = tau >= 0.0 and patience <= wanted
    if adaptive:
        wanted = patience
    cut = _wanted_th_lower_bound(scores, left, wanted)
    _residual64(pool, fit, used)
    count = 0
    for a in range(left):
        i = scores.live[a]
        if scores.seen[i] + scores.radius[scores.step[i]] >= cut - TIE:
            scores.exact[i] = _dot64(pool.memories[pool.rows[i]], pool.residual)
            scores.near[count] = i
            count += 1
    _sort_descending(scores.near, scores.exact, count)
    for a in range(wanted):
        pick = a  # the lowest pool index within the tie of the best that is left
        b = a + 1
        while b < count and scores.exact[scores.near[b]] >= scores.exact[scores.near[a]] - TIE:
            if scores.near[b] < scores.near[pick]:
                pick = b
            b += 1
        chosen = scores.near[pick]
        for b in range(pick, a, -1):
            scores.near[b] = scores.near[b - 1]
        scores.near[a] = chosen
        fit.order[length], fit.weights[length], losses[length] = chosen, 0.0, loss
        length += 1
    return length, adaptive


@njit(cache=True, nogil=True, _nrt=False)
def _wanted_th_lower_bound(scores, left, wanted):  # type: ignore[no-untyped-def]
    """The `wanted`-th largest lower bound of a live score, by a min-heap of that size in `scores.bound`."""
    heap, count = scores.bound, 0
    for a in range(left):
        i = scores.live[a]
        value = scores.seen[i] - scores.radius[scores.step[i]]
        if count < wanted:
            at = count
            count += 1
            while at > 0 and heap[(at - 1) // 2] > value:
                heap[at] = heap[(at - 1) // 2]
                at = (at - 1) // 2
            heap[at] = value
        elif value > heap[0]:
            at = 0
            while True:
                child = 2 * at + 1
                if child >= count:
                    break
                if child + 1 < count and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= value:
                    break
                heap[at] = heap[child]
                at = child
            heap[at] = value
    return heap[0]


@njit(cache=True, nogil=True, _nrt=False)
def _sort_descending(index, value, count):  # type: ignore[no-untyped-def]
    """Heap-sorts `index[:count]` by (value descending, index ascending), in place."""
    for start in range(count // 2 - 1, -1, -1):
        _sift(index, value, start, count)
    for end in range(count - 1, 0, -1):
        index[0], index[end] = index[end], index[0]
        _sift(index, value, 0, end)


@njit(cache=True, nogil=True, _nrt=False)
def _sift(index, value, at, count):  # type: ignore[no-untyped-def]
    while True:
        child = 2 * at + 1
        if child >= count:
            return
        if child + 1 < count and _after(index[child + 1], index[child], value):
            child += 1
        if not _after(index[child], index[at], value):
            return
        index[at], index[child] = index[child], index[at]
        at = child


@njit(cache=True, nogil=True, _nrt=False)
def _after(i, j, value):  # type: ignore[no-untyped-def]
    return value[i] < value[j] or (value[i] == value[j] and i > j)


# --- the weights ------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False)
def _inner_row(pool, fit, pick, place):  # type: ignore[no-untyped-def]
    """Float64 products of `pick` with the query, the path so far and itself, into row and column `place`."""
    memories, rows, order, inner = pool.memories, pool.rows, fit.order, fit.inner
    mine = memories[rows[pick]]
    fit.cosines[place] = _dot64(mine, pool.query)
    if pool.gram_kind == EXACT_GRAM:
        products = pool.gram[rows[pick]]
        for s in range(place):
            inner[place, s] = products[rows[order[s]]]
        inner[place, place] = products[rows[pick]]
    else:
        row = pool.row
        for c in range(row.shape[0]):
            row[c] = mine[c]
        s = 0
        while s + 4 <= place:
            inner[place, s], inner[place, s + 1], inner[place, s + 2], inner[place, s + 3] = _dots64(
                memories[rows[order[s]]],
                memories[rows[order[s + 1]]],
                memories[rows[order[s + 2]]],
                memories[rows[order[s + 3]]],
                row,
            )
            s += 4
        while s < place:
            inner[place, s] = _dot64(memories[rows[order[s]]], row)
            s += 1
        inner[place, place] = _dot64(mine, row)
    for s in range(place):
        inner[s, place] = inner[place, s]


@njit(cache=True, nogil=True, _nrt=False)
def _score(fit, place, used):  # type: ignore[no-untyped-def]
    """Float64 score of the memory whose products are in row `place`."""
    score = fit.cosines[place]
    for c in range(used):
        s = fit.support[c]
        score -= fit.inner[place, s] * fit.weights[s]
    return score


@njit(cache=True, nogil=True, _nrt=False)
def _refit(fit, entering, length, used, ridge, slack):  # type: ignore[no-untyped-def]
    """Exact weights over the first `length` of the path after `entering` joins the support. Returns (used, nu)."""
    support, weights, x = fit.support, fit.weights, fit.x
    used = _admit(fit, entering, used, ridge)
    rounds = 0
    while True:
        rounds += 1
        nu = _solve(fit, used)
        blocking, part = -1, 1.0
        for c in range(used):
            if x[c] < 0.0:
                ratio = weights[support[c]] / (weights[support[c]] - x[c])
                if ratio < part or blocking < 0:
                    blocking, part = c, ratio
        if blocking >= 0 and used > 1:
            for c in range(used):
                s = support[c]
                weights[s] = max(0.0, weights[s] + part * (x[c] - weights[s]))
            weights[support[blocking]] = 0.0
            used = _dismiss(fit, blocking, used)
            continue
        for c in range(used):
            weights[support[c]] = x[c]
        returning, most = -1, nu + slack
        for s in range(length):
            if fit.inside[s] == 0:
                score = _score(fit, s, used)
                if score > most:
                    returning, most = s, score
        if returning < 0 or rounds > 4 * length + 20:  # the objective falls each round; the cap is for rounding noise
            return used, nu
        used = _admit(fit, returning, used, ridge)


@njit(cache=True, nogil=True, _nrt=False)
def _objective(fit, used, nu, ridge, query_norm):  # type: ignore[no-untyped-def]
    """(||r||^2, 2 F) at the refitted weights, from KKT: G alpha = b - nu - ridge alpha on the support."""
    energy, squares = query_norm * query_norm - nu, 0.0
    for c in range(used):
        weight = fit.weights[fit.support[c]]
        energy -= fit.cosines[fit.support[c]] * weight
        squares += weight * weight
    return energy - ridge * squares, energy


@njit(cache=True, nogil=True, _nrt=False)
def _admit(fit, entering, used, ridge):  # type: ignore[no-untyped-def]
    """Appends path place `entering` to the factor. The pivot is at least the ridge, as it is in exact arithmetic."""
    lower, inner, support, work = fit.lower, fit.inner, fit.support, fit.work
    z, w, square = fit.cosines[entering], 1.0, inner[entering, entering] + ridge
    for c in range(used):
        value = inner[entering, support[c]]
        for e in range(c):
            value -= lower[c, e] * work[e]
        value /= lower[c, c]
        work[c] = value
        z -= value * fit.z[c]
        w -= value * fit.w[c]
        square -= value * value
    pivot = math.sqrt(max(square, ridge))
    for c in range(used):
        lower[used, c] = work[c]
    lower[used, used] = pivot
    fit.z[used], fit.w[used] = z / pivot, w / pivot
    support[used] = entering
    fit.inside[entering] = 1
    return used + 1


@njit(cache=True, nogil=True, _nrt=False)
def _dismiss(fit, place, used):  # type: ignore[no-untyped-def]
    """Takes support place `place` out of the factor by Givens rotations, z and w with it."""
    lower, support, z, w = fit.lower, fit.support, fit.z, fit.w
    fit.inside[support[place]] = 0
    for r in range(place, used - 1):
        support[r] = support[r + 1]
        for c in range(r + 2):
            lower[r, c] = lower[r + 1, c]
    for c in range(place, used - 1):
        length = math.hypot(lower[c, c], lower[c, c + 1])
        cosine, sine = lower[c, c] / length, lower[c, c + 1] / length
        lower[c, c] = length
        for r in range(c + 1, used - 1):
            left, right = lower[r, c], lower[r, c + 1]
            lower[r, c], lower[r, c + 1] = cosine * left + sine * right, cosine * right - sine * left
        left, right = z[c], z[c + 1]
        z[c], z[c + 1] = cosine * left + sine * right, cosine * right - sine * left
        left, right = w[c], w[c + 1]
        w[c], w[c + 1] = cosine * left + sine * right, cosine * right - sine * left
    return used - 1


@njit(cache=True, nogil=True, _nrt=False)
def _solve(fit, used):  # type: ignore[no-untyped-def]
    """The equality-constrained refit over the support into `fit.x`; returns nu."""
    lower, z, w, x, work = fit.lower, fit.z, fit.w, fit.x, fit.work
    wz, ww = 0.0, 0.0
    for c in range(used):
        wz += w[c] * z[c]
        ww += w[c] * w[c]
    nu = (wz - 1.0) / ww
    for c in range(used):
        work[c] = z[c] - nu * w[c]
    for c in range(used - 1, -1, -1):
        x[c] = work[c] / lower[c, c]
        for e in range(c):
            work[e] -= lower[c, e] * x[c]
    return nu


# --- arithmetic -------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False, fastmath={"contract"})
def _residual32(pool, fit, used):  # type: ignore[no-untyped-def]
    """q - sum(alpha m) in float32 into `pool.narrow`."""
    memories, rows, order, support, weights, out = (
        pool.memories, pool.rows, fit.order, fit.support, fit.weights, pool.narrow
    )  # fmt: skip
    for c in range(out.shape[0]):
        out[c] = pool.query[c]
    s = 0
    while s + 4 <= used:
        i, j, k, m = support[s], support[s + 1], support[s + 2], support[s + 3]
        _subtract_four(
            out,
            memories[rows[order[i]]],
            memories[rows[order[j]]],
            memories[rows[order[k]]],
            memories[rows[order[m]]],
            np.float32(weights[i]),
            np.float32(weights[j]),
            np.float32(weights[k]),
            np.float32(weights[m]),
        )
        s += 4
    while s < used:
        _subtract(out, memories[rows[order[support[s]]]], np.float32(weights[support[s]]))
        s += 1


@njit(cache=True, nogil=True, _nrt=False, fastmath={"contract"})
def _residual64(pool, fit, used):  # type: ignore[no-untyped-def]
    """q - sum(alpha m) in float64 into `pool.residual`."""
    for c in range(pool.residual.shape[0]):
        pool.residual[c] = pool.query[c]
    for s in range(used):
        place = fit.support[s]
        _subtract(pool.residual, pool.memories[pool.rows[fit.order[place]]], fit.weights[place])


@njit(cache=True, nogil=True, _nrt=False, fastmath={"contract"})
def _subtract(out, row, weight):  # type: ignore[no-untyped-def]
    for c in range(out.shape[0]):
        out[c] -= weight * row[c]


@njit(cache=True, nogil=True, _nrt=False, fastmath={"contract"})
def _subtract_four(out, a, b, c, d, x, y, z, w):  # type: ignore[no-untyped-def]
    for e in range(out.shape[0]):
        out[e] = out[e] - x * a[e] - y * b[e] - z * c[e] - w * d[e]


@njit(cache=True, nogil=True, _nrt=False, fastmath=_REASSOCIATE)
def _dot32(row, vector):  # type: ignore[no-untyped-def]
    total = np.float32(0.0)
    for c in range(vector.shape[0]):
        total += row[c] * vector[c]
    return total


@njit(cache=True, nogil=True, _nrt=False, fastmath=_REASSOCIATE)
def _dots32(a, b, c, d, vector):  # type: ignore[no-untyped-def]
    s, t, u, v = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for e in range(vector.shape[0]):
        x = vector[e]
        s += a[e] * x
        t += b[e] * x
        u += c[e] * x
        v += d[e] * x
    return s, t, u, v


@njit(cache=True, nogil=True, _nrt=False, fastmath=_REASSOCIATE)
def _dot_and_square(row, vector):  # type: ignore[no-untyped-def]
    total, square = np.float32(0.0), np.float32(0.0)
    for c in range(vector.shape[0]):
        total += row[c] * vector[c]
        square += row[c] * row[c]
    return total, square


@njit(cache=True, nogil=True, _nrt=False, fastmath=_REASSOCIATE)
def _dots_and_squares(a, b, c, d, vector):  # type: ignore[no-untyped-def]
    s, t, u, v = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    ss, tt, uu, vv = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for e in range(vector.shape[0]):
        x = vector[e]
        s += a[e] * x
        t += b[e] * x
        u += c[e] * x
        v += d[e] * x
        ss += a[e] * a[e]
        tt += b[e] * b[e]
        uu += c[e] * c[e]
        vv += d[e] * d[e]
    return s, t, u, v, ss, tt, uu, vv


@njit(cache=True, nogil=True, _nrt=False, fastmath=_REASSOCIATE)
def _dot64(row, vector):  # type: ignore[no-untyped-def]
    total = 0.0
    for c in range(vector.shape[0]):
        total += np.float64(row[c]) * np.float64(vector[c])
    return total


@njit(cache=True, nogil=True, _nrt=False, fastmath=_REASSOCIATE)
def _dots64(a, b, c, d, vector):  # type: ignore[no-untyped-def]
    s, t, u, v = 0.0, 0.0, 0.0, 0.0
    for e in range(vector.shape[0]):
        x = np.float64(vector[e])
        s += np.float64(a[e]) * x
        t += np.float64(b[e]) * x
        u += np.float64(c[e]) * x
        v += np.float64(d[e]) * x
    return s, t, u, v


@njit(cache=True, nogil=True, _nrt=False)
def _finite(row):  # type: ignore[no-untyped-def]
    for c in range(row.shape[0]):  # noqa: SIM110
        if not math.isfinite(row[c]):
            return False
    return True

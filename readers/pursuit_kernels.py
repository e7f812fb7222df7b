"""How is the pursuit path of one question computed exactly, without allocating, in few reads of the pool?

`pursue` is the entry; what it calls stands below it in the order of use. Everything is compiled without numba's memory
manager (`_nrt=False`), so an allocation anywhere is a compile error. The rules are those of `readers.mem_pursuit`; this
is how they are kept cheap.

*Scores.* The score of a memory is m.r with r = q - sum(alpha m), read in float32 straight from the pool, four memories
at a time, and only for memories that can still win. Refits are exact and each simplex contains the one before it, so
the reconstruction moves from step s to step t by at most sqrt(2 F_s - 2 F_t), F being the objective of Eq. 2: a score
read at step s bounds the score at step t. What float32 leaves open, by its worst-case rounding bound, is decided in
float64. The pass that reads the relevances also reads the products with the first memory of the pool: where the pool's
own ranking is dense it is the first to be selected, and the scores after step 1 are there already.

*Weights.* In float64 over the support F: L = chol(G_FF + ridge I), z = L^-1 b and w = L^-1 1 are carried along;
nu = (w.z - 1) / (w.w) and x = L^-T (z - nu w). Where x has a negative entry the step ends at the first blocking memory,
which leaves F by Givens rotations of L, z and w; a memory outside F returns when its score exceeds nu.

*Saturation.* Once no unselected score exceeds nu, KKT holds for every larger set: weights stay, the tail is one sort.

The workspace, cut from two flat arrays: `scores` (5, P) and `places` (4, P) by pool index; `fit` (5, n) and `members`
(3, n) by place on the path or in the support; `history` (3, n) by step. The constants below name their rows.
"""

import math

import numpy as np
from numba import njit

TIE = 1e-12
"""Scores this close are equal; the lowest pool index wins."""
COVERED = 1e-12
"""At or below this squared residual the query is covered: the ranking falls back to the query cosine."""
SLACK = 1e-14
"""A score must exceed nu by this much, per unit of squared norm, to enter the support."""

BUDGET, POOL_EXHAUSTED, ADAPTIVE, EMPTY_POOL, BAD_QUERY = range(5)

_RELEVANCE, _FIRST, _SEEN, _EXACT, _HEAP = range(5)  # scores: with the query, with memory 0, last read, float64, a heap
_LIVE, _STEP, _NEAR, _TODO = range(4)  # places: unselected, step of the last read, candidates, to be read
_COSINE, _Z, _W, _X, _WORK = range(5)  # fit: cosine with the query by path place, the rest by support place
_SUPPORT, _INSIDE, _ROW = range(3)  # members: support place -> path place; path place -> in the support?, -> row
_ENERGY, _ERROR, _RADIUS = range(3)  # history: 2 F, rounding bound of a score read then, what it can be off by now

_ROUNDING = 1.01 * 2.0**-24  # unit roundoff of float32, with room for its higher orders
_WIDE = 1e12  # beyond this squared norm float32 scores could overflow: float64 throughout
_REASSOCIATE = {"reassoc", "contract", "nsz"}  # lets reductions vectorise; NaN and infinity keep their meaning


def floats_needed(size: int, dim: int, steps: int) -> int:
    """Length of the float64 workspace for a pool of `size` and a path of at most `steps`."""
    return 2 * (steps + 1) * (steps + 1) + 8 * (steps + 1) + 2 * dim + 5 * size


def integers_needed(size: int, steps: int) -> int:
    """Length of the int64 workspace for a pool of `size` and a path of at most `steps`."""
    return 4 * size + 3 * (steps + 1)


@njit(cache=True, nogil=True, _nrt=False)
def pursue(  # type: ignore[no-untyped-def]
    query, memories, rows, gram32, gram64, ridge, tau, patience, order, result, floats, integers, narrow
):
    """The path of one question. Returns (length, certificate or NaN, reason); fills `order` and `result`.

    `query` (d,) and `memories` (N, d) float32; `rows` (P,) int64, pool index -> row of `memories` and of the Gram.
    `gram32`, `gram64`: (N, N) where kept, else empty. `tau` < 0: no adaptive stop.
    `order` (n,), n <= P: the path. `result` (3, n): final weights, residual norms, falls of the squared residual norm.
    `floats`, `integers`: at least `floats_needed(P, d, n)`, `integers_needed(P, n)`; `narrow` (d,) float32.
    """
    size, dim, n = rows.shape[0], memories.shape[1], order.shape[0] + 1
    lower, inner = floats[: n * n].reshape(n, n), floats[n * n : 2 * n * n].reshape(n, n)
    at = 2 * n * n
    fit, history = floats[at : at + 5 * n].reshape(5, n), floats[at + 5 * n : at + 8 * n].reshape(3, n)
    at += 8 * n
    residual, row = floats[at : at + dim], floats[at + dim : at + 2 * dim]
    scores = floats[at + 2 * dim : at + 2 * dim + 5 * size].reshape(5, size)
    places = integers[: 4 * size].reshape(4, size)
    members = integers[4 * size : 4 * size + 3 * n].reshape(3, n)
    weights = result[0]

    query_square = _dot64(query, query)
    if not math.isfinite(query_square):
        return 0, math.nan, BAD_QUERY
    if size == 0:
        return 0, math.nan, EMPTY_POOL
    alive, norm = _relevance(query, memories, rows, scores, places)
    mass = math.sqrt(query_square)
    scale = max(1.0, norm * norm, norm * mass)
    wide = norm * norm > _WIDE or query_square > _WIDE
    kept = gram32.shape[0] > 0 or gram64.shape[0] > 0
    slack = SLACK * scale
    relevance_error = math.inf if wide else _ROUNDING * dim * norm * mass + 1e-13 * scale
    last = min(n - 1, alive)
    reason = POOL_EXHAUSTED if last == alive else BUDGET

    length, used, streak, certificate = 0, 0, 0, math.nan
    nu, loss, energy = -math.inf, query_square, query_square
    while True:
        left = alive - length
        done = length == last or reason == ADAPTIVE
        if left == 0 or n == 1:
            certificate = 0.0 if length else math.nan
            break
        by_cosine = length == 0 or (loss <= COVERED and not done)
        if by_cosine:
            pick, peak = _most_relevant(query, memories, rows, scores, places, left, relevance_error)
        else:
            if wide:
                error = math.inf
                _read_nothing(scores, places, left, length)
            elif kept:
                error = relevance_error + (_ROUNDING * dim * norm * norm if gram64.shape[0] == 0 else 0.0)
                _read_gram(gram32, gram64, rows, members, weights, used, scores, places, left, length)
            else:
                error = _ROUNDING * norm * (
                    dim * math.sqrt(max(loss, 0.0)) + (dim * 1e-6 + 2.0 * used + 6.0) * (mass + norm)
                )
                if length == 1 and order[0] == 0:
                    error += relevance_error + _ROUNDING * dim * norm * norm
                    _read_first(scores, places, left)
            _age(history, length, energy, error, norm, scale)
            count, top = 0, -math.inf
            if not (wide or kept or (length == 1 and order[0] == 0)):
                _residual32(query, memories, members, weights, used, narrow)
                _read_contenders(memories, rows, narrow, scores, places, history, left, length, nu, error)
            count, top = _candidates(scores, places, left, length, error)
            pick, peak = -1, math.nan
            if count > 0 and top + error > nu:
                pick = places[_NEAR, 0]
                if count > 1:
                    _residual64(query, memories, members, weights, used, residual)
                    for c in range(count):
                        i = places[_NEAR, c]
                        scores[_EXACT, i] = _dot64(memories[rows[i]], residual)
                    pick, peak = _lowest_of_best(scores, places, count)
        score = math.nan
        if pick >= 0:
            _inner_row(query, memories, gram64, rows[pick], length, members, fit, inner, row)
            score = _score(fit, inner, members, weights, length, used)
            peak = score if math.isnan(peak) else peak
        if not by_cosine and (pick < 0 or peak <= nu + slack):
            certificate = 0.0
            if not done:
                wanted = last - length
                if 0.0 <= tau and patience - streak <= wanted:
                    wanted, reason = patience - streak, ADAPTIVE
                _residual64(query, memories, members, weights, used, residual)
                _tail(memories, rows, residual, scores, places, history, left, wanted, order[length:])
                for s in range(length, length + wanted):
                    weights[s], result[1, s], result[2, s] = 0.0, math.sqrt(max(loss, 0.0)), 0.0
                length += wanted
            break
        if done:
            certificate = peak - nu
            break
        order[length], weights[length] = pick, 0.0
        members[_INSIDE, length], members[_ROW, length] = 0, rows[pick]
        _forget(places, left, pick)
        length += 1
        if length == 1 or score > nu + slack:
            used, nu = _refit(fit, inner, lower, members, weights, length, used, ridge, slack)
        before = loss
        loss, energy = _objective(fit, members, weights, used, nu, ridge, query_square)
        result[1, length - 1], result[2, length - 1] = math.sqrt(max(loss, 0.0)), before - loss
        if tau >= 0.0:
            streak = streak + 1 if before - loss <= tau * max(before, COVERED) else 0
            if streak >= patience:
                reason = ADAPTIVE
    return length, certificate, reason


# --- which memory is next ---------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False)
def _relevance(query, memories, rows, scores, places):  # type: ignore[no-untyped-def]
    """Reads the pool once: products with the query and with memory 0. Returns (finite memories, largest norm)."""
    size = rows.shape[0]
    first = memories[rows[0]]
    for i in range(size):
        scores[_RELEVANCE, i], scores[_FIRST, i], scores[_SEEN, i] = _products(memories[rows[i]], query, first)
    largest, alive = 0.0, 0
    for i in range(size):
        square = scores[_SEEN, i]
        if not (math.isfinite(square) and math.isfinite(scores[_RELEVANCE, i])):
            mine = memories[rows[i]]
            if not _finite(mine):
                continue
            square = _dot64(mine, mine)  # finite, but float32 overflowed
            scores[_RELEVANCE, i] = 0.0
        largest = max(largest, square)
        scores[_SEEN, i] = scores[_RELEVANCE, i]
        places[_STEP, i] = 0
        places[_LIVE, alive] = i
        alive += 1
    return alive, math.sqrt(largest) * (1.0 + 1e-4)


@njit(cache=True, nogil=True, _nrt=False)
def _most_relevant(query, memories, rows, scores, places, left, error):  # type: ignore[no-untyped-def]
    """The unselected memory with the best query cosine: (pool index, NaN)."""
    top, count = -math.inf, 0
    for a in range(left):
        top = max(top, scores[_RELEVANCE, places[_LIVE, a]])
    for a in range(left):
        i = places[_LIVE, a]
        if scores[_RELEVANCE, i] >= top - 2.0 * error - TIE:
            places[_NEAR, count] = i
            count += 1
    if count > 1:
        for c in range(count):
            i = places[_NEAR, c]
            scores[_EXACT, i] = _dot64(memories[rows[i]], query)
        return _lowest_of_best(scores, places, count)[0], math.nan
    return places[_NEAR, 0], math.nan


@njit(cache=True, nogil=True, _nrt=False)
def _age(history, length, energy, error, norm, scale):  # type: ignore[no-untyped-def]
    """How far a score read at each step can be off after `length` selections. Step 0 (the cosines) bounds nothing."""
    history[_ENERGY, length], history[_ERROR, length] = energy, error
    for s in range(1, length):
        moved = math.sqrt(max(history[_ENERGY, s] - energy, 0.0) + 1e-13 * scale)
        history[_RADIUS, s] = norm * moved + history[_ERROR, s]
    history[_RADIUS, 0], history[_RADIUS, length] = math.inf, error


@njit(cache=True, nogil=True, _nrt=False)
def _read_nothing(scores, places, left, length):  # type: ignore[no-untyped-def]
    """Leaves every score open, for float64 to decide."""
    for a in range(left):
        i = places[_LIVE, a]
        scores[_SEEN, i], places[_STEP, i] = 0.0, length


@njit(cache=True, nogil=True, _nrt=False)
def _read_first(scores, places, left):  # type: ignore[no-untyped-def]
    """The scores after memory 0 alone."""
    for a in range(left):
        i = places[_LIVE, a]
        scores[_SEEN, i], places[_STEP, i] = scores[_RELEVANCE, i] - scores[_FIRST, i], 1


@njit(cache=True, nogil=True, _nrt=False)
def _read_gram(gram32, gram64, rows, members, weights, used, scores, places, left, length):  # type: ignore[no-untyped-def]
    """Scores of all live memories from the stored Gram."""
    for a in range(left):
        i = places[_LIVE, a]
        scores[_SEEN, i], places[_STEP, i] = scores[_RELEVANCE, i], length
    for c in range(used):
        s = members[_SUPPORT, c]
        weight, mine = weights[s], members[_ROW, s]
        if gram64.shape[0] > 0:
            for a in range(left):
                i = places[_LIVE, a]
                scores[_SEEN, i] -= weight * gram64[mine, rows[i]]
        else:
            for a in range(left):
                i = places[_LIVE, a]
                scores[_SEEN, i] -= weight * gram32[mine, rows[i]]


@njit(cache=True, nogil=True, _nrt=False)
def _read_contenders(memories, rows, residual, scores, places, history, left, length, nu, error):  # type: ignore[no-untyped-def]
    """Reads the float32 score of every memory that could be the best one or exceed nu, the likeliest first."""
    floor = nu - TIE
    waiting = _likeliest(scores, places, left)
    a = 0
    while True:
        if waiting == 4:
            i, j, k, m = places[_TODO, 0], places[_TODO, 1], places[_TODO, 2], places[_TODO, 3]
            s, t, u, v = _dots32(memories[rows[i]], memories[rows[j]], memories[rows[k]], memories[rows[m]], residual)
            scores[_SEEN, i], scores[_SEEN, j], scores[_SEEN, k], scores[_SEEN, m] = s, t, u, v
            places[_STEP, i], places[_STEP, j], places[_STEP, k], places[_STEP, m] = length, length, length, length
            floor = max(floor, max(max(s, t), max(u, v)) - error - TIE)
            waiting = 0
        if a == left:
            break
        i = places[_LIVE, a]
        a += 1
        if places[_STEP, i] != length and scores[_SEEN, i] + history[_RADIUS, places[_STEP, i]] >= floor:
            places[_TODO, waiting] = i
            waiting += 1
    for t in range(waiting):
        i = places[_TODO, t]
        scores[_SEEN, i], places[_STEP, i] = _dot32(memories[rows[i]], residual), length


@njit(cache=True, nogil=True, _nrt=False)
def _likeliest(scores, places, left):  # type: ignore[no-untyped-def]
    """The four live memories with the highest last scores into `places[_TODO]`; none where fewer are left."""
    if left < 4:
        return 0
    i, j, k, m = -1, -1, -1, -1
    s, t, u, v = -math.inf, -math.inf, -math.inf, -math.inf
    for a in range(left):
        p = places[_LIVE, a]
        value = scores[_SEEN, p]
        if value > v or m < 0:
            if value > t or j < 0:
                v, m, u, k = u, k, t, j
                if value > s or i < 0:
                    t, j, s, i = s, i, value, p
                else:
                    t, j = value, p
            elif value > u or k < 0:
                v, m, u, k = u, k, value, p
            else:
                v, m = value, p
    places[_TODO, 0], places[_TODO, 1], places[_TODO, 2], places[_TODO, 3] = i, j, k, m
    return 4


@njit(cache=True, nogil=True, _nrt=False)
def _candidates(scores, places, left, length, error):  # type: ignore[no-untyped-def]
    """Memories read at step `length` whose score may be the largest. Returns (how many, the largest read)."""
    top, count = -math.inf, 0
    for a in range(left):
        i = places[_LIVE, a]
        if places[_STEP, i] == length:
            top = max(top, scores[_SEEN, i])
    for a in range(left):
        i = places[_LIVE, a]
        if places[_STEP, i] == length and scores[_SEEN, i] >= top - 2.0 * error - TIE:
            places[_NEAR, count] = i
            count += 1
    return count, top


@njit(cache=True, nogil=True, _nrt=False)
def _lowest_of_best(scores, places, count):  # type: ignore[no-untyped-def]
    """(lowest candidate within `TIE` of the largest float64 score, that score)."""
    peak, pick = -math.inf, -1
    for c in range(count):
        peak = max(peak, scores[_EXACT, places[_NEAR, c]])
    for c in range(count):
        i = places[_NEAR, c]
        if scores[_EXACT, i] >= peak - TIE and (pick < 0 or i < pick):
            pick = i
    return pick, peak


@njit(cache=True, nogil=True, _nrt=False)
def _forget(places, left, pick):  # type: ignore[no-untyped-def]
    """Takes `pick` out of the live memories, which stay ascending."""
    kept = 0
    for a in range(left):
        i = places[_LIVE, a]
        places[_LIVE, kept] = i
        kept += i != pick


@njit(cache=True, nogil=True, _nrt=False)
def _tail(memories, rows, residual, scores, places, history, left, wanted, order):  # type: ignore[no-untyped-def]
    """After saturation: the next `wanted` of the path, by final score, into `order`."""
    cut = _wanted_th_lower_bound(scores, places, history, left, wanted)
    count = 0
    for a in range(left):
        i = places[_LIVE, a]
        if scores[_SEEN, i] + history[_RADIUS, places[_STEP, i]] >= cut - TIE:
            scores[_EXACT, i] = _dot64(memories[rows[i]], residual)
            places[_NEAR, count] = i
            count += 1
    _sort_descending(places[_NEAR], scores[_EXACT], count)
    near, exact = places[_NEAR], scores[_EXACT]
    for a in range(wanted):
        pick, b = a, a + 1  # the lowest pool index within the tie of the best that is left
        while b < count and exact[near[b]] >= exact[near[a]] - TIE:
            if near[b] < near[pick]:
                pick = b
            b += 1
        chosen = near[pick]
        for b in range(pick, a, -1):
            near[b] = near[b - 1]
        near[a] = chosen
        order[a] = chosen


@njit(cache=True, nogil=True, _nrt=False)
def _wanted_th_lower_bound(scores, places, history, left, wanted):  # type: ignore[no-untyped-def]
    """The `wanted`-th largest lower bound of a live score, by a min-heap of that size."""
    heap, count = scores[_HEAP], 0
    for a in range(left):
        i = places[_LIVE, a]
        value = scores[_SEEN, i] - history[_RADIUS, places[_STEP, i]]
        if count < wanted:
            at = count
            count += 1
            while at > 0 and heap[(at - 1) // 2] > value:
                heap[at] = heap[(at - 1) // 2]
                at = (at - 1) // 2
            heap[at] = value
        elif value > heap[0]:
            at = 0
            while 2 * at + 1 < count:
                child = 2 * at + 1
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
    """Heap-sorts `index[:count]` in place by (value descending, index ascending)."""
    start, end = count // 2, count
    while end > 1:
        if start > 0:
            start -= 1
        else:
            end -= 1
            index[0], index[end] = index[end], index[0]
        at = start
        while 2 * at + 1 < end:
            child = 2 * at + 1
            if child + 1 < end and _after(index[child + 1], index[child], value):
                child += 1
            if not _after(index[child], index[at], value):
                break
            index[at], index[child] = index[child], index[at]
            at = child


@njit(cache=True, nogil=True, _nrt=False)
def _after(i, j, value):  # type: ignore[no-untyped-def]
    return value[i] < value[j] or (value[i] == value[j] and i > j)


# --- the weights ------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False)
def _inner_row(query, memories, gram64, mine, place, members, fit, inner, row):  # type: ignore[no-untyped-def]
    """Float64 products of store row `mine` with the query, the path so far and itself, as path place `place`."""
    fit[_COSINE, place] = _dot64(memories[mine], query)
    if gram64.shape[0] > 0:
        for s in range(place):
            inner[place, s] = gram64[mine, members[_ROW, s]]
        inner[place, place] = gram64[mine, mine]
    else:
        for c in range(row.shape[0]):
            row[c] = memories[mine, c]
        s = 0
        while s + 4 <= place:
            inner[place, s], inner[place, s + 1], inner[place, s + 2], inner[place, s + 3] = _dots64(
                memories[members[_ROW, s]],
                memories[members[_ROW, s + 1]],
                memories[members[_ROW, s + 2]],
                memories[members[_ROW, s + 3]],
                row,
            )
            s += 4
        while s < place:
            inner[place, s] = _dot64(row, memories[members[_ROW, s]])
            s += 1
        inner[place, place] = _dot64(row, memories[mine])
    for s in range(place):
        inner[s, place] = inner[place, s]


@njit(cache=True, nogil=True, _nrt=False)
def _score(fit, inner, members, weights, place, used):  # type: ignore[no-untyped-def]
    """Float64 score of the memory whose products are in row `place`."""
    score = fit[_COSINE, place]
    for c in range(used):
        s = members[_SUPPORT, c]
        score -= inner[place, s] * weights[s]
    return score


@njit(cache=True, nogil=True, _nrt=False)
def _refit(fit, inner, lower, members, weights, length, used, ridge, slack):  # type: ignore[no-untyped-def]
    """Exact weights over the first `length` of the path, its last one newly in the support. Returns (used, nu)."""
    entering, rounds = length - 1, 0
    while True:
        used = _admit(fit, inner, lower, members, entering, used, ridge)
        while True:
            rounds += 1
            nu = _solve(fit, lower, used)
            blocking, part = -1, 1.0
            for c in range(used):
                if fit[_X, c] < 0.0:
                    weight = weights[members[_SUPPORT, c]]
                    ratio = weight / (weight - fit[_X, c])
                    if blocking < 0 or ratio < part:
                        blocking, part = c, ratio
            if blocking < 0 or used == 1:
                break
            for c in range(used):
                s = members[_SUPPORT, c]
                weights[s] = max(0.0, weights[s] + part * (fit[_X, c] - weights[s]))
            weights[members[_SUPPORT, blocking]] = 0.0
            used = _dismiss(fit, lower, members, blocking, used)
        for c in range(used):
            weights[members[_SUPPORT, c]] = fit[_X, c]
        entering, most = -1, nu + slack
        for s in range(length):
            if members[_INSIDE, s] == 0:
                score = _score(fit, inner, members, weights, s, used)
                if score > most:
                    entering, most = s, score
        if entering < 0 or rounds > 4 * length + 20:  # the objective falls each round; the cap is for rounding noise
            return used, nu


@njit(cache=True, nogil=True, _nrt=False)
def _objective(fit, members, weights, used, nu, ridge, query_square):  # type: ignore[no-untyped-def]
    """(||r||^2, 2 F) at the refitted weights, from KKT: G alpha = b - nu - ridge alpha on the support."""
    energy, squares = query_square - nu, 0.0
    for c in range(used):
        s = members[_SUPPORT, c]
        energy -= fit[_COSINE, s] * weights[s]
        squares += weights[s] * weights[s]
    return energy - ridge * squares, energy


@njit(cache=True, nogil=True, _nrt=False)
def _admit(fit, inner, lower, members, entering, used, ridge):  # type: ignore[no-untyped-def]
    """Appends path place `entering` to the factor. The pivot is at least the ridge, as it is in exact arithmetic."""
    z, w, square = fit[_COSINE, entering], 1.0, inner[entering, entering] + ridge
    for c in range(used):
        value = inner[entering, members[_SUPPORT, c]]
        for e in range(c):
            value -= lower[c, e] * lower[used, e]
        value /= lower[c, c]
        lower[used, c] = value
        z -= value * fit[_Z, c]
        w -= value * fit[_W, c]
        square -= value * value
    pivot = math.sqrt(max(square, ridge))
    lower[used, used] = pivot
    fit[_Z, used], fit[_W, used] = z / pivot, w / pivot
    members[_SUPPORT, used], members[_INSIDE, entering] = entering, 1
    return used + 1


@njit(cache=True, nogil=True, _nrt=False)
def _dismiss(fit, lower, members, place, used):  # type: ignore[no-untyped-def]
    """Takes support place `place` out of the factor by Givens rotations, z and w with it."""
    members[_INSIDE, members[_SUPPORT, place]] = 0
    for r in range(place, used - 1):
        members[_SUPPORT, r] = members[_SUPPORT, r + 1]
        for c in range(r + 2):
            lower[r, c] = lower[r + 1, c]
    for c in range(place, used - 1):
        length = math.hypot(lower[c, c], lower[c, c + 1])
        cosine, sine = lower[c, c] / length, lower[c, c + 1] / length
        lower[c, c] = length
        for r in range(c + 1, used - 1):
            left, right = lower[r, c], lower[r, c + 1]
            lower[r, c], lower[r, c + 1] = cosine * left + sine * right, cosine * right - sine * left
        for v in (_Z, _W):
            left, right = fit[v, c], fit[v, c + 1]
            fit[v, c], fit[v, c + 1] = cosine * left + sine * right, cosine * right - sine * left
    return used - 1


@njit(cache=True, nogil=True, _nrt=False)
def _solve(fit, lower, used):  # type: ignore[no-untyped-def]
    """The refit over the support with its sum fixed and its signs free, into `fit[_X]`; returns nu."""
    wz, ww = 0.0, 0.0
    for c in range(used):
        wz += fit[_W, c] * fit[_Z, c]
        ww += fit[_W, c] * fit[_W, c]
    nu = (wz - 1.0) / ww
    for c in range(used):
        fit[_WORK, c] = fit[_Z, c] - nu * fit[_W, c]
    for c in range(used - 1, -1, -1):
        x = fit[_WORK, c] / lower[c, c]
        fit[_X, c] = x
        for e in range(c):
            fit[_WORK, e] -= lower[c, e] * x
    return nu


# --- arithmetic -------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False)
def _residual32(query, memories, members, weights, used, out):  # type: ignore[no-untyped-def]
    """q - sum(alpha m) in float32."""
    for c in range(out.shape[0]):
        out[c] = query[c]
    s = 0
    while s + 4 <= used:
        i, j, k, m = members[_SUPPORT, s], members[_SUPPORT, s + 1], members[_SUPPORT, s + 2], members[_SUPPORT, s + 3]
        _subtract_four(
            out,
            memories[members[_ROW, i]],
            memories[members[_ROW, j]],
            memories[members[_ROW, k]],
            memories[members[_ROW, m]],
            np.float32(weights[i]),
            np.float32(weights[j]),
            np.float32(weights[k]),
            np.float32(weights[m]),
        )
        s += 4
    while s < used:
        i = members[_SUPPORT, s]
        _subtract(out, memories[members[_ROW, i]], np.float32(weights[i]))
        s += 1


@njit(cache=True, nogil=True, _nrt=False)
def _residual64(query, memories, members, weights, used, out):  # type: ignore[no-untyped-def]
    """q - sum(alpha m) in float64."""
    for c in range(out.shape[0]):
        out[c] = query[c]
    for s in range(used):
        i = members[_SUPPORT, s]
        _subtract(out, memories[members[_ROW, i]], weights[i])


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
def _products(row, query, first):  # type: ignore[no-untyped-def]
    """Products of one memory with the query, with memory 0 and with itself, in one read."""
    s, t, u = np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for c in range(query.shape[0]):
        x = row[c]
        s += x * query[c]
        t += x * first[c]
        u += x * x
    return s, t, u


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
        x = vector[e]
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

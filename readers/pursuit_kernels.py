"""How is the pursuit path of one question computed exactly, without allocating, in few reads of the pool?

`pursue` is the entry; what it calls stands below it in the order of use. Everything is compiled without numba's memory
manager (`_nrt=False`), so an allocation anywhere is a compile error. The rules are those of `readers.mem_pursuit`; this
is how they are kept cheap.

*Scores.* The score of a memory is m.r with r = q - sum(alpha m), read in float32 straight from the pool, four memories
at a time, and only for memories that can still win. Refits are exact and each simplex contains the one before it, so
the reconstruction moves from step s to step t by at most sqrt(2 F_s - 2 F_t), F being the objective of Eq. 2: a score
read at step s bounds the score at step t. What float32 leaves open, by its worst-case rounding bound, is decided in
float64. Memory traffic, not arithmetic, is what a read costs, so each read serves two residuals: this one and the next
one, if the best of the 16 likeliest memories turns out to be the best of all; where not, only the guess is lost.

*Weights.* In float64 over the support F: L = chol(G_FF + ridge I), z = L^-1 b and w = L^-1 1 are carried along;
nu = (w.z - 1) / (w.w) and x = L^-T (z - nu w). Where x has a negative entry the step ends at the first blocking memory,
which leaves F by Givens rotations of L, z and w; a memory outside F returns when its score exceeds nu.

*Saturation.* Once no unselected score exceeds nu, KKT holds for every larger set: weights stay, the tail is one sort.

The workspace, cut from two flat arrays: `scores` (5, P) and `places` (5, P) by pool index; `fit` (5, n) and `members`
(3, n) by place on the path or in the support; `history` (3, n) by step. The constants below name their rows.
"""

import math
from typing import Any

import numpy as np
from numba import njit

TIE = 1e-12
"""Scores this close are equal; the lowest pool index wins."""
COVERED = 1e-12
"""At or below this squared residual the query is covered: the ranking falls back to the query cosine."""
SLACK = 1e-14
"""A score must exceed nu by this much, per unit of squared norm, to enter the support."""

BUDGET, POOL_EXHAUSTED, ADAPTIVE, EMPTY_POOL, BAD_QUERY = range(5)

DEPTH = 2
"""Residuals that one read of a memory serves."""
# Literals such as 0 are types of their own to numba: a variable that starts as one has every kernel it is given to
# compiled twice.
_INT: Any = np.int64
_NONE = 2**32 - 1  # in the index arrays, which are unsigned so that indexing needs no test for negative indices
_HOT = 16  # memories that the guess of the second one looks at

# scores: with the query, last read, in float64, a heap, read for the next step
_RELEVANCE, _SEEN, _EXACT, _HEAP, _NEXT = range(5)
# places: unselected (any order), step of the last read, candidates, to be read, step of the last read with a guess
_LIVE, _STEP, _NEAR, _TODO, _AHEAD = range(5)
_COSINE, _Z, _W, _X, _WORK = range(5)  # fit: cosine with the query by path place, the rest by support place
_SUPPORT, _INSIDE, _ROW = range(3)  # members: support place -> path place; path place -> in the support?, -> row
_ENERGY, _ERROR, _RADIUS = range(3)  # history: 2 F, rounding bound of a score read then, what it can be off by now

_ROUNDING = 1.01 * 2.0**-24  # unit roundoff of float32, with room for its higher orders
_WIDE = 1e12  # beyond this squared norm float32 scores could overflow: float64 throughout
_REASSOCIATE = {"reassoc", "contract", "nsz"}  # lets reductions vectorise; NaN and infinity keep their meaning


def floats_needed(size: int, dim: int, steps: int) -> int:
    """Length of the float64 workspace for a pool of `size` and a path of at most `steps`."""
    return 3 * (steps + 1) * (steps + 1) + 14 * (steps + 1) + dim + 5 * size


def integers_needed(size: int, steps: int) -> int:
    """Length of the uint32 workspace for a pool of `size` and a path of at most `steps`."""
    return 5 * size + 7 * (steps + 1)


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def pursue(  # type: ignore[no-untyped-def]
    query, memories, rows, gram32, gram64, ridge, tau, patience, order, result, floats, integers, narrow
):
    """The path of one question. Returns (length, certificate or NaN, reason); fills `order` and `result`.

    `query` (d,) and `memories` (N, d) float32; `rows` (P,) int64, pool index -> row of `memories` and of the Gram.
    `gram32`, `gram64`: (N, N) where kept, else empty. `tau` < 0: no adaptive stop.
    `order` (n,), n <= P: the path. `result` (3, n): final weights, residual norms, falls of the squared residual norm.
    `floats`, `integers`: at least `floats_needed(P, d, n)`, `integers_needed(P, n)`; `narrow` (2, d) float32.
    """
    size, dim, n = rows.shape[0], memories.shape[1], order.shape[0] + 1
    lower, inner = floats[: n * n].reshape(n, n), floats[n * n : 2 * n * n].reshape(n, n)
    guess_lower = floats[2 * n * n : 3 * n * n].reshape(n, n)
    at = 3 * n * n
    fit, history = floats[at : at + 5 * n].reshape(5, n), floats[at + 5 * n : at + 8 * n].reshape(3, n)
    guess_fit, guess_weights = floats[at + 8 * n : at + 13 * n].reshape(5, n), floats[at + 13 * n : at + 14 * n]
    at += 14 * n
    residual = floats[at : at + dim]
    scores = floats[at + dim : at + dim + 5 * size].reshape(5, size)
    places = integers[: 5 * size].reshape(5, size)
    members = integers[5 * size : 5 * size + 3 * n].reshape(3, n)
    guess_members = integers[5 * size + 3 * n : 5 * size + 6 * n].reshape(3, n)
    guess = integers[5 * size + 6 * n : 5 * size + 7 * n]  # by path place: the pool index it was guessed to take
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
    kept = gram32.shape[0] + gram64.shape[0] > 0
    slack = SLACK * scale
    relevance_error = math.inf if wide else _ROUNDING * dim * norm * mass + 1e-13 * scale
    last = min(n - 1, alive)
    reason = POOL_EXHAUSTED if last == alive else BUDGET

    length, used, streak, certificate = _INT(0), _INT(0), 0, math.nan
    begun, depth = _INT(0), 0  # the guesses in hand: residuals of `depth` steps from `begun` on
    for i in range(n):
        guess[i] = _NONE
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
            read = True
            if wide:
                error = math.inf
                _read_nothing(scores, places, left, length)
            elif kept:
                error = relevance_error + (_ROUNDING * dim * norm * norm if gram64.shape[0] == 0 else 0.0)
                _read_gram(gram32, gram64, rows, members, weights, used, scores, places, left, length)
            else:
                read = False
                error = dim * math.sqrt(max(loss, 0.0)) + (dim * 1e-6 + 2.0 * used + 6.0) * (mass + norm)
                error *= _ROUNDING * norm
            _age(history, length, energy, error, norm, scale)
            if not read:
                if not begun <= length < begun + depth:
                    begun = length
                    depth = _guess(
                        query, memories, rows, weights, fit, lower, members, guess, guess_weights, guess_fit,
                        guess_lower, guess_members, inner, narrow, gram64, scores, places, left, length, used, nu,
                        last, ridge, slack,
                    )  # fmt: skip
                _read_contenders(memories, rows, narrow, scores, places, history, left, length, begun, depth, nu, error)
            count, top = _candidates(scores, places, left, length, error)
            pick, peak = -1, math.nan
            if count > 0 and top + error > nu:
                pick = places[_NEAR, 0]
                if count > 1:
                    _residual(query, memories, members, weights, used, residual)
                    for c in range(count):
                        i = places[_NEAR, c]
                        scores[_EXACT, i] = _dot64(memories[rows[i]], residual)
                    pick, peak = _lowest_of_best(scores, places, count)
        score = math.nan
        if pick >= 0:
            if guess[length] == pick:
                fit[_COSINE, length] = guess_fit[_COSINE, length]
            else:
                depth = 0
                members[_ROW, length] = rows[pick]
                _inner_row(query, memories, gram64, length, members, fit, inner)
            score = _score(fit, inner, members, weights, length, used)
            peak = score if math.isnan(peak) else peak
        if not by_cosine and (pick < 0 or peak <= nu + slack):
            certificate = 0.0
            if not done:
                wanted = last - length
                if tau >= 0.0 and patience - streak <= wanted:
                    wanted, reason = patience - streak, ADAPTIVE
                _residual(query, memories, members, weights, used, residual)
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


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _relevance(query, memories, rows, scores, places):  # type: ignore[no-untyped-def]
    """Reads the pool once, finds its finite memories. Returns (how many these are, the largest norm among them)."""
    size = rows.shape[0]
    for i in range(0, size - 3, 4):
        _read_four_relevances(memories, rows, query, scores, i)
    for i in range(size - size % 4, size):
        mine = memories[rows[i]]
        scores[_RELEVANCE, i], scores[_SEEN, i] = _dot32(mine, query), _dot32(mine, mine)
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
        places[_STEP, i], places[_AHEAD, i] = 0, _NONE
        places[_LIVE, alive] = i
        alive += 1
    return alive, math.sqrt(largest) * (1.0 + 1e-4)


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _most_relevant(query, memories, rows, scores, places, left, error):  # type: ignore[no-untyped-def]
    """The unselected memory with the best query cosine: (pool index, NaN)."""
    top, count = -math.inf, _INT(0)
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


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _age(history, length, energy, error, norm, scale):  # type: ignore[no-untyped-def]
    """How far a score read at each step can be off after `length` selections. Step 0 (the cosines) bounds nothing."""
    history[_ENERGY, length], history[_ERROR, length] = energy, error
    for s in range(1, length):
        moved = math.sqrt(max(history[_ENERGY, s] - energy, 0.0) + 1e-13 * scale)
        history[_RADIUS, s] = norm * moved + history[_ERROR, s]
    history[_RADIUS, 0], history[_RADIUS, length] = math.inf, error


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _read_nothing(scores, places, left, length):  # type: ignore[no-untyped-def]
    """Leaves every score open, for float64 to decide."""
    for a in range(left):
        i = places[_LIVE, a]
        scores[_SEEN, i], places[_STEP, i] = 0.0, length


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _read_gram(gram32, gram64, rows, members, weights, used, scores, places, left, length):  # type: ignore[no-untyped-def]
    """Scores of all memories from the stored Gram; those of selected ones are not looked at."""
    seen, size = scores[_SEEN], rows.shape[0]
    for i in range(size):
        seen[i] = scores[_RELEVANCE, i]
    for a in range(left):
        places[_STEP, places[_LIVE, a]] = length
    straight = rows[size - 1] == size - 1 and rows[0] == 0
    for i in range(size if straight else 0):
        straight = straight and rows[i] == i
    for c in range(used):
        s = members[_SUPPORT, c]
        weight, mine = weights[s], members[_ROW, s]
        if gram64.shape[0] > 0:
            if straight:
                _subtract(seen, gram64[mine], weight)
            else:
                _subtract_gathered(seen, gram64[mine], rows, weight)
        elif straight:
            _subtract(seen, gram32[mine], weight)
        else:
            _subtract_gathered(seen, gram32[mine], rows, weight)


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _guess(  # type: ignore[no-untyped-def]
    query, memories, rows, weights, fit, lower, members, guess, guess_weights, guess_fit, guess_lower, guess_members,
    inner, narrow, gram64, scores, places, left, length, used, nu, last, ridge, slack,
):  # fmt: skip
    """Puts the residual into `narrow[0]` and a guess of the next one into `narrow[1]`. Returns how many these are.

    The guess is what the refit gives if the best of the hottest memories is the best of all; it runs on a copy. These
    memories are read on the way. `guess[length]` is the memory; its inner products stand if the guess comes true.
    """
    _residual(query, memories, members, weights, used, narrow[0])
    guess[length] = _NONE
    hot, todo = _hottest(scores, places, left, nu), places[_TODO]
    pick, top = -1, -math.inf
    for a in range(0, hot - 3, 4):
        _read_four(memories, rows, narrow[0], scores, todo, a)
    for a in range(hot - hot % 4, hot):
        scores[_SEEN, todo[a]] = _dot32(memories[rows[todo[a]]], narrow[0])
    for a in range(hot):
        places[_STEP, todo[a]] = length
        if scores[_SEEN, todo[a]] > top:
            pick, top = todo[a], scores[_SEEN, todo[a]]
    if length >= last or not top > nu:
        return 1
    for s in range(length):
        guess_weights[s] = weights[s]
        guess_members[_INSIDE, s], guess_members[_ROW, s] = members[_INSIDE, s], members[_ROW, s]
        guess_fit[_COSINE, s] = fit[_COSINE, s]
    for c in range(used):
        guess_members[_SUPPORT, c] = members[_SUPPORT, c]
        guess_fit[_Z, c], guess_fit[_W, c] = fit[_Z, c], fit[_W, c]
        for e in range(c + 1):
            guess_lower[c, e] = lower[c, e]
    guess[length] = pick
    guess_weights[length], guess_members[_ROW, length] = 0.0, rows[pick]
    _inner_row(query, memories, gram64, length, guess_members, guess_fit, inner)
    if not _score(guess_fit, inner, guess_members, guess_weights, length, used) > nu + slack:
        return 1
    used, nu = _refit(guess_fit, inner, guess_lower, guess_members, guess_weights, length + 1, used, ridge, slack)
    _residual(query, memories, guess_members, guess_weights, used, narrow[1])
    return 2


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _hottest(scores, places, left, nu):  # type: ignore[no-untyped-def]
    """The `_HOT` highest of the last scores above nu: their memories into `places[_TODO]`. Returns how many."""
    seen, live, todo = scores[_SEEN], places[_LIVE], places[_TODO]
    count, least = 0, nu
    for a in range(left):
        i = live[a]
        value = seen[i]
        if value > least:
            at = min(count, _HOT - 1)
            count = at + 1
            while at > 0 and seen[todo[at - 1]] < value:
                todo[at] = todo[at - 1]
                at -= 1
            todo[at] = i
            if count == _HOT:
                least = seen[todo[_HOT - 1]]
    return count


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _read_contenders(  # type: ignore[no-untyped-def]
    memories, rows, narrow, scores, places, history, left, length, begun, depth, nu, error
):
    """Reads the float32 score of every memory that could be the best one or exceed nu, the likeliest first.

    At step `begun` the guessed next scores are read along; at the step after they are there.
    """
    seen, step, live, radius = scores[_SEEN], places[_STEP], places[_LIVE], history[_RADIUS]
    floor, now = nu - TIE, length - begun
    if now > 0:
        ahead, following = places[_AHEAD], scores[_NEXT]
        for a in range(left):
            i = live[a]
            if ahead[i] == begun:
                seen[i], step[i] = following[i], length
    for a in range(left):
        i = live[a]
        if step[i] == length:
            floor = max(floor, seen[i] - error - TIE)
    todo, waiting = places[_TODO], 0
    if now > 0:
        waiting = _likeliest(scores, places, left, length)
    a = 0
    while True:
        if waiting == 4 or a == left:
            for t in range(waiting):
                places[_STEP, todo[t]] = length
            if waiting < 4:
                for t in range(waiting):
                    scores[_SEEN, todo[t]] = _dot32(memories[rows[todo[t]]], narrow[now])
                return
            if depth == 2 and now == 0:
                _read_four_twice(memories, rows, narrow[0], narrow[1], scores, todo)
                for t in range(4):
                    places[_AHEAD, todo[t]] = begun
            else:
                _read_four(memories, rows, narrow[now], scores, todo, _INT(0))
            for t in range(4):
                floor = max(floor, seen[todo[t]] - error - TIE)
            waiting = 0
            if a == left:
                return
        i = live[a]
        a += 1
        if step[i] != length and seen[i] + radius[step[i]] >= floor:
            todo[waiting] = i
            waiting += 1


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _likeliest(scores, places, left, length):  # type: ignore[no-untyped-def]
    """The four unread memories with the highest last scores into `places[_TODO]`; none where fewer are unread.

    They are marked as read.
    """
    i, j, k, m = -1, -1, -1, -1
    s, t, u, v = -math.inf, -math.inf, -math.inf, -math.inf
    for a in range(left):
        p = places[_LIVE, a]
        value = scores[_SEEN, p]
        if places[_STEP, p] != length and (value > v or m < 0):
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
    if m < 0:
        return 0
    places[_TODO, 0], places[_TODO, 1], places[_TODO, 2], places[_TODO, 3] = i, j, k, m
    places[_STEP, i], places[_STEP, j], places[_STEP, k], places[_STEP, m] = length, length, length, length
    return 4


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _candidates(scores, places, left, length, error):  # type: ignore[no-untyped-def]
    """Memories read at step `length` whose score may be the largest. Returns (how many, the largest read)."""
    seen, step, live = scores[_SEEN], places[_STEP], places[_LIVE]
    top, count = -math.inf, _INT(0)
    for a in range(left):
        i = live[a]
        if step[i] == length and seen[i] > top:
            top = seen[i]
    floor = top - 2.0 * error - TIE
    for a in range(left):
        i = live[a]
        if seen[i] >= floor and step[i] == length:
            places[_NEAR, count] = i
            count += 1
    return count, top


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
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


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _forget(places, left, pick):  # type: ignore[no-untyped-def]
    """Takes `pick` out of the live memories; the last of them gets its place."""
    for a in range(left):
        if places[_LIVE, a] == pick:
            places[_LIVE, a] = places[_LIVE, left - 1]
            return


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _tail(memories, rows, residual, scores, places, history, left, wanted, order):  # type: ignore[no-untyped-def]
    """After saturation: the next `wanted` of the path, by final score, into `order`."""
    cut = _wanted_th_lower_bound(scores, places, history, left, wanted)
    count = _INT(0)
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


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
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


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
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


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _after(i, j, value):  # type: ignore[no-untyped-def]
    return value[i] < value[j] or (value[i] == value[j] and i > j)


# --- the weights ------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _inner_row(query, memories, gram64, place, members, fit, inner):  # type: ignore[no-untyped-def]
    """Float64 products of the memory at path place `place` with the query, the path before it and itself."""
    mine = members[_ROW, place]
    fit[_COSINE, place] = _dot64(memories[mine], query)
    s = 0
    if gram64.shape[0] > 0:
        for s in range(place + 1):
            inner[place, s] = gram64[mine, members[_ROW, s]]
    else:
        while s + 4 <= place + 1:
            inner[place, s], inner[place, s + 1], inner[place, s + 2], inner[place, s + 3] = _dots64(
                memories[members[_ROW, s]],
                memories[members[_ROW, s + 1]],
                memories[members[_ROW, s + 2]],
                memories[members[_ROW, s + 3]],
                memories[mine],
            )
            s += 4
        while s <= place:
            inner[place, s] = _dot64(memories[members[_ROW, s]], memories[mine])
            s += 1
    for s in range(place):
        inner[s, place] = inner[place, s]


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _score(fit, inner, members, weights, place, used):  # type: ignore[no-untyped-def]
    """Float64 score of the memory whose products are in row `place`."""
    score = fit[_COSINE, place]
    for c in range(used):
        s = members[_SUPPORT, c]
        score -= inner[place, s] * weights[s]
    return score


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _refit(fit, inner, lower, members, weights, length, used, ridge, slack):  # type: ignore[no-untyped-def]
    """Exact weights over the first `length` of the path, its last one newly in the support. Returns (used, nu)."""
    entering, rounds = length - 1, 0
    while True:
        used = _admit(fit, inner, lower, members, entering, used, ridge)
        while True:
            rounds += 1
            nu = _solve(fit, lower, used)
            blocking, part = _INT(-1), 1.0
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


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _objective(fit, members, weights, used, nu, ridge, query_square):  # type: ignore[no-untyped-def]
    """(||r||^2, 2 F) at the refitted weights, from KKT: G alpha = b - nu - ridge alpha on the support."""
    energy, squares = query_square - nu, 0.0
    for c in range(used):
        s = members[_SUPPORT, c]
        energy -= fit[_COSINE, s] * weights[s]
        squares += weights[s] * weights[s]
    return energy - ridge * squares, energy


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
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


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
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


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
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


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _residual(query, memories, members, weights, used, out):  # type: ignore[no-untyped-def]
    """q - sum(alpha m), in the precision of `out`."""
    to = out.dtype.type
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
            to(weights[i]),
            to(weights[j]),
            to(weights[k]),
            to(weights[m]),
        )
        s += 4
    while s < used:
        i = members[_SUPPORT, s]
        _subtract(out, memories[members[_ROW, i]], to(weights[i]))
        s += 1


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy", fastmath={"contract"})
def _subtract(out, row, weight):  # type: ignore[no-untyped-def]
    for c in range(out.shape[0]):
        out[c] -= weight * row[c]


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy", fastmath={"contract"})
def _subtract_gathered(out, row, places, weight):  # type: ignore[no-untyped-def]
    for c in range(out.shape[0]):
        out[c] -= weight * row[places[c]]


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy", fastmath={"contract"})
def _subtract_four(out, a, b, c, d, x, y, z, w):  # type: ignore[no-untyped-def]
    for e in range(out.shape[0]):
        out[e] = out[e] - x * a[e] - y * b[e] - z * c[e] - w * d[e]


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy", fastmath=_REASSOCIATE)
def _dot32(row, vector):  # type: ignore[no-untyped-def]
    total = np.float32(0.0)
    for c in range(vector.shape[0]):
        total += row[c] * vector[c]
    return total


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy", fastmath=_REASSOCIATE)
def _read_four(memories, rows, vector, scores, todo, at):  # type: ignore[no-untyped-def]
    """Products of the memories `todo[at : at + 4]` with one vector, into `scores[_SEEN]`."""
    i, j, k, m = todo[at], todo[at + 1], todo[at + 2], todo[at + 3]
    a, b, c, d = memories[rows[i]], memories[rows[j]], memories[rows[k]], memories[rows[m]]
    s, t, u, v = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for e in range(vector.shape[0]):
        x = vector[e]
        s += a[e] * x
        t += b[e] * x
        u += c[e] * x
        v += d[e] * x
    scores[_SEEN, i], scores[_SEEN, j], scores[_SEEN, k], scores[_SEEN, m] = s, t, u, v


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy", fastmath=_REASSOCIATE)
def _read_four_twice(memories, rows, vector, following, scores, todo):  # type: ignore[no-untyped-def]
    """Products of the memories `todo[:4]` with two vectors, into `scores[_SEEN]` and `scores[_NEXT]`."""
    i, j, k, m = todo[0], todo[1], todo[2], todo[3]
    a, b, c, d = memories[rows[i]], memories[rows[j]], memories[rows[k]], memories[rows[m]]
    s, t, u, v = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    s2, t2, u2, v2 = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for e in range(vector.shape[0]):
        x, y = vector[e], following[e]
        s += a[e] * x
        t += b[e] * x
        u += c[e] * x
        v += d[e] * x
        s2 += a[e] * y
        t2 += b[e] * y
        u2 += c[e] * y
        v2 += d[e] * y
    scores[_SEEN, i], scores[_SEEN, j], scores[_SEEN, k], scores[_SEEN, m] = s, t, u, v
    scores[_NEXT, i], scores[_NEXT, j], scores[_NEXT, k], scores[_NEXT, m] = s2, t2, u2, v2


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy", fastmath=_REASSOCIATE)
def _read_four_relevances(memories, rows, query, scores, i):  # type: ignore[no-untyped-def]
    """Products of the memories `i` to `i + 3` with the query and with themselves."""
    a, b, c, d = memories[rows[i]], memories[rows[i + 1]], memories[rows[i + 2]], memories[rows[i + 3]]
    s, t, u, v = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    ss, tt, uu, vv = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for e in range(query.shape[0]):
        x = query[e]
        s += a[e] * x
        t += b[e] * x
        u += c[e] * x
        v += d[e] * x
        ss += a[e] * a[e]
        tt += b[e] * b[e]
        uu += c[e] * c[e]
        vv += d[e] * d[e]
    scores[_RELEVANCE, i], scores[_RELEVANCE, i + 1], scores[_RELEVANCE, i + 2], scores[_RELEVANCE, i + 3] = s, t, u, v
    scores[_SEEN, i], scores[_SEEN, i + 1], scores[_SEEN, i + 2], scores[_SEEN, i + 3] = ss, tt, uu, vv


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy", fastmath=_REASSOCIATE)
def _dot64(row, vector):  # type: ignore[no-untyped-def]
    total = 0.0
    for c in range(vector.shape[0]):
        total += np.float64(row[c]) * np.float64(vector[c])
    return total


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy", fastmath=_REASSOCIATE)
def _dots64(a, b, c, d, vector):  # type: ignore[no-untyped-def]
    s, t, u, v = 0.0, 0.0, 0.0, 0.0
    for e in range(vector.shape[0]):
        x = vector[e]
        s += np.float64(a[e]) * x
        t += np.float64(b[e]) * x
        u += np.float64(c[e]) * x
        v += np.float64(d[e]) * x
    return s, t, u, v


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _finite(row):  # type: ignore[no-untyped-def]
    for c in range(row.shape[0]):  # noqa: SIM110
        if not math.isfinite(row[c]):
            return False
    return True

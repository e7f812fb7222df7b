"""How is the pursuit path of one question computed exactly, without allocating, in few reads of the pool?

`pursue` is the entry; what it calls stands below it in the order of use. Everything is compiled without numba's memory
manager (`_nrt=False`), so an allocation anywhere is a compile error. The rules are those of `readers.mem_pursuit`; this
is how they are kept cheap.

*Scores.* The score of a memory is m.r with r = q - sum(alpha m). Memory traffic is what a read costs, so the first pass
over the pool, which finds the query cosines, also makes a copy of it in 8 bits, which the processor's own cache can
hold. Scores are read from the copy, four memories at a time, in integers, and only for memories that can still win:
refits are exact and each simplex contains the one before it, so the reconstruction moves from step s to step t by at
most sqrt(2 F_s - 2 F_t), F being the objective of Eq. 2, and a score read at step s bounds the score at step t. What
the copy leaves open, by a worst-case bound on its rounding, is read in float32; what that leaves open, in float64.

*Weights.* In float64 over the support F: L = chol(G_FF + ridge I), z = L^-1 b and w = L^-1 1 are carried along;
nu = (w.z - 1) / (w.w) and x = L^-T (z - nu w). Where x has a negative entry the step ends at the first blocking memory,
which leaves F by Givens rotations of L, z and w; a memory outside F returns when its score exceeds nu.

*Saturation.* Once no unselected score exceeds nu, KKT holds for every larger set: weights stay, the tail is one sort.

The workspace, cut from flat arrays: `scores` (5, P) and `places` (4, P) by pool index; `fit` (5, n) and `members`
(3, n) by place on the path or in the support; `history` (4, n) by step. The constants below name their rows.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

TIE = 1e-12
"""Scores this close are equal; the lowest pool index wins."""
COVERED = 1e-12
"""At or below this squared residual the query is covered: the ranking falls back to the query cosine."""
SLACK = 1e-14
"""A score must exceed nu by this much, per unit of squared norm, to enter the support."""

BUDGET, POOL_EXHAUSTED, ADAPTIVE, EMPTY_POOL, BAD_QUERY = range(5)

LANES = 32
"""Dimensions that one step of the integer products takes; the copy's rows are this long, or a multiple."""
# Literals such as 0 are types of their own to numba: a variable that starts as one has every kernel it is given to
# compiled twice.
_INT: Any = np.int64
_NONE = 2**32 - 1  # in the index arrays, which are unsigned so that indexing needs no test for negative indices

# scores: with the query, last read, in more bits, a heap; not a score: the value of 1 in a memory's copy
_RELEVANCE, _SEEN, _EXACT, _HEAP, _UNIT = range(5)
# places: unselected (any order), step of the last read, candidates, to be read
_LIVE, _STEP, _NEAR, _TODO = range(4)
_COSINE, _Z, _W, _X, _WORK = range(5)  # fit: cosine with the query by path place, the rest by support place
_SUPPORT, _INSIDE, _ROW = range(3)  # members: support place -> path place; path place -> in the support?, -> row
# history: 2 F; what a score read then can be off by now is _RADIUS + _GRAIN times the memory's _UNIT; _RADIUS then
_ENERGY, _RADIUS, _GRAIN, _ERROR = range(4)


class Vectors(NamedTuple):
    """A pool's memories and, where they are kept, their products. `rows`: pool index -> row of `memories` and Gram."""

    memories: Any
    rows: Any
    gram32: Any
    gram64: Any


class Space(NamedTuple):
    """The workspace of one path: rows as the constants above name them, and two forms of the residual, two of rows."""

    lower: Any
    inner: Any
    fit: Any
    history: Any
    members: Any
    weights: Any
    scores: Any
    places: Any
    residual: Any
    narrow: Any
    coarse: Any
    short: Any


class Scale(NamedTuple):
    """What errors are measured by: norm of the query, largest norm of a memory, largest square of these, at least 1.

    `relevance`: how far a query cosine can be off. `wide`: no float32 score is to be trusted. `kept`: a Gram is kept.
    """

    mass: Any
    norm: Any
    largest: Any
    relevance: Any
    wide: Any
    kept: Any


_ROUNDING = 1.01 * 2.0**-24  # unit roundoff of float32, with room for its higher orders
_WIDE = 1e12  # beyond this squared norm float32 scores could overflow: float64 throughout
_HALF = 0.5001  # what rounding to an integer is off by, with room for the float32 product before it
_INTEGER = 12582912.0  # 1.5 * 2^23: a float32 in its binade holds an integer in its low bits, two's complement
_UNSIGNED, _INFINITE = 0x7FFFFFFF, 0x7F800000  # all bits but the sign; the bits of infinity
_BLOCK = 256  # dimensions between two rounds of fetches
_FAINT = 1e-6  # below this part of the largest square, ||r||^2 is read from r: as a difference it is mostly rounding
_TINY = 1e-30  # a vector whose largest entry is below is copied as zeros
_REASSOCIATE = {"reassoc", "contract", "nsz"}  # lets reductions vectorise; NaN and infinity keep their meaning


def floats_needed(size: int, dim: int, steps: int) -> int:
    """Length of the float64 workspace for a pool of `size` and a path of at most `steps`."""
    return 2 * (steps + 1) * (steps + 1) + 9 * (steps + 1) + dim + 5 * size


def integers_needed(size: int, steps: int) -> int:
    """Length of the uint32 workspace for a pool of `size` and a path of at most `steps`."""
    return 4 * size + 3 * (steps + 1)


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def pursue(  # type: ignore[no-untyped-def]
    query, memories, rows, gram32, gram64, ridge, tau, patience, order, result, floats, integers, narrow, coarse, short
):
    """The path of one question. Returns (length, certificate or NaN, reason); fills `order` and `result`.

    `query` (d,) and `memories` (N, d) float32; `rows` (P,) int64, pool index -> row of `memories` and of the Gram.
    `gram32`, `gram64`: (N, N) where kept, else empty. `tau` < 0: no adaptive stop.
    `order` (n,), n <= P: the path. `result` (3, n): final weights, residual norms, falls of the squared residual norm.
    `floats`, `integers`: at least `floats_needed(P, d, n)`, `integers_needed(P, n)`; `narrow` (d,) float32;
    `coarse` (P or more, e) int8 and `short` (e,) int16, e being d rounded up to a multiple of `LANES`.
    """
    pool = Vectors(memories, rows, gram32, gram64)
    space = _cut(rows.shape[0], memories.shape[1], order.shape[0] + 1, result, floats, integers, narrow, coarse, short)
    query_square = _dot64(query, query)
    if not math.isfinite(query_square):
        return 0, math.nan, BAD_QUERY
    if rows.shape[0] == 0:
        return 0, math.nan, EMPTY_POOL
    kept = gram32.shape[0] + gram64.shape[0] > 0
    alive, norm = _relevance(query, pool, space, kept)
    scale = _scale(query_square, norm, memories.shape[1], kept)
    slack = SLACK * scale.largest
    last = min(order.shape[0], alive)
    reason = POOL_EXHAUSTED if last == alive else BUDGET

    length, used, streak, certificate = _INT(0), _INT(0), 0, math.nan
    nu, loss, energy = -math.inf, query_square, query_square
    while True:
        left = alive - length
        done = length == last or reason == ADAPTIVE
        if left == 0 or order.shape[0] == 0:
            certificate = 0.0 if length else math.nan
            break
        by_cosine, unit = length == 0 or (loss <= COVERED and not done), 0.0
        if by_cosine:
            pick, peak = _most_relevant(query, pool, space, left, scale.relevance), math.nan
        else:
            _age(space.history, scale, length, energy)
            pick, peak, unit = _best(query, pool, space, scale, left, length, used, nu, loss)
        score = math.nan
        if pick >= 0:
            space.members[_ROW, length] = rows[pick]
            _inner_row(query, pool, space, length)
            score = _score(space, length, used)
            peak = score if math.isnan(peak) else peak
        if not by_cosine and (pick < 0 or peak <= nu + slack):
            certificate = 0.0
            if not done:
                wanted = last - length
                if tau >= 0.0 and patience - streak <= wanted:
                    wanted, reason = patience - streak, ADAPTIVE
                _saturate(query, pool, space, scale, unit, left, length, used, wanted, order)
                result[1, length : length + wanted] = math.sqrt(max(loss, 0.0))
                result[2, length : length + wanted] = 0.0
                length += wanted
            break
        if done:
            certificate = peak - nu
            break
        order[length], space.weights[length] = pick, 0.0
        space.members[_INSIDE, length] = 0
        _forget(space, left, pick)
        length += 1
        if length == 1 or score > nu + slack:
            used, nu = _refit(space, length, used, ridge, slack)
        before = loss
        loss, energy = _objective(space, used, nu, ridge, query_square)
        if loss < _FAINT * scale.largest:
            _residual(query, pool, space, used, space.residual)
            loss = _dot64(space.residual, space.residual)
        result[1, length - 1], result[2, length - 1] = math.sqrt(max(loss, 0.0)), before - loss
        if tau >= 0.0:
            streak = streak + 1 if before - loss <= tau * max(before, COVERED) else 0
            if streak >= patience:
                reason = ADAPTIVE
    return length, certificate, reason


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _cut(size, dim, n, result, floats, integers, narrow, coarse, short):  # type: ignore[no-untyped-def]
    """The workspace of a pool of `size` and a path of less than `n`."""
    square, at = n * n, 2 * n * n
    most = at + 9 * n
    return Space(
        floats[:square].reshape(n, n),
        floats[square:at].reshape(n, n),
        floats[at : at + 5 * n].reshape(5, n),
        floats[at + 5 * n : most].reshape(4, n),
        integers[4 * size : 4 * size + 3 * n].reshape(3, n),
        result[0],
        floats[most + dim : most + dim + 5 * size].reshape(5, size),
        integers[: 4 * size].reshape(4, size),
        floats[most : most + dim],
        narrow,
        coarse,
        short,
    )


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _scale(query_square, norm, dim, kept):  # type: ignore[no-untyped-def]
    mass = math.sqrt(query_square)
    largest = max(1.0, norm * norm, norm * mass)
    wide = norm * norm > _WIDE or query_square > _WIDE or dim > 2**20
    relevance = math.inf if wide else _ROUNDING * dim * norm * mass + 1e-13 * largest
    return Scale(mass, norm, largest, relevance, wide, kept)


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _best(query, pool, space, scale, left, length, used, nu, loss):  # type: ignore[no-untyped-def]
    """The unselected memory with the best score: (pool index, score or NaN, value of 1 in the short residual).

    The index is -1 where no score exceeds nu; the score is NaN where no other came near enough for it to be needed.
    """
    dim, top, unit = query.shape[0], math.inf, 0.0
    if scale.wide or scale.kept:
        if scale.wide:
            error = math.inf
            _read_nothing(space, left, length)
        else:
            error = scale.relevance
            error += _ROUNDING * dim * scale.norm * scale.norm if pool.gram64.shape[0] == 0 else 0.0
            _read_gram(pool, space, left, length, used)
        _note(space.history, length, error, 0.0)
        count, top = _candidates(space, left, error)
    else:
        far = math.sqrt(max(loss, 0.0))
        blur = _ROUNDING * (dim * far + (dim * 1e-6 + 2.0 * used + 6.0) * (scale.mass + scale.norm))
        fine = scale.norm * blur
        _residual(query, pool, space, used, space.narrow)
        unit = _shorten(space.narrow, space.short)
        blur += _HALF * math.sqrt(dim) * unit
        _note(space.history, length, fine + scale.norm * blur, _HALF * math.sqrt(dim) * (far + blur))
        count = _read_contenders(space, unit, left, length, nu)
        if count > 1:
            count, top = _read_candidates(pool, space, length, count, nu, fine)
    if count == 0 or top <= nu:
        return -1, math.nan, unit
    if count == 1:
        return _INT(space.places[_NEAR, 0]), math.nan, unit
    _residual(query, pool, space, used, space.residual)
    for c in range(count):
        i = space.places[_NEAR, c]
        space.scores[_EXACT, i] = _dot64(pool.memories[pool.rows[i]], space.residual)
    pick, peak = _lowest_of_best(space, count)
    return pick, peak, unit


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _saturate(query, pool, space, scale, unit, left, length, used, wanted, order):  # type: ignore[no-untyped-def]
    """The next `wanted` of the path, and their weights, once no score exceeds nu."""
    _residual(query, pool, space, used, space.residual)
    if not (scale.kept or scale.wide):
        _read_stale(space, unit, left, length, wanted)
    _tail(pool, space, left, wanted, order[length:])
    space.weights[length : length + wanted] = 0.0


# --- which memory is next ---------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _relevance(query, pool, space, kept):  # type: ignore[no-untyped-def]
    """Reads the pool once, copies it into `coarse` unless a Gram is kept, and finds its finite memories.

    Returns (how many these are, the largest norm among them).
    """
    memories, rows, scores, places, coarse = pool.memories, pool.rows, space.scores, space.places, space.coarse
    largest, alive = 0.0, 0
    size = rows.shape[0]
    if kept:
        _read_cosines(query, pool, scores[_RELEVANCE])
    for i in range(size):
        mine, relevance, square = memories[rows[i]], scores[_RELEVANCE, i], 0.0
        if kept and math.isfinite(relevance):  # so every entry is finite, and the Gram holds the square
            square = pool.gram64[rows[i], rows[i]] if pool.gram64.shape[0] > 0 else pool.gram32[rows[i], rows[i]]
        else:
            following = memories[rows[min(i + 1, size - 1)]]
            relevance, square, bits = _measure_and_fetch(mine, query, following)
            if bits >= _INFINITE:
                continue
            if not (math.isfinite(square) and math.isfinite(relevance)):
                square, relevance = _dot64(mine, mine), 0.0  # finite, but float32 overflowed
            if not kept:
                scores[_UNIT, i] = _copy_and_fetch(mine, bits, coarse[i], following)
        largest = max(largest, square)
        scores[_RELEVANCE, i], scores[_SEEN, i] = relevance, relevance
        places[_STEP, i] = 0
        places[_LIVE, alive] = i
        alive += 1
    return alive, math.sqrt(largest) * (1.0 + 1e-4)


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _read_cosines(query, pool, out):  # type: ignore[no-untyped-def]
    """Products of all memories with the query in float32, four at a time."""
    memories, rows, whole = pool.memories, pool.rows, pool.rows.shape[0] // 4 * 4
    for i in range(0, whole, 4):
        j, k, m = i + 1, i + 2, i + 3
        out[i], out[j], out[k], out[m] = _dots32(
            memories[rows[i]], memories[rows[j]], memories[rows[k]], memories[rows[m]], query
        )
    for i in range(whole, rows.shape[0]):
        out[i] = _dot32(memories[rows[i]], query)


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _most_relevant(query, pool, space, left, error):  # type: ignore[no-untyped-def]
    """The unselected memory with the best query cosine."""
    scores, places = space.scores, space.places
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
            scores[_EXACT, i] = _dot64(pool.memories[pool.rows[i]], query)
        return _lowest_of_best(space, count)[0]
    return _INT(places[_NEAR, 0])


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _age(history, scale, length, energy):  # type: ignore[no-untyped-def]
    """How far a score read at each step can be off after `length` selections. Step 0 (the cosines) bounds nothing."""
    history[_ENERGY, length] = energy
    for s in range(1, length):
        moved = math.sqrt(max(history[_ENERGY, s] - energy, 0.0) + 1e-13 * scale.largest)
        history[_RADIUS, s] = scale.norm * moved + history[_ERROR, s]
    history[_RADIUS, 0], history[_GRAIN, 0] = math.inf, 0.0


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _note(history, length, error, grain):  # type: ignore[no-untyped-def]
    """How far a score read now, after `length` selections, can be off."""
    history[_ERROR, length], history[_RADIUS, length], history[_GRAIN, length] = error, error, grain


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _read_nothing(space, left, length):  # type: ignore[no-untyped-def]
    """Leaves every score open, for float64 to decide."""
    scores, places = space.scores, space.places
    for a in range(left):
        i = places[_LIVE, a]
        scores[_SEEN, i], scores[_UNIT, i], places[_STEP, i] = 0.0, 0.0, length


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _read_gram(pool, space, left, length, used):  # type: ignore[no-untyped-def]
    """Scores of all memories from the stored Gram; those of selected ones are not looked at."""
    rows, gram32, gram64, scores = pool.rows, pool.gram32, pool.gram64, space.scores
    members, weights = space.members, space.weights
    seen, size = scores[_SEEN], rows.shape[0]
    for i in range(size):
        seen[i] = scores[_RELEVANCE, i]
    for a in range(left):
        i = space.places[_LIVE, a]
        scores[_UNIT, i], space.places[_STEP, i] = 0.0, length
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
def _read_contenders(space, unit, left, length, nu):  # type: ignore[no-untyped-def]
    """Reads the score of every memory that could be the best one or exceed nu, the likeliest first.

    Leaves those of them that may be the best in `places[_NEAR]`, the likeliest first. Returns how many these are.
    """
    scores, places, history = space.scores, space.places, space.history
    seen, units, step, live, near = scores[_SEEN], scores[_UNIT], places[_STEP], places[_LIVE], places[_NEAR]
    radius, grain = history[_RADIUS], history[_GRAIN]
    todo, waiting = places[_TODO], _likeliest(space, left)
    error, blur = radius[length], grain[length]
    floor, a, count = nu - TIE, 0, _INT(0)
    while True:
        if waiting == 4 or a == left:
            _read_coarsely(space, unit, waiting)
            for t in range(waiting):
                i = todo[t]
                step[i] = length
                floor = max(floor, seen[i] - error - blur * units[i] - TIE)
                near[count] = i
                count += 1
            waiting = 0
            if a == left:
                break
        i = live[a]
        a += 1
        if step[i] != length and seen[i] + radius[step[i]] + grain[step[i]] * units[i] >= floor:
            todo[waiting] = i
            waiting += 1
    still = _INT(0)
    for c in range(count):
        i = near[c]
        if seen[i] + error + blur * units[i] >= floor:
            near[still] = i
            still += 1
    return still


# Inlined by order: passing the workspace takes longer than the reading does.
@njit(cache=True, nogil=True, _nrt=False, error_model="numpy", forceinline=True)
def _read_coarsely(space, unit, count):  # type: ignore[no-untyped-def]
    """Scores of the first `count` memories to be read, at most four, from their copies."""
    coarse, short, scores, todo = space.coarse, space.short, space.scores, space.places[_TODO]
    if count == 4:
        i, j, k, m = todo[0], todo[1], todo[2], todo[3]
        s, t, u, v = _products(coarse, i, j, k, m, short)
        scores[_SEEN, i], scores[_SEEN, j] = s * unit * scores[_UNIT, i], t * unit * scores[_UNIT, j]
        scores[_SEEN, k], scores[_SEEN, m] = u * unit * scores[_UNIT, k], v * unit * scores[_UNIT, m]
    else:
        for c in range(count):
            i = todo[c]
            scores[_SEEN, i] = _products(coarse, i, i, i, i, short)[0] * unit * scores[_UNIT, i]


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _likeliest(space, left):  # type: ignore[no-untyped-def]
    """The four memories with the highest last scores into `places[_TODO]`; none where fewer are left."""
    if left < 4:
        return 0
    seen, live, todo = space.scores[_SEEN], space.places[_LIVE], space.places[_TODO]
    count, least = 0, -math.inf
    for a in range(left):
        i = live[a]
        if count < 4 or seen[i] > least:
            at = min(count, 3)
            count = at + 1
            while at > 0 and seen[todo[at - 1]] < seen[i]:
                todo[at] = todo[at - 1]
                at -= 1
            todo[at] = i
            least = seen[todo[count - 1]]
    return 4


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _candidates(space, left, error):  # type: ignore[no-untyped-def]
    """Of all memories, just read, those that may be the best. Returns (how many, what none of them exceeds)."""
    seen, live, near = space.scores[_SEEN], space.places[_LIVE], space.places[_NEAR]
    top, count = -math.inf, _INT(0)
    for a in range(left):
        top = max(top, seen[live[a]])
    for a in range(left):
        i = live[a]
        if seen[i] >= top - 2.0 * error - TIE:
            near[count] = i
            count += 1
    return count, top + error


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _read_candidates(pool, space, length, count, nu, error):  # type: ignore[no-untyped-def]
    """Reads the candidates in float32, the likeliest first, but those that no longer can be the best one or exceed nu.

    Returns (how many may still be the best, what none of them exceeds).
    """
    memories, rows, narrow, history = pool.memories, pool.rows, space.narrow, space.history
    scores, places = space.scores, space.places
    near, exact, seen, units = places[_NEAR], scores[_EXACT], scores[_SEEN], scores[_UNIT]
    blur, grain = history[_RADIUS, length], history[_GRAIN, length]
    top, first, read, still = -math.inf, 0, _INT(0), _INT(0)
    for c in range(1, count):
        if seen[near[c]] > seen[near[first]]:
            first = c
    near[0], near[first] = near[first], near[0]
    for c in range(count):
        i = near[c]
        if seen[i] + blur + grain * units[i] >= max(top - error, nu) - TIE:
            exact[i] = _dot32(memories[rows[i]], narrow)
            top = max(top, exact[i])
            near[read] = i
            read += 1
    for c in range(read):
        i = near[c]
        if exact[i] >= top - 2.0 * error - TIE:
            near[still] = i
            still += 1
    return still, top + error


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _lowest_of_best(space, count):  # type: ignore[no-untyped-def]
    """(lowest candidate within `TIE` of the largest float64 score, that score)."""
    scores, places = space.scores, space.places
    peak, pick = -math.inf, -1
    for c in range(count):
        peak = max(peak, scores[_EXACT, places[_NEAR, c]])
    for c in range(count):
        i = places[_NEAR, c]
        if scores[_EXACT, i] >= peak - TIE and (pick < 0 or i < pick):
            pick = i
    return pick, peak


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _forget(space, left, pick):  # type: ignore[no-untyped-def]
    """Takes `pick` out of the live memories; the last of them gets its place."""
    live = space.places[_LIVE]
    for a in range(left):
        if live[a] == pick:
            live[a] = live[left - 1]
            return


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _read_stale(space, unit, left, length, wanted):  # type: ignore[no-untyped-def]
    """Reads what was last read at an earlier step and may belong to the `wanted` best, to tell these more closely."""
    scores, places, history = space.scores, space.places, space.history
    cut = _wanted_th_lower_bound(space, left, wanted)
    seen, units, step, live, todo = scores[_SEEN], scores[_UNIT], places[_STEP], places[_LIVE], places[_TODO]
    waiting = 0
    for a in range(left):
        i = live[a]
        s = step[i]
        if s != length and seen[i] + history[_RADIUS, s] + history[_GRAIN, s] * units[i] >= cut - TIE:
            todo[waiting] = i
            step[i] = length
            waiting += 1
            if waiting == 4:
                _read_coarsely(space, unit, waiting)
                waiting = 0
    _read_coarsely(space, unit, waiting)


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _tail(pool, space, left, wanted, order):  # type: ignore[no-untyped-def]
    """After saturation: the next `wanted` of the path, by final score, into `order`."""
    scores, places, history = space.scores, space.places, space.history
    cut = _wanted_th_lower_bound(space, left, wanted)
    count = _INT(0)
    for a in range(left):
        i = places[_LIVE, a]
        s = places[_STEP, i]
        if scores[_SEEN, i] + history[_RADIUS, s] + history[_GRAIN, s] * scores[_UNIT, i] >= cut - TIE:
            scores[_EXACT, i] = _dot64(pool.memories[pool.rows[i]], space.residual)
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
def _wanted_th_lower_bound(space, left, wanted):  # type: ignore[no-untyped-def]
    """The `wanted`-th largest lower bound of a live score, by a min-heap of that size."""
    scores, places, history = space.scores, space.places, space.history
    heap, count = scores[_HEAP], 0
    for a in range(left):
        i = places[_LIVE, a]
        s = places[_STEP, i]
        value = scores[_SEEN, i] - history[_RADIUS, s] - history[_GRAIN, s] * scores[_UNIT, i]
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
def _inner_row(query, pool, space, place):  # type: ignore[no-untyped-def]
    """Float64 products of the memory at path place `place` with the query, the path before it and itself."""
    memories, gram64, members, inner = pool.memories, pool.gram64, space.members, space.inner
    mine = members[_ROW, place]
    space.fit[_COSINE, place] = _dot64(memories[mine], query)
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
def _score(space, place, used):  # type: ignore[no-untyped-def]
    """Float64 score of the memory whose products are in row `place`."""
    score = space.fit[_COSINE, place]
    for c in range(used):
        s = space.members[_SUPPORT, c]
        score -= space.inner[place, s] * space.weights[s]
    return score


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _refit(space, length, used, ridge, slack):  # type: ignore[no-untyped-def]
    """Exact weights over the first `length` of the path, its last one newly in the support. Returns (used, nu)."""
    fit, members, weights = space.fit, space.members, space.weights
    entering, rounds = length - 1, 0
    while True:
        used = _admit(space, entering, used, ridge)
        while True:
            rounds += 1
            nu = _solve(space, used)
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
            used = _dismiss(space, blocking, used)
        for c in range(used):
            weights[members[_SUPPORT, c]] = fit[_X, c]
        entering, most = -1, nu + slack
        for s in range(length):
            if members[_INSIDE, s] == 0:
                score = _score(space, s, used)
                if score > most:
                    entering, most = s, score
        if entering < 0 or rounds > 4 * length + 20:  # the objective falls each round; the cap is for rounding noise
            return used, nu


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _objective(space, used, nu, ridge, query_square):  # type: ignore[no-untyped-def]
    """(||r||^2, 2 F) at the refitted weights, from KKT: G alpha = b - nu - ridge alpha on the support."""
    fit, members, weights = space.fit, space.members, space.weights
    energy, squares = query_square - nu, 0.0
    for c in range(used):
        s = members[_SUPPORT, c]
        energy -= fit[_COSINE, s] * weights[s]
        squares += weights[s] * weights[s]
    return energy - ridge * squares, energy


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _admit(space, entering, used, ridge):  # type: ignore[no-untyped-def]
    """Appends path place `entering` to the factor. The pivot is at least the ridge, as it is in exact arithmetic."""
    fit, inner, lower, members = space.fit, space.inner, space.lower, space.members
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
def _dismiss(space, place, used):  # type: ignore[no-untyped-def]
    """Takes support place `place` out of the factor by Givens rotations, z and w with it."""
    fit, lower, members = space.fit, space.lower, space.members
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
def _solve(space, used):  # type: ignore[no-untyped-def]
    """The refit over the support with its sum fixed and its signs free, into `fit[_X]`; returns nu.

    Where rows are nearly equal, z and w are large and the sum is off by more than rounding: one step of refinement.
    """
    fit = space.fit
    wz, ww = 0.0, 0.0
    for c in range(used):
        wz += fit[_W, c] * fit[_Z, c]
        ww += fit[_W, c] * fit[_W, c]
        fit[_X, c] = 0.0
    nu = (wz - 1.0) / ww
    for c in range(used):
        fit[_WORK, c] = fit[_Z, c] - nu * fit[_W, c]
    more = (_add_solved(space, used) - 1.0) / ww
    for c in range(used):
        fit[_WORK, c] = -more * fit[_W, c]
    _add_solved(space, used)
    return nu + more


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _add_solved(space, used):  # type: ignore[no-untyped-def]
    """Adds L^-T `fit[_WORK]`, which it overwrites, to `fit[_X]`; returns the sum of that."""
    fit, lower = space.fit, space.lower
    total = 0.0
    for c in range(used - 1, -1, -1):
        x = fit[_WORK, c] / lower[c, c]
        fit[_X, c] += x
        total += fit[_X, c]
        for e in range(c):
            fit[_WORK, e] -= lower[c, e] * x
    return total


# --- arithmetic -------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _residual(query, pool, space, used, out):  # type: ignore[no-untyped-def]
    """q - sum(alpha m), in the precision of `out`."""
    memories, members, weights = pool.memories, space.members, space.weights
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
def _dots32(a, b, c, d, vector):  # type: ignore[no-untyped-def]
    s, t, u, v = np.float32(0.0), np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for e in range(vector.shape[0]):
        x = vector[e]
        s += a[e] * x
        t += b[e] * x
        u += c[e] * x
        v += d[e] * x
    return s, t, u, v


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _measure_and_fetch(row, query, following):  # type: ignore[no-untyped-def]
    """`_measure`; meanwhile half of the row to be read next is fetched: else memory would rest while this computes."""
    product, square, bits = np.float32(0.0), np.float32(0.0), np.int32(0)
    for start in range(0, row.shape[0], _BLOCK):
        end = min(start + _BLOCK, row.shape[0])
        for c in range(start, (start + end) // 2, 16):
            _fetch(following, c)
        more, squares, largest = _measure(row[start:end], query[start:end])
        product += more
        square += squares
        bits = max(bits, largest)
    return product, square, np.int32(bits)


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _copy_and_fetch(row, bits, out, following):  # type: ignore[no-untyped-def]
    """`row` in 8 bits: `out` times the value returned, each entry off by at most `_HALF` of it; fetches the rest."""
    factor, unit = _grid(bits, 127.0)
    for start in range(0, row.shape[0], _BLOCK):
        end = min(start + _BLOCK, row.shape[0])
        for c in range((start + end) // 2, end, 16):
            _fetch(following, c)
        _integers(row[start:end], factor, out[start:end])
    return unit


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _shorten(row, out):  # type: ignore[no-untyped-def]
    """The same in as many of 16 bits as products with a copy can have without overflow; then zeros."""
    most = min(32767.0, math.floor((2.0**31 - 1.0) / (128.0 * out.shape[0])))
    factor, unit = _grid(_measure(row, row)[2], most)
    _integers(row, factor, out)
    for c in range(row.shape[0], out.shape[0]):
        out[c] = 0
    return unit


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy")
def _grid(bits, most):  # type: ignore[no-untyped-def]
    """(factor, unit) from a vector whose largest magnitude has these bits to integers up to `most`, and back."""
    peak = np.float64(np.int32(bits).view(np.float32))
    if peak < _TINY:
        return np.float32(0.0), 2.0 * peak
    return np.float32(most / peak), peak / most


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy", fastmath={"contract"})
def _integers(row, factor, out):  # type: ignore[no-untyped-def]
    """The multiples, rounded; none is beyond the bounds of `out`."""
    whole = row.shape[0] // LANES * LANES
    for c in range(0, whole, LANES):
        _round(row, factor, out, c)
    for c in range(whole, row.shape[0]):
        out[c] = out.dtype.type(np.float32(row[c] * factor + np.float32(_INTEGER)).view(np.int32))


@intrinsic
def _round(context, row, factor, out, start):  # type: ignore[no-untyped-def]
    """`_integers` of the `LANES` entries from `start`, at once: told singly, they are packed eight at a time."""
    return types.void(row, factor, out, start), _emit_round


def _emit_round(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    row, out = (context.make_array(signature.args[n])(context, builder, arguments[n]) for n in (0, 2))
    start = context.cast(builder, arguments[3], signature.args[3], types.intp)
    real, word = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(ir.IntType(32), LANES)
    whole = ir.VectorType(ir.IntType(signature.args[2].dtype.bitwidth), LANES)
    lanes = builder.insert_element(ir.Constant(real, ir.Undefined), arguments[1], ir.Constant(ir.IntType(32), 0))
    factors = builder.shuffle_vector(lanes, ir.Constant(real, ir.Undefined), ir.Constant(word, [0] * LANES))
    held = builder.load(builder.bitcast(builder.gep(row.data, [start]), real.as_pointer()), align=4)
    shift = ir.Constant(real, [_INTEGER] * LANES)
    shifted = builder.fadd(builder.fmul(held, factors, flags=["contract"]), shift, flags=["contract"])
    integers = builder.trunc(builder.bitcast(shifted, word), whole)
    builder.store(integers, builder.bitcast(builder.gep(out.data, [start]), whole.as_pointer()), align=1)
    return context.get_dummy_value()


@intrinsic
def _fetch(context, row, place):  # type: ignore[no-untyped-def]
    """Asks for `row[place]` to be brought into cache; 16 float32 come at a time."""
    return types.void(row, place), _emit_fetch


def _emit_fetch(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    row = context.make_array(signature.args[0])(context, builder, arguments[0])
    place = context.cast(builder, arguments[1], signature.args[1], types.intp)
    flag, address = ir.IntType(32), builder.bitcast(builder.gep(row.data, [place]), ir.IntType(8).as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [address.type, flag, flag, flag])
    fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(fetch, [address, flag(0), flag(3), flag(1)])  # to read, to keep, data
    return context.get_dummy_value()


@intrinsic
def _products(context, coarse, i, j, k, m, short):  # type: ignore[no-untyped-def]
    """Products of the rows i, j, k and m of `coarse` with `short`: four int32.

    Written in LLVM's language because its vectoriser does not find the instruction that x86 and ARM have for this,
    multiply and add pairs; from pairs that are told, every machine makes the best that it has.
    """
    signature = types.UniTuple(types.int32, 4)(coarse, i, j, k, m, short)
    return signature, _emit_products


def _emit_products(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    word, lane = ir.IntType(64), ir.IntType(32)
    full, half = ir.VectorType(lane, LANES), ir.VectorType(lane, LANES // 2)
    even, odd = (ir.Constant(half, list(range(first, LANES, 2))) for first in (0, 1))
    copies, vector = (
        context.make_array(signature.args[n])(context, builder, arguments[n]) for n in (0, len(arguments) - 1)
    )
    width = builder.extract_value(vector.shape, 0)
    rows = [
        builder.gep(
            copies.data, [builder.mul(context.cast(builder, arguments[n], signature.args[n], types.intp), width)]
        )
        for n in range(1, 5)
    ]
    totals = [cgutils.alloca_once_value(builder, ir.Constant(half, [0] * (LANES // 2))) for _ in rows]

    def entries(start, at, bits):  # type: ignore[no-untyped-def]
        held = ir.VectorType(ir.IntType(bits), LANES).as_pointer()
        return builder.sext(builder.load(builder.bitcast(builder.gep(start, [at]), held), align=1), full)

    steps = cgutils.for_range_slice(builder, ir.Constant(word, 0), width, ir.Constant(word, LANES))
    with steps as (at, _):
        factors = entries(vector.data, at, 16)  # type: ignore[no-untyped-call]
        for row, total in zip(rows, totals, strict=True):
            products = builder.mul(entries(row, at, 8), factors)  # type: ignore[no-untyped-call]
            pairs = [builder.shuffle_vector(products, ir.Constant(full, ir.Undefined), mask) for mask in (even, odd)]
            builder.store(builder.add(builder.load(total), builder.add(*pairs)), total)
    name = f"llvm.vector.reduce.add.v{LANES // 2}i32"
    add = cgutils.get_or_insert_function(builder.module, ir.FunctionType(lane, [half]), name)
    return context.make_tuple(
        builder, signature.return_type, [builder.call(add, [builder.load(total)]) for total in totals]
    )


@njit(cache=True, nogil=True, _nrt=False, error_model="numpy", fastmath=_REASSOCIATE)
def _measure(row, query):  # type: ignore[no-untyped-def]
    """(product with the query, squared norm, bits of the largest magnitude: these sort as their floats do)."""
    product, square, peak = np.float32(0.0), np.float32(0.0), np.int32(0)
    for c in range(query.shape[0]):
        x = np.float32(row[c])
        product += x * query[c]
        square += x * x
        peak = max(peak, np.int32(x.view(np.int32) & np.int32(_UNSIGNED)))
    return product, square, np.int32(peak)


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

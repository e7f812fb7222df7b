"""Which formal concepts, maximal intents and minimum covers does a context have?

A context is its objects' rows: (n,) int64, bit j set where the object has attribute j, for at most 62 attributes.
Sources: Ganter & Wille, Formal Concept Analysis, 1999 (closures, clarification); Ganter, Two Basic Algorithms in
Concept Analysis, 1984 (NextClosure).
"""

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from readers.types import Floats

WIDEST = 62
"""Attributes that a row holds."""
DEEPEST = 10
"""Attributes up to which a minimum cover is searched for: the search takes n·3^J steps."""

Rows = NDArray[np.int64]


def context(incidence: NDArray[np.bool_]) -> Rows:
    """(n,) rows of a context from `incidence` (attributes, n). Raises `ValueError` beyond 62 attributes."""
    width, size = incidence.shape
    _check(width)
    rows = np.zeros(size, np.int64)
    for attribute in range(width):
        rows |= incidence[attribute].astype(np.int64) << attribute
    return rows


def intents(rows: Rows, width: int) -> Rows:
    """Every intent over `width` attributes, in lectic order: from the attributes of all objects to all attributes.

    Raises `ValueError` beyond 62 attributes.
    """
    _check(width)
    found: Rows = _next_closures(np.unique(np.asarray(rows, np.int64)), width)
    return found


def concepts(rows: Rows, width: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(extent, intent) of every formal concept as places of objects and of attributes, intents in lectic order."""
    return [(_extent(rows, int(intent)), members(int(intent))) for intent in intents(rows, width)]


def clarified(rows: Rows, worth: Floats) -> list[int]:
    """One object of each distinct row but the empty one: the one of the most `worth` (n,), ties to the lower place.

    In the order of their places.
    """
    best: dict[int, int] = {}
    for place, row in enumerate(rows.tolist()):
        if row and (row not in best or worth[place] > worth[best[row]]):
            best[row] = place
    return sorted(best.values())


def maximal(rows: Rows, among: Sequence[int]) -> list[int]:
    """Those `among` whose row is contained in no other row: the object concepts that are minimal in the lattice.

    Replacing an object of a cover by one whose row contains its own leaves a cover of no greater size, so some minimum
    cover consists of these alone. There are at most C(J, J // 2) distinct ones.
    """
    held = [int(rows[place]) for place in among]
    return [
        place
        for place, row in zip(among, held, strict=True)
        if not any(row & other == row and row != other for other in held)
    ]


def minimum_cover(rows: Rows, strength: Floats) -> list[int]:
    """The fewest objects that together have every attribute that any object has, ascending.

    `strength`: (attributes, n) finite, > 0 where the object has the attribute. Of equally small covers the one with the
    greatest sum over attributes of the best strength among its members that have the attribute; ties to the lower
    places. Exact, by a dynamic programme over subsets of attributes. Raises `ValueError` beyond 10 attributes or if the
    shapes differ.
    """
    width = len(strength)
    if width > DEEPEST:
        raise ValueError(f"at most {DEEPEST} attributes expected, {width} found; use greedy_cover")
    _check_shape(rows, strength)
    picks = _smallest(np.asarray(rows, np.int64), np.ascontiguousarray(strength, np.float64))
    return sorted(picks.tolist())


def greedy_cover(rows: Rows, strength: Floats, most: int) -> list[int]:
    """At most `most` objects, each taken for the greatest sum of `strength` over attributes not yet held.

    In the order of entry, ties to the lower place. Raises `ValueError` if the shapes differ.
    """
    _check_shape(rows, strength)
    gains = np.where(_bits(rows, len(strength)), strength, 0.0)
    chosen: list[int] = []
    while len(chosen) < most and gains.size and gains.any():
        place = int(np.argmax(np.round(gains.sum(axis=0), 12)))
        chosen.append(place)
        gains = np.where(_bits(rows[place : place + 1], len(strength)), 0.0, gains)
    return chosen


def members(row: int) -> tuple[int, ...]:
    """The attributes of a row, ascending."""
    return tuple(bit for bit in range(row.bit_length()) if row >> bit & 1)


def _extent(rows: Rows, intent: int) -> tuple[int, ...]:
    return tuple(np.flatnonzero(rows & intent == intent).tolist())


def _bits(rows: Rows, width: int) -> NDArray[np.bool_]:
    """(width, n): whether the object has the attribute."""
    held: NDArray[np.bool_] = (rows[None] >> np.arange(width)[:, None] & 1).astype(bool)
    return held


def _check(width: int) -> None:
    if width > WIDEST:
        raise ValueError(f"at most {WIDEST} attributes expected, {width} found")


def _check_shape(rows: Rows, strength: Floats) -> None:
    if strength.ndim != 2 or strength.shape[1] != len(rows):
        raise ValueError(f"strength {strength.shape} must be (attributes, {len(rows)})")


@njit(cache=True, nogil=True)
def _next_closures(rows, width):  # type: ignore[no-untyped-def]
    everything = (np.int64(1) << width) - 1
    intent = everything
    for row in rows:
        intent &= row
    found = np.empty(64, np.int64)
    count = 0
    while True:
        if count == len(found):
            grown = np.empty(2 * count, np.int64)
            grown[:count] = found
            found = grown
        found[count] = intent
        count += 1
        if intent == everything:
            return found[:count].copy()
        for i in range(width - 1, -1, -1):
            bit = np.int64(1) << i
            if intent & bit:
                continue
            seed = (intent & (bit - 1)) | bit
            closed = everything
            for row in rows:
                if row & seed == seed:
                    closed &= row
            if closed & (bit - 1) == intent & (bit - 1):
                intent = closed
                break


@njit(cache=True, nogil=True)
def _smallest(rows, strength):  # type: ignore[no-untyped-def]
    size = len(rows)
    full = 0
    for row in rows:
        full |= row
    worth = np.zeros((size, full + 1))
    for mask in range(1, full + 1):
        low = mask & -mask
        j = 0
        while low >> j != 1:
            j += 1
        for place in range(size):
            worth[place, mask] = worth[place, mask ^ low] + strength[j, place]
    fewest = np.zeros(full + 1, np.int64)
    best = np.zeros(full + 1)
    pick = np.full(full + 1, -1)
    part = np.zeros(full + 1, np.int64)
    for mask in range(1, full + 1):
        if mask & ~full:
            continue
        low = mask & -mask
        for place in range(size):
            if not rows[place] & low:
                continue
            rest = (rows[place] & mask) ^ low
            extra = rest
            while True:
                # The attributes that this object answers for: always the lowest open one, so each cover is met once.
                taken = extra | low
                left = mask ^ taken
                count = fewest[left] + 1
                value = best[left] + worth[place, taken]
                if pick[mask] < 0 or count < fewest[mask] or (count == fewest[mask] and value > best[mask] + 1e-12):
                    fewest[mask], best[mask], pick[mask], part[mask] = count, value, place, taken
                if extra == 0:
                    break
                extra = (extra - 1) & rest
    chosen = np.empty(fewest[full], np.int64)
    mask = full
    for step in range(len(chosen)):
        chosen[step] = pick[mask]
        mask ^= part[mask]
    return chosen

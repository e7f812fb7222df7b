"""Which packets of neighbouring turns fit a token budget best?"""

import re
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from readers.locality import better_of_session, unit_range
from readers.types import Access, Budget, Evidence, Floats, Ints, Note, Pool, Query, selected
from readers.words import distinct, names

Bools = NDArray[np.bool_]
Scores = NDArray[np.float64]
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MONTH = re.compile(rf"\b(?:(\d{{1,2}})(?:st|nd|rd|th)? )?({'|'.join(_MONTHS)})\b(?: (\d{{1,2}})\b)?", re.I)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


@dataclass(frozen=True)
class MemcompileFlat:
    """Packets of a hit and its two neighbours, taken by relevance + coverage - redundancy.

    All of it is inferred, for MemCompile has published an abstract only. A packet is a candidate with the candidates
    one turn before and after it in its session. Three keys address it by its hit: text (the native rank), speaker and
    names (how many of the question's names it holds or is spoken by), date (day, month and year of the question that
    are its own); reciprocal ranks 1 / (`smooth` + rank) are added over the keys that match at all, min-max makes them
    relevance. A cell holds the `cell` best packets of a session. A requirement is a content word of the question that
    at most half of the pool holds, weighted ln(1 + P / df); coverage is the share of their weight that a packet is the
    first to hold, times `coverage`; redundancy is its hit's largest cosine with the hits before it, times
    `redundancy`. The value, at least 0, is divided by the packet's tokens to the power `cost`: 1 is the greedy
    per token that a knapsack suggests, 0 ignores length. The default is 0, because a ratio prefers the shortest turns
    until the budget holds most of the pool (LoCoMo, complete evidence at 10: 17.8 with 1, 58.7 with 0). A packet gives
    its hit, then those of its `neighbours` that hold a requirement. After the packets comes the pool in its own order.
    `tokens` bounds the evidence besides the budget's own bound.
    Sentences are not cut out of turns: evidence is whole records, which the answerer is shown oldest first.
    Values within 1e-12 go to the lower native rank; spoilt vectors come last. Neighbours outside the pool are not
    read. Raises `ValueError` for a negative parameter.
    """

    tokens: int = 2000
    cell: int = 32
    neighbours: int = 2
    smooth: int = 60
    coverage: float = 0.5
    redundancy: float = 0.5
    cost: float = 0.0

    title: ClassVar[str] = "Packets of turns by relevance and new coverage"
    source: ClassVar[str] = "MemCompile (abstract only); the policy is this project's reading of it"

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not value >= 0:
                raise ValueError(f"{name} ({value}) must be at least 0")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        bound = self.tokens if budget.tokens is None else min(self.tokens, budget.tokens)
        within = replace(budget, tokens=bound)
        usable = np.isfinite(pool.vectors).all(axis=1)
        notes = access.notes(pool.ids)
        relevance = unit_range(addressed(query.text, pool, notes, self.smooth))
        holds, weights = requirements(query.text, notes)
        eligible = usable & in_cell(relevance, pool, self.cell)
        members = packets(pool, eligible & holds.any(axis=1), self.neighbours)
        order = self._greedy(relevance, holds, weights, eligible, members, pool, within.most(pool))
        order |= dict.fromkeys([*np.flatnonzero(usable).tolist(), *np.flatnonzero(~usable).tolist()])
        return selected(pool, np.fromiter(order, np.intp, len(order)), within)

    def _greedy(
        self, relevance: Scores, holds: Bools, weights: Scores, eligible: Bools, members: Ints, pool: Pool, most: int
    ) -> dict[int, None]:
        """Indices of at least min(`most`, all eligible) records, packet after packet."""
        none = np.zeros((1, holds.shape[1]), np.bool_)
        packed: Scores = np.asarray(np.vstack([holds, none])[members].any(axis=1), np.float64)
        length = np.append(pool.tokens, 0)[members].sum(axis=1)
        price = np.maximum(length, 1).astype(np.float64) ** self.cost
        rows = pool.vectors.astype(np.float64)
        rows[~eligible] = 0.0
        nearest = np.zeros(len(pool))
        free, missing = eligible.copy(), self.coverage * weights
        taken: dict[int, None] = {}
        while len(taken) < most and free.any():
            value = np.maximum(relevance + packed @ missing - nearest, 0.0) / price
            value[~free] = -np.inf
            place = int((value >= value.max() - 1e-12).argmax())
            packet = members[place, members[place] < len(pool)]
            taken |= dict.fromkeys(packet.tolist())
            free[packet] = False
            missing = missing * (1.0 - packed[place])
            nearest = np.maximum(nearest, self.redundancy * (rows @ rows[place]))
        return taken


def addressed(question: str, pool: Pool, notes: tuple[Note, ...], smooth: int) -> Scores:
    """(n,) sums of reciprocal ranks over the keys text, speaker with names, and date; equal matches rank natively."""
    asked = frozenset(names(question))
    named = [len(asked & distinct(note.text)) + bool(asked & distinct(note.speaker)) for note in notes]
    total = np.zeros(len(pool))
    keys = (np.arange(len(pool), 0, -1), np.array(named, np.int64), dated(question, pool.times))
    for matches in keys:
        order = np.argsort(-matches, kind="stable")
        found = order[: int((matches > 0).sum())]
        total[found] += 1.0 / (smooth + 1 + np.arange(len(found)))
    return total


def dated(question: str, times: Floats) -> NDArray[np.int64]:
    """(n,) how many of the question's years, months and days of a month are those of `times` (seconds)."""
    known = np.isfinite(times)
    days = np.where(known, times, 0.0).astype("datetime64[s]").astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    year = months.astype("datetime64[Y]").astype(np.int64) + 1970
    month = months.astype(np.int64) % 12
    day = (days - months).astype(np.int64) + 1
    found = np.zeros(len(times), np.int64)
    for text in dict.fromkeys(_YEAR.findall(question)):
        found += year == int(text)
    for before, name, after in dict.fromkeys(_MONTH.findall(question)):
        said = month == _MONTHS.index(name.lower())
        found += said
        if before or after:
            found += said & (day == int(before or after))
    return np.where(known, found, 0)


def requirements(question: str, notes: tuple[Note, ...]) -> tuple[Bools, Scores]:
    """(n, r) which notes hold which telling words of the question, and (r,) the words' weights, which sum to 1."""
    asked = sorted(distinct(question))
    bags = [distinct(note.text) for note in notes]
    holds = np.array([[word in bag for word in asked] for bag in bags], np.bool_).reshape(len(notes), len(asked))
    frequency = holds.sum(axis=0)
    telling = (frequency > 0) & (2 * frequency <= len(notes))
    weights = np.log1p(len(notes) / np.maximum(frequency[telling], 1))
    return holds[:, telling], weights / max(weights.sum(), 1e-12)


def in_cell(relevance: Scores, pool: Pool, cell: int) -> Bools:
    """(n,) whether a packet is among the `cell` most relevant of its session."""
    return better_of_session(relevance, pool.sessions) < cell


def packets(pool: Pool, supporting: Bools, most: int) -> Ints:
    """(n, 3) each record, then those of the turns before and after it in its session that are `supporting`.

    At most `most` of them; n stands for none.
    """
    none = len(pool)
    members = np.full((none, 3), none, np.intp)
    members[:, 0] = np.arange(none)
    if none:
        at = pool.positions.astype(np.intp) + 1
        held = np.full(at.max() + 2, none, np.intp)
        held[at] = members[:, 0]
        pairs = np.stack([held[at - 1], held[at + 1]], axis=1)
        beside = np.append(supporting, False)[pairs]
        beside &= np.append(pool.sessions, -1)[pairs] == pool.sessions[:, None]
        beside &= beside.cumsum(axis=1) <= most
        members[:, 1:] = np.where(beside, pairs, none)
    return members

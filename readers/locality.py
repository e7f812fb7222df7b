"""Which records matter, given what stands beside them?"""

import math
from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from readers.ranking import descending
from readers.types import Access, Budget, Evidence, Floats, Ints, Pool, Query, selected
from readers.words import content

Scores = NDArray[np.float64]
_K1, _B = 1.2, 0.75


@dataclass(frozen=True)
class Locality:
    """The pool by h + rho · beside + sigma · session + epsilon · named - delta · (better ones of its session).

    h: the native score, min-max over the pool, so that weights mean the same for every fusion and a neighbour outside
    the pool, which scores no more than the pool's last, counts 0. beside: the largest h among the turns one away in
    the same session, or `gamma` times that among those two away. session: the session's BM25 with the question
    (k1 1.2, b .75, words without stems), min-max over the conversation's sessions. named: 1 where exactly one of the
    conversation's speakers is named in the question, by the first word of the name, and spoke the record. With
    `delta` each record is taken with regard to those before it: the n-th of a session pays n - 1 times.
    Evidence stays in the pool, `calls` at 0. Ties go to the native rank; a score that is NaN comes last.
    Defaults are the part that held on LoCoMo and BEAM and did no harm on LongMemEval: `rho` .5, first ring alone.
    `sigma` helps on LoCoMo and hurts on both others, so it is off. Inferred, as the known figures do not say: min-max
    over the pool (raw scores gain less: without it a turn whose neighbours are no candidates pays for that) and that
    the penalty counts records, not shares. Raises `ValueError` for a negative or non-finite weight.
    """

    rho: float = 0.5
    gamma: float = 0.0
    sigma: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0

    title: ClassVar[str] = "The fused ranking, raised by what was said just before and after"
    source: ClassVar[str] = "this project"

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value < math.inf:
                raise ValueError(f"{name} ({value}) must be at least 0 and finite")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        scores = unit_range(pool.native)
        scores = scores + self.rho * beside(scores, pool.positions, pool.sessions, self.gamma)
        if self.sigma and len(pool):
            scores += self.sigma * session_scores(query.text, pool, access)
        if self.epsilon and len(pool):
            scores += self.epsilon * spoken_by_the_named(query.text, pool, access)
        if self.delta:
            scores -= self.delta * better_of_session(scores, pool.sessions)
        return selected(pool, descending(scores), budget)


def unit_range(scores: Floats) -> Scores:
    """`scores` (n,) scaled to [0, 1] over the finite ones; 0 where those are equal, NaN where not finite."""
    scaled = np.full(len(scores), np.nan)
    known = np.isfinite(scores)
    if known.any():
        low, high = scores[known].min(), scores[known].max()
        scaled[known] = (scores[known] - low) / (high - low) if high > low else 0.0
    return scaled


def beside(scores: Scores, positions: Ints, sessions: Ints, gamma: float) -> Scores:
    """(n,) the largest score among the same session's turns one place away, or `gamma` times it two places away.

    `scores`: (n,) in [0, 1]; NaN counts 0, as does a turn that is not there. `positions`: (n,) at least 0, distinct.
    """
    raised = np.nan_to_num(scores)
    best = np.zeros(len(scores))
    for step, weight in ((-1, 1.0), (1, 1.0), (-2, gamma), (2, gamma)):
        best = np.maximum(best, weight * at_step(raised, positions, sessions, step))
    return best


def at_step(scores: Scores, positions: Ints, sessions: Ints, step: int) -> Scores:
    """(n,) the score `step` places later in the same session (earlier where negative), 0 where none is scored.

    `scores`: (n,) finite. `positions`: (n,) at least 0, distinct.
    """
    if not len(scores):
        return scores
    reach = abs(step)
    at = positions.astype(np.intp) + reach
    held = np.zeros(at.max() + reach + 1)
    held[at] = scores
    session = np.full(len(held), -1, np.int64)
    session[at] = sessions
    return np.where(session[at + step] == sessions, held[at + step], 0.0)


def better_of_session(scores: Scores, sessions: Ints) -> Ints:
    """(n,) how many of its session score better than a record: the places a greedy choice takes before it.

    A penalty a record lowers all that remain of a session alike, so their order stays, and one sort is the greedy.
    """
    best_first = descending(scores)
    by_session = best_first[np.argsort(sessions[best_first], kind="stable")]
    grouped = sessions[by_session]
    before = np.empty(len(scores), np.int64)
    before[by_session] = np.arange(len(scores)) - np.searchsorted(grouped, grouped)
    return before


def session_scores(question: str, pool: Pool, access: Access) -> Scores:
    """(n,) BM25 of each record's session with the question, min-max over the conversation's sessions."""
    notes = access.notes(access.everything()[0])
    index = _sessions(tuple(note.text for note in notes), tuple(note.session for note in notes))
    scores = unit_range(index.scores(question))
    return scores[[index.rows[note.session] for note in access.notes(pool.ids)]]


def spoken_by_the_named(question: str, pool: Pool, access: Access) -> Scores:
    """(n,) 1 where a record's speaker is the only one of the conversation whom the question names, else 0."""
    asked = set(content(question))
    speakers = {note.speaker for note in access.notes(access.everything()[0])}
    named = {speaker for speaker in speakers if asked.intersection(content(speaker)[:1])}
    return np.array([len(named) == 1 and note.speaker in named for note in access.notes(pool.ids)], np.float64)


class SessionIndex:
    """A conversation's sessions as bags of words. `rows`: session → its place in `scores`."""

    def __init__(self, texts: tuple[str, ...], sessions: tuple[Hashable, ...]) -> None:
        self.rows = {session: row for row, session in enumerate(dict.fromkeys(sessions))}
        self._counts: dict[str, Scores] = defaultdict(lambda: np.zeros(len(self.rows)))
        lengths = np.zeros(len(self.rows))
        for text, session in zip(texts, sessions, strict=True):
            for word in content(text):
                self._counts[word][self.rows[session]] += 1
            lengths[self.rows[session]] += len(content(text))
        self._norm = _K1 * (1 - _B + _B * lengths / max(lengths.mean(), 1.0))

    def scores(self, question: str) -> Scores:
        """(sessions,) BM25 with idf ln(1 + (N - df + .5) / (df + .5)), each word of the question once."""
        total = np.zeros(len(self.rows))
        for word in dict.fromkeys(content(question)):
            if word in self._counts:
                counts = self._counts[word]
                frequency = int((counts > 0).sum())
                weight = math.log1p((len(counts) - frequency + 0.5) / (frequency + 0.5))
                total += weight * counts * (_K1 + 1) / (counts + self._norm)
        return total


# A conversation is counted once for all its questions: texts keep their hashes, so that finding it again is cheap.
@lru_cache(maxsize=16)
def _sessions(texts: tuple[str, ...], sessions: tuple[int, ...]) -> SessionIndex:
    return SessionIndex(texts, sessions)

"""Which records answer a question."""

import heapq
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from storage.records import Record
from tasks.answerers.asked import Asked
from tasks.answerers.reading import Read

# Weights, in units of one new content word.
NAME_WEIGHT = 5.0  # the record's speaker is named in the question
MENTION_SHARE = 0.1  # ... of it, where the record only speaks of who is named
DATE_WEIGHT = 2.0  # the record was said on a date that the question names
REPLY_SHARE = 0.6  # of the score of the question that the record replies to
RANKED = 8
"""How many records are kept; a list joins no more."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A record with its score; `coverage`: the share of the question's weight that the record holds, in [0, 1]."""

    read: Read
    score: float
    coverage: float


def ranked(asked: Asked, reads: Sequence[Read]) -> list[Ranked]:
    """The best records, at most `RANKED`, best first; equal scores keep their order."""
    shared = [asked.terms & read.terms for read in reads]
    weights = _weights(asked.terms, shared)
    total = math.fsum(weights.values()) + (NAME_WEIGHT if asked.names else 0.0)
    held = [math.fsum([weights[term] for term in found]) if found else 0.0 for found in shared]
    if asked.names:
        held = [score + _name_score(asked, read) for score, read in zip(held, reads, strict=True)]
    scores = _scores(asked, reads, held)
    best = heapq.nlargest(RANKED, range(len(reads)), key=scores.__getitem__)
    return [Ranked(reads[at], scores[at], held[at] / total if total else 0.0) for at in best]


def _scores(asked: Asked, reads: Sequence[Read], held: Sequence[float]) -> list[float]:
    """What each record holds, with what its date and the question before it add."""
    scores = list(held)
    if asked.times:
        scores = [score + DATE_WEIGHT * read.said_in(asked.times) for score, read in zip(held, reads, strict=True)]
    for at in range(1, len(reads)):
        if scores[at - 1] and reads[at - 1].asks and _follows(reads[at].record, reads[at - 1].record):
            scores[at] += REPLY_SHARE * scores[at - 1]
    return scores


def _weights(asked: frozenset[str], shared: Sequence[frozenset[str]]) -> dict[str, float]:
    """Each term's BM25 inverse document frequency among the evidence records.

    Sums over them are exact (`fsum`), for the order of a set changes from process to process.
    """
    held = Counter(chain.from_iterable(shared))
    n = len(shared)
    return {term: math.log(1 + (n - held[term] + 0.5) / (held[term] + 0.5)) for term in asked}


def _name_score(asked: Asked, read: Read) -> float:
    if not asked.names.isdisjoint(read.speaker):
        return NAME_WEIGHT
    return 0.0 if asked.names.isdisjoint(read.terms) else NAME_WEIGHT * MENTION_SHARE


def _follows(this: Record, last: Record) -> bool:
    """Whether `this` is the turn right after `last`."""
    return this.position == last.position + 1 and this.session_id == last.session_id

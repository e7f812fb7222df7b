"""Which records are a question's candidates: dense cosine and BM25, fused."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tasks.mem0 import EntityIndex, FixedLexicon, Mem0, calibrated
from tasks.text import terms, tokens

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class MinMax:
    """Weighted sum of scores scaled to [0, 1] over the conversation: `weight` on dense, the rest on BM25."""

    title: ClassVar[str] = "weighted min-max"

    weight: float = 0.5

    def fuse(self, dense: Scores, lexical: Scores) -> Scores:
        """(n,) fused scores, higher is better."""
        return self.weight * _scaled(dense) + (1.0 - self.weight) * _scaled(lexical)


@dataclass(frozen=True)
class ReciprocalRank:
    """Reciprocal rank fusion: sum of 1 / (k + rank), ranks from 1. Source: Cormack, Clarke & Büttcher 2009."""

    title: ClassVar[str] = "reciprocal rank fusion"

    k: int = 60

    def fuse(self, dense: Scores, lexical: Scores) -> Scores:
        """(n,) fused scores, higher is better; equal scores rank in the order of the records."""
        return 1.0 / (self.k + _ranks(dense)) + 1.0 / (self.k + _ranks(lexical))


FUSIONS: dict[str, type[Any]] = {
    "minmax": MinMax,
    "rrf": ReciprocalRank,
    "mem0": Mem0,
}


@dataclass(frozen=True)
class Candidates:
    """One question's pool: `rows` index the conversation's records in native rank order; scores align with them.

    `boost`: what entities add, None for a fusion that knows none.
    """

    rows: NDArray[np.intp]
    native: Scores
    dense: Scores
    lexical: Scores
    boost: Scores | None = None


class Lexicon:
    """BM25 over one conversation's records (Porter stems, no stop words), with the conversation's own statistics.

    The terms of a text are counted once a process, however many conversations hold it.
    """

    def __init__(self, texts: Sequence[str], *, k1: float = 1.2, b: float = 0.75) -> None:
        bags = [_bag(text) for text in texts]
        self._size = len(bags)
        self._rows = np.repeat(np.arange(len(bags)), [len(bag.terms) for bag in bags])
        self._terms = np.concatenate([bag.terms for bag in bags]) if bags else np.zeros(0, np.int64)
        self._counts = np.concatenate([bag.counts for bag in bags]) if bags else np.zeros(0)
        lengths = np.array([bag.length for bag in bags], np.float64)
        held = np.bincount(self._terms)
        with np.errstate(divide="ignore", invalid="ignore"):
            self._idf = np.where(held > 0, np.log(self._size - held + 0.5) - np.log(held + 0.5), 0.0)
            self._norms = k1 * (1 - b + b * lengths / lengths.mean()) if len(bags) else lengths
        # Terms are numbered in the order in which a process met them: an exact sum does not depend on it.
        self._floor = 0.25 * math.fsum(self._idf) / max(1, int((held > 0).sum()))
        self._k1 = k1

    def scores(self, question: str) -> Scores:
        """(n,) BM25 of each record; a term that most records hold counts little, never against them.

        Source: Okapi as rank-bm25 has it, which floors a negative idf at a quarter of the mean idf.
        """
        scores = np.zeros(self._size)
        for term in _known(terms(question)):
            at = np.flatnonzero(self._terms == term)
            if len(at):
                idf = self._idf[term] if self._idf[term] >= 0 else self._floor
                rows, counts = self._rows[at], self._counts[at]
                scores[rows] += idf * (counts * (self._k1 + 1) / (counts + self._norms[rows]))
        return scores


@dataclass(frozen=True, slots=True)
class _Bag:
    """The distinct terms of a text by number, how often each occurs, and how many occur in all."""

    terms: NDArray[np.int64]
    counts: Scores
    length: int


_NUMBERS: dict[str, int] = {}
_WORDS: dict[str, int] = {}
_NUMBERING = Lock()


@lru_cache(maxsize=1 << 17)
def _bag(text: str) -> _Bag:
    counts: dict[int, int] = {}
    for word, count in Counter(tokens(text)).items():
        number = _WORDS.get(word)
        if number is None:
            number = _numbered(word)
        if number >= 0:
            counts[number] = counts.get(number, 0) + count
    numbers, held = np.fromiter(counts, np.int64, len(counts)), np.fromiter(counts.values(), np.float64, len(counts))
    return _Bag(numbers, held, sum(counts.values()))


def _numbered(word: str) -> int:
    """The number of a word's term, -1 of a stop word."""
    with _NUMBERING:
        found = [_NUMBERS.setdefault(term, len(_NUMBERS)) for term in terms(word)]
        number = _WORDS[word] = found[0] if found else -1
    return number


def _known(question: Sequence[str]) -> list[int]:
    return [_NUMBERS[term] for term in question if term in _NUMBERS]


def candidates(
    vectors: NDArray[np.float32],
    query: NDArray[np.float32],
    lexical: Scores,
    size: int,
    fusion: MinMax | ReciprocalRank,
) -> Candidates:
    """The `size` best of one conversation's records. Ties go to the earlier record.

    `vectors`: (n, d) unit rows; `query`: (d,); `lexical`: (n,). Raises `ValueError` if lengths differ.
    """
    if len(vectors) != len(lexical):
        raise ValueError(f"vectors ({len(vectors)}) must match lexical scores ({len(lexical)})")
    dense = _cosines(vectors, query)
    native = fusion.fuse(dense, lexical)
    rows = _best(native, size)
    return Candidates(rows, native[rows], dense[rows], lexical[rows])


class Haystack:
    """One conversation's records as the questions of a store search them, by the store's fusion.

    `texts` and `vectors` (n, d) align; `embed`: texts to unit rows, by the store's encoder.
    """

    def __init__(
        self,
        texts: Sequence[str],
        vectors: NDArray[np.float32],
        fusion: MinMax | ReciprocalRank | Mem0,
        embed: Callable[[Sequence[str]], NDArray[np.float32]],
    ) -> None:
        self._vectors, self._fusion = vectors, fusion
        self._lexicon = FixedLexicon(texts) if isinstance(fusion, Mem0) else Lexicon(texts)
        self._entities = EntityIndex(texts if isinstance(fusion, Mem0) else [], embed)

    def pool(self, question: str, query: NDArray[np.float32], size: int) -> Candidates:
        """The `size` best records. Ties go to the earlier record."""
        lexical = self._lexicon.scores(question)
        if not isinstance(self._fusion, Mem0):
            return candidates(self._vectors, query, lexical, size, self._fusion)
        dense = _cosines(self._vectors, query)
        boost = self._entities.boosts(question, self._fusion.boost)
        native = self._fusion.fuse(dense, calibrated(lexical, question), boost, size)
        rows = _best(native, size)
        return Candidates(rows, native[rows], dense[rows], lexical[rows], boost[rows])


def _cosines(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> Scores:
    if not len(vectors):
        return np.zeros(0)
    return np.asarray(np.einsum("nd,d->n", vectors.astype(np.float64), query.astype(np.float64)))


def _best(native: Scores, size: int) -> NDArray[np.intp]:
    """The `size` best that are candidates at all, ties in order."""
    rows = np.argsort(-native, kind="stable")[:size]
    return rows[np.isfinite(native[rows])]


def _scaled(scores: Scores) -> Scores:
    """Min-max to [0, 1]; all zero where every score is the same."""
    if not len(scores):
        return scores
    low, high = scores.min(), scores.max()
    return (scores - low) / (high - low) if high > low else np.zeros(len(scores))


def _ranks(scores: Scores) -> Scores:
    ranks = np.empty(len(scores))
    ranks[np.argsort(-scores, kind="stable")] = np.arange(1, len(scores) + 1)
    return ranks

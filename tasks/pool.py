"""Which records are a question's candidates: dense cosine and BM25, fused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

from tasks.mem0 import EntityIndex, FixedLexicon, Mem0, calibrated
from tasks.text import terms

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
    """BM25 over one conversation's records (Porter stems, no stop words), with the conversation's own statistics."""

    def __init__(self, texts: Sequence[str], *, k1: float = 1.2, b: float = 0.75) -> None:
        documents = [terms(text) for text in texts]
        self._size = len(documents)
        self._bm25 = BM25Okapi(documents, k1=k1, b=b) if any(documents) else None

    def scores(self, question: str) -> Scores:
        """(n,) BM25 of each record; a term that most records hold counts little, never against them.

        Source: rank-bm25's Okapi, which floors a negative idf at a quarter of the mean idf.
        """
        query = terms(question)
        if self._bm25 is None or not query:
            return np.zeros(self._size)
        return np.asarray(self._bm25.get_scores(query), np.float64)


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

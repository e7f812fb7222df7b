"""Which records come first when no record depends on another?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from readers.types import Access, Budget, Evidence, Floats, Ints, Pool, Query, selected


@dataclass(frozen=True)
class Dense:
    """The pool by cosine with the question; ties go to the native rank, NaN comes last."""

    title: ClassVar[str] = "Top records by cosine with the question"
    source: ClassVar[str] = "Karpukhin et al. 2020, Dense Passage Retrieval, EMNLP (arXiv 2004.04906)"

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        return selected(pool, descending(pool.dense), budget)


@dataclass(frozen=True)
class Bm25:
    """The pool by BM25 with the question; ties go to the native rank, NaN comes last."""

    title: ClassVar[str] = "Top records by BM25 with the question"
    source: ClassVar[str] = "Robertson & Zaragoza 2009, The Probabilistic Relevance Framework"

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        return selected(pool, descending(pool.lexical), budget)


@dataclass(frozen=True)
class Hybrid:
    """The pool in its own order, which is the fusion of dense and lexical scores it was built with."""

    title: ClassVar[str] = "Top records of the pool's own fused ranking"
    source: ClassVar[str] = "Bruch, Gai & Ingber 2023, Fusion Functions for Hybrid Retrieval, TOIS"

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        return selected(pool, np.arange(len(pool)), budget)


@dataclass(frozen=True)
class Random:
    """The pool in an order drawn from the query's generator: the same for one seed and question."""

    title: ClassVar[str] = "Records of the pool drawn at random, seeded per question"
    source: ClassVar[str] = "A control: what any reader must beat"

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        return selected(pool, query.generator().permutation(len(pool)), budget)


@dataclass(frozen=True)
class FullContext:
    """The whole conversation, oldest first; where the budget does not hold it, its longest suffix that fits.

    Reads beyond the pool: a record need not be a candidate. `calls` stays 0, because nothing is searched.
    """

    title: ClassVar[str] = "The whole conversation, or the most recent part that fits"
    source: ClassVar[str] = "Maharana et al. 2024, LoCoMo, ACL (arXiv 2402.17753), long-context baseline"

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        ids, tokens = access.everything()
        newest_first = np.arange(len(ids))[::-1]
        kept = budget.prefix(newest_first, np.asarray(tokens))[::-1]
        return Evidence(
            ids=tuple(ids[i] for i in kept),
            stop_reason="empty_pool" if not ids else "pool_exhausted" if len(kept) == len(ids) else "budget",
        )


def descending(scores: Floats) -> Ints:
    """Indices of `scores` (n,), highest first; ties keep their order, NaN comes last."""
    return np.argsort(-scores, kind="stable")

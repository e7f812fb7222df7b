"""Which records would another system's retrieval take from this very store?"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from readers.ranking import descending
from readers.types import Access, Budget, Evidence, Pool, Query, selected

_TOKEN = re.compile(r"[a-z0-9']+")
_K1, _B, _FLOOR = 1.5, 0.75, 0.25
_FORMULAS = ("lite", "okapi")


@dataclass(frozen=True)
class Mem0Flat:
    """The whole conversation by BM25-lite, the sum over the question's tokens of tf ln((N + 1) / (df + 1)).

    Reads beyond the pool: a record need not be a candidate. `calls` stays 0: this is the first retrieval itself.
    `formula`: `lite`, or `okapi`, which is rank-bm25's BM25Okapi (k1 1.5, b .75, a negative idf floored at a quarter
    of the mean idf). `dated`: a record's day, month and year are words of it too. Ties go to the older record.
    Inferred, because the release takes `okapi` where rank-bm25 is installed and the paper says "BM25-lite": the
    default `formula`; that k is the budget's; that a token counts as often as the question repeats it. The release
    also indexes notes' context, keywords and tags, which turns do not have. Raises `ValueError` for another formula.
    """

    formula: str = "lite"
    dated: bool = True

    title: ClassVar[str] = "Mem0's same-store control: BM25-lite over the whole conversation"
    source: ClassVar[str] = "BFR (arXiv 2610.09348), same-store controls; mem0ai/mem0"

    def __post_init__(self) -> None:
        if self.formula not in _FORMULAS:
            raise ValueError(f"formula ({self.formula}) must be one of {', '.join(_FORMULAS)}")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        ids, tokens = access.everything()
        notes = access.notes(ids)
        times = tuple(note.time for note in notes) if self.dated else ()
        index = _index(tuple(note.text for note in notes), times)
        asked = _TOKEN.findall(query.text.lower())
        kept = budget.prefix(descending(index.scores(asked, self.formula)), np.asarray(tokens))
        return Evidence(
            ids=tuple(ids[i] for i in kept),
            stop_reason="empty_pool" if not ids else "pool_exhausted" if len(kept) == len(ids) else "budget",
        )


@dataclass(frozen=True)
class AMemFlat:
    """The pool by cosine with the question's own words; ties go to the native rank, NaN comes last.

    What A-Mem does beyond it is dropped: notes, links, their evolution, the keyword call. Inferred: that k is the
    budget's. So it orders as `dense` does, under the name that the comparison knows.
    """

    title: ClassVar[str] = "A-Mem's same-store control: top records by cosine"
    source: ClassVar[str] = "Xu et al. 2025, A-Mem (arXiv 2502.12110), as flattened by BFR (arXiv 2610.09348)"

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        return selected(pool, descending(pool.dense), budget)


class Index:
    """Which documents hold a token, how often, and how long they are. `documents`: tokens of each, in order."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        held: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for place, document in enumerate(documents):
            for token, count in Counter(document).items():
                held[token].append((place, count))
        self.postings = {token: np.array(pairs, np.intp).T for token, pairs in held.items()}
        self.lengths = np.array([len(document) for document in documents], np.float64)

    def scores(self, asked: Sequence[str], formula: str) -> NDArray[np.float64]:
        """(n,) scores of the documents; a token that no document holds adds nothing."""
        total = np.zeros(len(self.lengths))
        for token in asked:
            if token in self.postings:
                places, counts = self.postings[token]
                total[places] += self._lite(counts) if formula == "lite" else self._okapi(places, counts)
        return total

    def _lite(self, counts: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.asarray(counts * math.log((len(self.lengths) + 1) / (len(counts) + 1)), np.float64)

    def _okapi(self, places: NDArray[np.intp], counts: NDArray[np.intp]) -> NDArray[np.float64]:
        weight = self._idf(len(counts))
        relative = self.lengths[places] / self.lengths.mean()
        weight = weight if weight >= 0 else _FLOOR * self._mean_idf
        return np.asarray(weight * counts * (_K1 + 1) / (counts + _K1 * (1 - _B + _B * relative)))

    def _idf(self, frequency: int) -> float:
        return math.log(len(self.lengths) - frequency + 0.5) - math.log(frequency + 0.5)

    @cached_property
    def _mean_idf(self) -> float:
        return sum(self._idf(pairs.shape[1]) for pairs in self.postings.values()) / len(self.postings)


# A conversation is indexed once for all its questions: texts keep their hashes, so that finding it again is cheap.
@lru_cache(maxsize=16)
def _index(texts: tuple[str, ...], times: tuple[float, ...]) -> Index:
    dates = [_date(time) for time in times] or [""] * len(texts)
    return Index([_TOKEN.findall(f"{text} {date}".lower()) for text, date in zip(texts, dates, strict=True)])


def _date(time: float) -> str:
    return f"{datetime.fromtimestamp(time, UTC):%-d %B %Y}" if math.isfinite(time) else ""

"""Which records Mem0's hybrid score puts first."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tasks.entities import entities, lower_case
from tasks.text import terms

Scores = NDArray[np.float64]
Embed = Callable[[Sequence[str]], NDArray[np.float32]]

_K, _B, _LENGTH = 1.2, 0.75, 256.0
_CALIBRATION = ((3, 5.0, 0.7), (6, 7.0, 0.6), (9, 9.0, 0.5), (15, 10.0, 0.5), (math.inf, 12.0, 0.5))
_MOST_ENTITIES, _MOST_MATCHES, _SIMILAR, _EQUAL = 8, 500, 0.5, 0.95


@dataclass(frozen=True)
class Mem0:
    """Cosine, calibrated BM25 and an entity boost: min(1, (dense + BM25 + boost) / D).

    D is 1, 1 more if BM25 found any record for the question, `boost` more if an entity did. Candidates are the
    `max(4 size, 60)` nearest records with a cosine of at least `threshold`; `candidates`: `semantic`, or `union` with
    as many that BM25 finds, which keep their own cosine (inferred). `boost` of 0 leaves entities out.
    BM25: k 1.2, b 0.75, a fixed mean length of 256, idf ln((N − n + ½) / (n + ½) + 1), each term of the question once;
    σ(s (raw − m)) with (m, s) by the question's number of terms, 0 where no term is found. An entity of the question
    (8 at most) boosts the records linked to each of the 500 nearest entities of cosine c ≥ 0.5 by c · `boost` /
    (1 + 0.001 (records linked − 1)²); a record takes its highest boost. Entities of one text or cosine ≥ 0.95 are one.
    Source: mem0ai 2.2.1 (`semantic`), and the MemPursuit paper (arXiv 2610.15642), appendix A.3 (`union`). Deviations:
    Porter stems without stop words for spaCy's lemmas, entities by `tasks.entities` for spaCy's, without its noun
    phrases, as no spaCy model comes with a package; N and n count the conversation, the package's its collection.
    Raises `ValueError` for other `candidates` and for numbers out of range.
    """

    title: ClassVar[str] = "Mem0's hybrid: cosine, calibrated BM25, entity boost"

    candidates: str = "union"
    threshold: float = 0.1
    boost: float = 0.5

    def __post_init__(self) -> None:
        if self.candidates not in ("semantic", "union"):
            raise ValueError(f"candidates must be semantic or union, not {self.candidates!r}")
        if not (-1 <= self.threshold <= 1 and 0 <= self.boost <= 1):
            raise ValueError(f"threshold in [-1, 1] and boost in [0, 1] expected, {self.threshold}, {self.boost} found")

    def fuse(self, dense: Scores, bm25: Scores, boost: Scores, size: int) -> Scores:
        """(n,) scores, higher is better; -inf of what is no candidate. `bm25`: calibrated, 0 where nothing is found."""
        divisor = 1.0 + bool(bm25.any()) + self.boost * bool(boost.any())
        fetched = max(4 * size, 60)
        kept = np.zeros(len(dense), bool)
        kept[_best(dense, fetched)] = True
        kept &= dense >= self.threshold
        if self.candidates == "union":
            found = _best(bm25, fetched)
            kept[found[bm25[found] > 0]] = True
        return np.where(kept, np.minimum(1.0, (dense + bm25 + boost) / divisor), -np.inf)


class FixedLexicon:
    """BM25 over one conversation's records as Mem0's sparse vectors have it; terms are Porter stems, no stop words."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._weights: dict[str, list[tuple[int, float]]] = {}
        self._size = len(texts)
        for place, text in enumerate(texts):
            document = terms(text)
            norm = _K * (1 - _B + _B * len(document) / _LENGTH)
            for term, count in Counter(document).items():
                self._weights.setdefault(term, []).append((place, count * (_K + 1) / (count + norm)))

    def scores(self, question: str) -> Scores:
        """(n,) raw scores, 0 where no term is found."""
        total = np.zeros(self._size)
        for term in dict.fromkeys(terms(question)):
            held = self._weights.get(term, [])
            idf = math.log((self._size - len(held) + 0.5) / (len(held) + 0.5) + 1)
            for place, weight in held:
                total[place] += idf * weight
        return total


def calibrated(raw: Scores, question: str) -> Scores:
    """(n,) in [0, 1): the sigmoid of raw BM25 for a question of so many terms, repeats counted; 0 stays 0."""
    count = len(terms(question))
    middle, slope = next((middle, slope) for most, middle, slope in _CALIBRATION if count <= most)
    return np.where(raw > 0, 1.0 / (1.0 + np.exp(-slope * (raw - middle))), 0.0)


class EntityIndex:
    """The entities of one conversation's records, each with the records that name it."""

    def __init__(self, texts: Sequence[str], embed: Embed) -> None:
        self._embed, self._size = embed, len(texts)
        self._common = set[str]().union(*map(lower_case, texts))
        named: dict[str, list[int]] = {}
        shown: dict[str, str] = {}
        for place, text in enumerate(texts):
            for name in entities(text, self._common):
                key = shown.setdefault(name.lower(), name)
                if place not in named.setdefault(key, [])[-1:]:
                    named[key].append(place)
        self.names, self._vectors, self.linked = _merged(named, embed)

    def boosts(self, question: str, weight: float) -> Scores:
        """(n,) the highest boost of each record, 0 where no entity of the question is near one of its own."""
        asked = entities(question, self._common)[:_MOST_ENTITIES]
        found = np.zeros(self._size)
        if not asked or not self.names or not weight:
            return found
        for similar in self._embed(asked) @ self._vectors.T:
            for place in _best(similar.astype(np.float64), _MOST_MATCHES):
                if similar[place] < _SIMILAR:
                    break
                rows = self.linked[place]
                boost = float(similar[place]) * weight / (1 + 0.001 * (len(rows) - 1) ** 2)
                found[rows] = np.maximum(found[rows], boost)
        return found


def _merged(named: dict[str, list[int]], embed: Embed) -> tuple[list[str], NDArray[np.float32], list[NDArray[np.intp]]]:
    """Entities in order of appearance, one that is as near as `_EQUAL` to an earlier one added to the nearest."""
    if not named:
        return [], np.zeros((0, 0), np.float32), []
    vectors = embed(list(named))
    names: list[str] = []
    kept: list[int] = []
    linked: list[set[int]] = []
    similar = vectors @ vectors.T
    for place, (name, rows) in enumerate(named.items()):
        nearest = int(np.argmax(similar[place, kept])) if kept else -1
        if nearest >= 0 and similar[place, kept[nearest]] >= _EQUAL:
            linked[nearest].update(rows)
        else:
            names.append(name)
            kept.append(place)
            linked.append(set(rows))
    return names, vectors[kept], [np.array(sorted(rows), np.intp) for rows in linked]


def _best(scores: Scores, count: int) -> NDArray[np.intp]:
    """Places of the highest, best first; ties go to the earlier."""
    return np.argsort(-scores, kind="stable")[:count]

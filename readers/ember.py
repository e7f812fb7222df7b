"""Which records are worth keeping before anyone asks?"""

import heapq
import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from readers.ranking import descending
from readers.types import Access, Budget, Evidence, Pool, Query, selected
from readers.words import distinct, names

_NUMBER = re.compile(r"\b\d[\d.,:]*\b")
_DATE = re.compile(
    r"\b(?:january|february|march|april|(?-i:May)|june|july|august|september|october|november|december"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|yesterday|today|tomorrow|tonight"
    r"|(?:last|next|this) (?:week|weekend|month|year|summer|winter|spring|fall|autumn)|ago)\b",
    re.I,
)
_FACT = re.compile(r"\b(?:I|we|my|our)\b", re.I)
_NEGATION = re.compile(r"\b(?:not|no|never|cannot)\b|n['’]t\b", re.I)
_WRITERS = ("utility", "recency", "random")
_ORDERS = ("dense", "lexical", "native")


@dataclass(frozen=True)
class EmberFlat:
    """A memory of at most `capacity` tokens, written without the question; then its records, ranked for it.

    All of it is inferred: EMBER trains a model to write, which a rule replaces here. A capsule is a record. `writer`
    is who keeps: `utility`, the newest records (`recency`), or a draw from the seed (`random`). Utility per token is
    `facts` times the record's names, numbers, dates and first-person cues, plus `rarity` times the sum of its words'
    idf, plus `novelty` times that sum over words which nothing kept holds yet, idf as a share of the largest possible.
    The greedy takes the best that still fits until nothing does. Before that, a record goes whose words a newer one of
    the same speaker repeats (Jaccard at least `supersede`) with other numbers or an opposite negation.
    Reading ranks what is kept and in the pool `by` the pool's `dense`, `lexical` or `native` score, ties natively,
    NaN last. What was not kept is gone: evidence may be smaller than the budget. EMBER's gold-first writer sees gold
    and is no reader. Raises `ValueError` for a parameter out of range.
    """

    capacity: int = 8192
    writer: str = "utility"
    by: str = "dense"
    facts: float = 1.0
    rarity: float = 1.0
    novelty: float = 1.0
    supersede: float = 0.7

    title: ClassVar[str] = "What was worth keeping before the question, ranked for it"
    source: ClassVar[str] = "EMBER (arXiv 2606.05894); the writer is this project's rule"

    def __post_init__(self) -> None:
        for name, allowed in (("writer", _WRITERS), ("by", _ORDERS)):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} ({getattr(self, name)}) must be one of {', '.join(allowed)}")
        for name in ("capacity", "facts", "rarity", "novelty"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} ({getattr(self, name)}) must be at least 0")
        if not self.supersede > 0:
            raise ValueError(f"supersede ({self.supersede}) must be more than 0; above 1 nothing is superseded")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        held = self.kept(access, query.seed)
        scores = {"dense": pool.dense, "lexical": pool.lexical, "native": pool.native}[self.by]
        order = descending(scores)
        inside = np.array([pool.ids[i] in held for i in order], np.bool_)
        return selected(pool, order[inside], budget)

    def kept(self, access: Access, seed: int) -> frozenset[str]:
        """Ids of the records that are kept: a function of the conversation and the seed, never of a question."""
        ids, tokens = access.everything()
        notes = access.notes(ids)
        texts = tuple(note.text for note in notes)
        places = _kept(self, texts, tuple(note.speaker for note in notes), tuple(np.asarray(tokens).tolist()), seed)
        return frozenset(ids[place] for place in places)


# A memory is written once for all questions of a conversation: texts keep their hashes, so finding it is cheap.
@lru_cache(maxsize=64)
def _kept(
    reader: EmberFlat, texts: tuple[str, ...], speakers: tuple[str, ...], tokens: tuple[int, ...], seed: int
) -> tuple[int, ...]:
    gone = superseded(texts, speakers, reader.supersede)
    standing = [place for place in range(len(texts)) if place not in gone]
    if reader.writer == "utility":
        return tuple(_by_utility(reader, standing, texts, tokens))
    order = standing[::-1]
    if reader.writer == "random":
        order = np.random.default_rng(seed).permutation(standing).tolist()
    left, taken = reader.capacity, []
    for place in order:
        if tokens[place] <= left:
            taken.append(place)
            left -= tokens[place]
    return tuple(taken)


def _by_utility(reader: EmberFlat, standing: Sequence[int], texts: Sequence[str], tokens: Sequence[int]) -> list[int]:
    """Lazy greedy: what a record adds never grows, so a stale value at the heap's top is an upper bound."""
    frequency = Counter(word for text in texts for word in distinct(text))
    idf = {word: math.log(len(texts) / count) / math.log(max(len(texts), 2)) for word, count in frequency.items()}
    covered: set[str] = set()

    def per_token(place: int) -> float:
        words = sorted(distinct(texts[place]))
        value = reader.facts * facts(texts[place]) + reader.rarity * math.fsum(idf[word] for word in words)
        value += reader.novelty * math.fsum(idf[word] for word in words if word not in covered)
        return value / max(tokens[place], 1)

    heap = [(-per_token(place), place) for place in standing]
    heapq.heapify(heap)
    left, taken = reader.capacity, []
    while heap:
        _, place = heapq.heappop(heap)
        if tokens[place] > left:
            continue
        current = (-per_token(place), place)
        if heap and current > heap[0]:
            heapq.heappush(heap, current)
            continue
        taken.append(place)
        left -= tokens[place]
        covered |= distinct(texts[place])
    return taken


def facts(text: str) -> int:
    """How many names, numbers, dates and first-person cues a record holds; who speaks it is no name in it."""
    said = text.split(": ", 1)[-1]
    return len(names(said)) + sum(len(pattern.findall(said)) for pattern in (_NUMBER, _DATE, _FACT))


def superseded(texts: Sequence[str], speakers: Sequence[str], least: float) -> set[int]:
    """Places of records that a later one of the same speaker contradicts, word sets at Jaccard `least` or more.

    Two such records contradict where each has a number that the other lacks, or where only one denies.
    Sets that reach `least` share a word among the rarest of either, so only those are looked up (prefix filter:
    Chaudhuri, Ganti & Kaushik 2006); no pair is lost.
    """
    frequency = Counter(word for text in texts for word in distinct(text))
    holders: dict[tuple[str, str], list[int]] = defaultdict(list)
    gone: set[int] = set()
    for place, (text, speaker) in enumerate(zip(texts, speakers, strict=True)):
        words = sorted(distinct(text), key=lambda word: (frequency[word], word))
        keys = [(speaker, word) for word in words[: len(words) - math.ceil(least * len(words) - 1e-9) + 1]]
        older = {other for key in keys for other in holders[key]} - gone
        gone |= {other for other in older if _contradicts(texts[other], text, least)}
        for key in keys:
            holders[key].append(place)
    return gone


def _contradicts(older: str, newer: str, least: float) -> bool:
    left, right = distinct(older), distinct(newer)
    if len(left & right) < least * len(left | right) - 1e-9:
        return False
    numbers = [set(_NUMBER.findall(text)) for text in (older, newer)]
    denied = [bool(_NEGATION.search(text)) for text in (older, newer)]
    return denied[0] != denied[1] or bool(numbers[0] - numbers[1] and numbers[1] - numbers[0])

"""Which candidates jointly meet the requirements of the question, by attribute-weighted coverage?"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from readers.requirements import Attributes, Requirement, attributes, coverage, rules, unit
from readers.types import Access, Budget, Evidence, Ints, Pool, Query, Step, selected

GROUNDINGS = ("overlap", "pointer")
_TOKEN = re.compile(r"[a-z][a-z0-9]+")
_VAGUE = ("discussion", "conversation", "support", "positive")
_REDUNDANT = 0.85
_LEAST_GAIN = 0.05

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Scene:
    """The candidates that a selection is made from. Everything aligns with `places`, indices into the pool.

    `strength`: (J, n) coverage of each requirement. `rows`: (n, d) unit vectors. `texts`: the notes' texts.
    """

    requirements: tuple[Requirement, ...]
    places: Ints
    texts: tuple[str, ...]
    attributes: Sequence[Attributes]
    strength: Matrix
    rows: Matrix

    @cached_property
    def values(self) -> tuple[NDArray[np.float32], Matrix, int]:
        """(n, V) 0 or 1, which attribute values a note has; (V,) their weights; the first so many compare two notes."""
        weights: dict[str, float] = {}
        for note in self.attributes:
            weights.update(note.named)
        named = len(weights)
        for note in self.attributes:
            weights.update(note.derived)
        column = dict(zip(weights, range(len(weights)), strict=True))
        shown = np.zeros((len(self.attributes), len(weights)), np.float32)
        for row, note in enumerate(self.attributes):
            shown[row, [column[name] for name in (*note.named, *note.derived)]] = 1
        return shown, np.fromiter(weights.values(), np.float64, len(weights)), named

    @cached_property
    def cosines(self) -> Matrix:
        """(n, n), rounded to 1e-9, negative ones 0."""
        return np.maximum(np.round(self.rows @ self.rows.T, 9), 0)

    @cached_property
    def jaccards(self) -> Matrix:
        """(n, n) shared among all compared attribute values of two notes."""
        shown, _, named = self.values
        both = (shown[:, :named] @ shown[:, :named].T).astype(np.float64)
        counts = np.diag(both)
        return both / np.maximum(counts[:, None] + counts - both, 1)

    @cached_property
    def specific(self) -> Matrix:
        """(n,) how specific each note is."""
        pairs = zip(self.attributes, self.texts, strict=True)
        return np.array([_specificity(known, text) for known, text in pairs], np.float64)


@dataclass(frozen=True)
class FcaMs:
    """FCA-MS with requirements from rules and without a model: coverage matrix, prefilter, greedy set, grounding.

    The `n` candidates of the highest cosine; coverage c(r, m) as `readers.requirements` has it, of which `threshold`
    covers; `prefilter` of them, without near copies; up to `most` by greedy gain; then turns of the pool by their token
    overlap with the selected ones, as many as the budget holds (10 in the paper). No lattice is built, in the release
    neither. With requirements that a model decomposes it is `readers.fca_ms_model`, an arm of another name.
    `grounding`: "overlap" or "pointer", which returns the selected turns alone.
    `encode`: give requirements beyond the question vectors of their own, two texts to encode a question; else they are
    met by attributes alone.

    Inferred or adapted: notes are the pool's turns, as the flat store has no A-Mem notes; `encode` is off,
    since it takes longer than everything else together; the overlap is the sum over selected notes of the distinct
    tokens shared with each; it ranks the pool's turns, not the whole store's, ties in native order, and turns without
    overlap follow where the budget still holds them; without a model, the greedy selector of the release stands in for
    the model's subset. Candidates whose vectors are not finite come last.

    With these requirements R1 alone is covered on real questions: an encoder or a model has to describe the others. The
    greedy selector takes `most` notes nearly always, as new attribute values outweigh what it subtracts; the paper's
    mean of 1.86 is a model's. Raises `ValueError` for a parameter out of range.
    """

    n: int = 50
    prefilter: int = 20
    threshold: float = 0.25
    most: int = 6
    grounding: str = "overlap"
    encode: bool = False

    title: ClassVar[str] = "Requirements covered by a greedy set, grounded by overlap (FCA-MS, rules)"
    source: ClassVar[str] = "Li et al. 2026, Relevance Is Not Sufficiency, arXiv 2610.09348v1, and its release"

    def __post_init__(self) -> None:
        check(self)

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        scene = looked_at(query, pool, access, self.n, rules(query.text), encode=self.encode)
        kept = prefiltered(scene, self.prefilter)
        chosen = greedy(scene, kept, self.threshold, self.most)
        return grounded(scene, chosen, pool, budget, access, self.grounding, self.threshold)


def check(reader: Any) -> None:
    """Raises `ValueError` for a parameter out of range."""
    for name in ("n", "prefilter", "most"):
        value = getattr(reader, name, 1)
        if value < 1:
            raise ValueError(f"{name} ({value}) must be at least 1")
    if not 0 < reader.threshold <= 1:
        raise ValueError(f"threshold ({reader.threshold}) must be in (0, 1]")
    if reader.grounding not in GROUNDINGS:
        raise ValueError(f"grounding ({reader.grounding}) must be one of {', '.join(GROUNDINGS)}")


def looked_at(
    query: Query, pool: Pool, access: Access, n: int, requirements: tuple[Requirement, ...], *, encode: bool
) -> Scene:
    """The `n` usable candidates of the highest cosine in that order, ties native, with what is known of them."""
    usable = np.flatnonzero(np.isfinite(pool.vectors).all(axis=1))
    places = usable[np.argsort(-pool.dense[usable], kind="stable")[:n]]
    notes = access.notes([pool.ids[place] for place in places])
    known = attributes(notes)
    rows = unit(pool.vectors[places])
    return Scene(
        requirements=requirements,
        places=places,
        texts=tuple(note.text for note in notes),
        attributes=known,
        strength=coverage(requirements, unit(requirement_vectors(query, requirements, access, encode)), known, rows),
        rows=rows,
    )


def prefiltered(scene: Scene, most: int) -> list[int]:
    """At most `most` candidates by total coverage, near copies of one already kept only where places are left.

    A near copy has a redundancy above .85: .6 of its greatest cosine with one kept, .4 of its greatest Jaccard
    similarity. All candidates in the given order where there are no more than `most`.
    """
    size = len(scene.places)
    if size <= most:
        return list(range(size))
    ranked = np.argsort(-np.round(scene.strength.sum(axis=0), 9), kind="stable").tolist()
    # Against all others no redundancy is less than against those kept: most candidates need no second look.
    others = 1 - np.eye(size)
    at_most = 0.6 * (scene.cosines * others).max(axis=1) + 0.4 * (scene.jaccards * others).max(axis=1)
    kept: list[int] = []
    copies: list[int] = []
    for place in ranked:
        if len(kept) == most:
            break
        if kept and at_most[place] > _REDUNDANT:
            redundancy = 0.6 * scene.cosines[place, kept].max() + 0.4 * scene.jaccards[place, kept].max()
            if redundancy > _REDUNDANT:
                copies.append(place)
                continue
        kept.append(place)
    return kept + copies[: most - len(kept)]


def greedy(scene: Scene, kept: Sequence[int], threshold: float, most: int) -> list[int]:
    """At most `most` of `kept`, each taken for the greatest gain while that is at least .05; ties as `kept` has them.

    gain = sum of c of the requirements it newly covers + .05 w of each new attribute value (.1 for the first pick)
    + specificity - redundancy - .02 for each already taken. Where none gains enough, the one of most coverage.
    """
    if not kept:
        return []
    covers = np.where(scene.strength >= threshold, scene.strength, 0.0)
    shown, worth, _ = scene.values
    worth = worth.copy()
    nearest = Nearest(scene)
    candidates = np.asarray(kept)
    chosen: list[int] = []
    while len(chosen) < min(most, len(candidates)):
        fresh = 0.05 * (shown @ worth) if chosen else 0.1
        gains = covers.sum(axis=0) + fresh + scene.specific - nearest.redundancy - 0.02 * len(chosen)
        gains[chosen] = -np.inf
        best = int(candidates[np.argmax(np.round(gains[candidates], 9))])
        if gains[best] < _LEAST_GAIN:
            break
        chosen.append(best)
        nearest.add(best)
        covers[covers[:, best] > 0] = 0
        worth[shown[best] > 0] = 0
    if chosen:
        return chosen
    return [int(candidates[np.argmax(np.round(scene.strength[:, candidates].sum(axis=0), 9))])]


class Nearest:
    """Each candidate's redundancy against a growing set. Zero against the empty one, in [0, 1]."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._cosine = np.zeros(len(scene.places))
        self._jaccard = np.zeros(len(scene.places))
        self.redundancy = np.zeros(len(scene.places))

    def add(self, place: int) -> None:
        """Put one candidate into the set."""
        self._cosine = np.maximum(self._cosine, self._scene.cosines[place])
        self._jaccard = np.maximum(self._jaccard, self._scene.jaccards[place])
        self.redundancy = 0.6 * self._cosine + 0.4 * self._jaccard


def grounded(
    scene: Scene,
    chosen: Sequence[int],
    pool: Pool,
    budget: Budget,
    access: Access,
    grounding: str,
    threshold: float,
) -> Evidence:
    """The evidence of a selection: turns by overlap with it, or the selection itself.

    The trace has a step a requirement: the candidates that cover it, and those of them that were chosen.
    """
    picked = scene.places[list(chosen)]
    if grounding == "pointer":
        evidence = selected(pool, picked, budget, stop_reason="adaptive" if len(pool) else "empty_pool")
    else:
        texts = [note.text for note in access.notes(pool.ids)]
        shared = overlaps(texts, [texts[place] for place in picked])
        sound = np.isfinite(pool.vectors).all(axis=1)
        order = np.lexsort((-np.where(sound, shared, 0), ~sound))
        evidence = selected(pool, order, budget, gains=shared[order].astype(np.float64))
    steps = []
    for requirement, strength in zip(scene.requirements, scene.strength, strict=True):
        cover = np.flatnonzero(strength >= threshold)
        cover = cover[np.argsort(-strength[cover], kind="stable")]
        returned = tuple(pool.ids[scene.places[i]] for i in cover)
        kept = tuple(pool.ids[scene.places[i]] for i in chosen if strength[i] >= threshold)
        steps.append(Step("requirement", f"{requirement.id} {requirement.text}", returned, kept))
    return replace(evidence, trace=tuple(steps))


def overlaps(texts: Sequence[str], chosen: Sequence[str]) -> NDArray[np.int64]:
    """(n,) for each text the sum over `chosen` of the distinct tokens that it shares with each."""
    weights = Counter(token for text in chosen for token in tokens(text))
    wanted = frozenset(weights)
    return np.array([sum(map(weights.__getitem__, tokens(text) & wanted)) for text in texts], np.int64)


@lru_cache(maxsize=1 << 15)
def tokens(text: str) -> frozenset[str]:
    """The distinct words of two or more letters or digits that begin with a letter; a bare number says little."""
    return frozenset(_TOKEN.findall(text.lower()))


def requirement_vectors(query: Query, requirements: Sequence[Requirement], access: Access, encode: bool) -> Matrix:
    """(J, d): the question's vector for the question itself, the encoder's or zero for every other requirement."""
    vectors = np.zeros((len(requirements), len(query.vector)))
    others = [i for i, requirement in enumerate(requirements) if requirement.text != query.text]
    vectors[[i for i in range(len(requirements)) if i not in others]] = query.vector
    if encode and others:
        vectors[others] = access.embed([requirements[i].text for i in others])
    return vectors


def _specificity(known: Attributes, text: str) -> float:
    """.25 for an answer candidate, .15 for a time, .10 for an event; -.10 for a vague text without a candidate."""
    held = known.buckets
    low = text.lower()
    vague = "answer_candidate" not in held and any(word in low for word in _VAGUE)
    return 0.25 * ("answer_candidate" in held) + 0.15 * ("time" in held) + 0.10 * ("event" in held) - 0.10 * vague

"""Which candidates are a minimum cover of the requirements in their concept lattice?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from readers import lattice
from readers.fca_ms import Matrix, Scene, check, grounded, looked_at
from readers.requirements import rules
from readers.types import Access, Budget, Evidence, Pool, Query


@dataclass(frozen=True)
class FcaMsLattice:
    """FCA-MS by formal concept analysis: the context of candidates and requirements, a minimum cover, grounding.

    Candidates, requirements from rules, coverage, grounding and parameters are those of `FcaMs`; a candidate has a
    requirement where c >= `threshold`. The context is clarified (the best of equal rows by total coverage); its maximal
    intents stay, `prefilter` places are filled by turns from each requirement's best; a cover of the fewest members is
    taken, of the greatest coverage among those. Where it needs more than `most` members, or where there are more than
    10 requirements, a greedy cover of `most` stands in. A requirement that nothing covers has an empty step in the
    trace. Where nothing covers anything, the candidate of most coverage is the selection.

    A maximal intent is never lost where the requirements are at most 6 and `prefilter` is at least 20, the most that
    six requirements can have. Raises `ValueError` for a parameter out of range.
    """

    n: int = 50
    prefilter: int = 20
    threshold: float = 0.25
    most: int = 5
    grounding: str = "overlap"
    encode: bool = False

    title: ClassVar[str] = "Requirements covered by a minimum cover of their concept lattice (FCA-MS, rules)"
    source: ClassVar[str] = "this project, after Li et al. 2026, arXiv 2610.09348v1, and Ganter & Wille 1999"

    def __post_init__(self) -> None:
        check(self)

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        scene = looked_at(query, pool, access, self.n, rules(query.text), encode=self.encode)
        chosen = covering(scene, self.prefilter, self.threshold, self.most)
        return grounded(scene, chosen, pool, budget, access, self.grounding, self.threshold)


def covering(scene: Scene, prefilter: int, threshold: float, most: int) -> list[int]:
    """The places of a cover, by total coverage; ties in the order of the candidates."""
    strength = scene.strength
    if not strength.shape[1]:
        return []
    rows = lattice.context(strength >= threshold)
    worth = np.round(strength.sum(axis=0), 9)
    if not rows.any():
        return [int(np.argmax(worth))]
    kept = kept_candidates(rows, strength, prefilter)
    chosen = cover(rows[kept], strength[:, kept], most)
    return sorted((kept[place] for place in chosen), key=lambda place: (-worth[place], place))


def kept_candidates(rows: lattice.Rows, strength: Matrix, most: int) -> list[int]:
    """At most `most` places, ascending: the maximal intents, the best first, then each requirement's best in turn."""
    worth = np.round(strength.sum(axis=0), 9)
    peaks = lattice.maximal(rows, lattice.clarified(rows, worth))
    kept = sorted(peaks, key=lambda place: (-worth[place], place))[:most]
    extents = [
        [place for place in np.argsort(-values, kind="stable").tolist() if rows[place] >> bit & 1]
        for bit, values in enumerate(strength)
    ]
    for place in _in_turn(extents):
        if len(kept) >= most:
            break
        if place not in kept:
            kept.append(place)
    return sorted(kept)


def cover(rows: lattice.Rows, strength: Matrix, most: int) -> list[int]:
    """A minimum cover, or where it is greater than `most` or out of reach a greedy one of `most`."""
    if len(strength) <= lattice.DEEPEST:
        chosen = lattice.minimum_cover(rows, strength)
        if len(chosen) <= most:
            return chosen
    return lattice.greedy_cover(rows, strength, most)


def _in_turn(extents: Sequence[Sequence[int]]) -> list[int]:
    """First of each, second of each, and so on."""
    deepest = max(map(len, extents), default=0)
    return [extent[depth] for depth in range(deepest) for extent in extents if depth < len(extent)]

"""Which candidates jointly meet the requirements that a model sees in the question?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from readers.decomposition import PROMPT, Decomposition, by_model
from readers.fca_ms import Scene, check, grounded, looked_at, prefiltered
from readers.fca_ms_lattice import covering
from readers.replies import json_object, known, numbers, shown
from readers.types import Access, Budget, Evidence, Pool, Query, Step, fallback

_SOURCE = "Li et al. 2026, Relevance Is Not Sufficiency, arXiv 2610.09348v1"


@dataclass(frozen=True)
class FcaMsModel:
    """FCA-MS as published: a model decomposes the question and then selects the smallest jointly sufficient subset.

    Two asks of `model`. Candidates, coverage, prefilter, grounding and parameters are those of `FcaMs`; requirements
    are encoded (`encode`), since the question's own vector says nothing of them. Where the reply names no candidate,
    the first `first` by coverage are taken, and the trace says so (`fallback`).
    Inferred, because no source says: `first` 3; ours are the prompts, which show a candidate as its dated text.
    Adapted to the flat store as `FcaMs` is. Raises `ValueError` for a parameter out of range.
    """

    model: str = ""
    n: int = 50
    prefilter: int = 20
    threshold: float = 0.25
    first: int = 3
    grounding: str = "overlap"
    encode: bool = True

    prompts: ClassVar[tuple[str, ...]] = (PROMPT, "subset")
    title: ClassVar[str] = "Requirements and the smallest subset for them, both by a model (FCA-MS)"
    source: ClassVar[str] = _SOURCE

    def __post_init__(self) -> None:
        check(self)

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        if not len(pool):
            return Evidence((), "empty_pool")
        needs = by_model(query.text, access)
        scene = looked_at(query, pool, access, self.n, needs.requirements, encode=self.encode)
        kept = prefiltered(scene, self.prefilter)
        chosen, steps = subset(query, scene, kept, pool, access, self.first)
        evidence = grounded(scene, chosen, pool, budget, access, self.grounding, self.threshold)
        return with_steps(evidence, needs, steps)


@dataclass(frozen=True)
class FcaMsLatticeModel:
    """FCA-MS by formal concept analysis over requirements that a model decomposes: one ask, then a minimum cover.

    Everything else, and the parameters, as in `FcaMsLattice`; requirements are encoded (`encode`). Without a usable
    reply the requirements are those by rules, and the trace says so. Raises `ValueError` for a parameter out of range.
    """

    model: str = ""
    n: int = 50
    prefilter: int = 20
    threshold: float = 0.25
    most: int = 5
    grounding: str = "overlap"
    encode: bool = True

    prompts: ClassVar[tuple[str, ...]] = (PROMPT,)
    title: ClassVar[str] = "Requirements by a model, covered by a minimum cover of their concept lattice"
    source: ClassVar[str] = f"this project, after {_SOURCE}, and Ganter & Wille 1999"

    def __post_init__(self) -> None:
        check(self)

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        if not len(pool):
            return Evidence((), "empty_pool")
        needs = by_model(query.text, access)
        scene = looked_at(query, pool, access, self.n, needs.requirements, encode=self.encode)
        chosen = covering(scene, self.prefilter, self.threshold, self.most)
        evidence = grounded(scene, chosen, pool, budget, access, self.grounding, self.threshold)
        return with_steps(evidence, needs, ())


def subset(
    query: Query, scene: Scene, kept: Sequence[int], pool: Pool, access: Access, first: int
) -> tuple[list[int], tuple[Step, ...]]:
    """Those of `kept` that the model selects, in its order, else the `first` by coverage with the step that says so."""
    if not kept:
        return [], ()
    ids = [pool.ids[scene.places[place]] for place in kept]
    said = access.ask(
        "subset",
        question=query.text,
        requirements="\n".join(f"{need.id} ({need.kind}): {need.text}" for need in scene.requirements),
        records=shown(access.notes(ids)),
    )
    chosen = [kept[number - 1] for number in _selected(said, len(kept))]
    if chosen:
        return chosen, ()
    total = np.round(scene.strength.sum(axis=0), 9)
    best = sorted(kept, key=lambda place: (-total[place], kept.index(place)))[:first]
    return best, (fallback("no record in the reply: the best by coverage", [ids[kept.index(i)] for i in best]),)


def with_steps(evidence: Evidence, needs: Decomposition, steps: Sequence[Step]) -> Evidence:
    """The evidence with the fallbacks of its asks before its trace."""
    return replace(evidence, trace=(*needs.steps, *steps, *evidence.trace))


def _selected(said: str, most: int) -> list[int]:
    told = json_object(said, "selected")
    values: Any = told["selected"] if told else None
    return known(values, most) if isinstance(values, list) else numbers(said, most) or []

"""Which records continue each other from the question's best matches?"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from readers.ranking import descending
from readers.types import Access, Budget, Evidence, Floats, Ints, Pool, Query, Step, selected

Context = Callable[[Sequence[int]], Floats]
_CONTEXTS = ("text", "last", "average")


@dataclass(frozen=True)
class ComFlat:
    """Chains from the best `anchors`: each adds the candidate with the largest cos(m, q) cos(m, context).

    A chain ends where the best product is under `beta` times the score before it, which at first is the anchor's
    cosine. Candidates are the `candidates` best of the pool by cosine; chains share them. Evidence is the chains in
    the order of their anchors, each in its own order, without repeats, then the pool by cosine. `context`: the chain
    as `text` (its records' texts joined by a space and embedded again at every step), its `last` record, or the unit
    `average` of its vectors. Only `text` is CoM's own; its price is an embedding a step, on two cores about 0.4 s a
    question at ten records and 1.2 s at twenty, where the other two take 1 ms. The trace has one step a chain, which
    shows its length; a chain is followed no further than the budget holds. Products within 1e-12 go to the lower
    native rank; spoilt vectors come last.
    Inferred: no repeats and exactly k by cosine padding (CoM repeats, and takes what chains give); the space that
    joins texts; that a chain of one has its record's own vector. Dropped: the gate to ten sessions; MiniLM stands for
    Qwen3. On LoCoMo `beta` hardly ever blocks: chains run through nearly all candidates, so that at ten records the
    first chain is most of the evidence, and at `candidates` records the evidence is that of `dense`.
    Raises `ValueError` for a parameter out of range.
    """

    context: str = "text"
    anchors: int = 3
    candidates: int = 20
    beta: float = 0.5

    title: ClassVar[str] = "Chains of memories that fit the question and what came before"
    source: ClassVar[str] = "CoM (arXiv 2601.14287), as flattened by BFR (arXiv 2610.09348)"

    def __post_init__(self) -> None:
        if self.context not in _CONTEXTS:
            raise ValueError(f"context ({self.context}) must be one of {', '.join(_CONTEXTS)}")
        for name in ("anchors", "candidates"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} ({getattr(self, name)}) must be at least 0")
        if not self.beta >= 0:
            raise ValueError(f"beta ({self.beta}) must be at least 0")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        usable = np.isfinite(pool.vectors).all(axis=1) & np.isfinite(pool.dense)
        ranked = descending(np.where(usable, pool.dense, np.nan))
        near = ranked[: min(self.candidates, int(usable.sum()))]
        context = self._contexts(pool, access)
        order: dict[int, None] = {}
        chains: list[list[int]] = []
        for anchor in near[: self.anchors]:
            if len(order) < budget.most(pool):
                most = budget.most(pool) - len(order.keys() - {int(anchor)})
                chains.append(chain(int(anchor), np.sort(near), pool, context, self.beta, set(order), most))
                order |= dict.fromkeys(chains[-1])
        order |= dict.fromkeys(ranked.tolist())
        evidence = selected(pool, np.fromiter(order, np.intp, len(order)), budget)
        return replace(evidence, trace=_trace(pool, chains, evidence))

    def _contexts(self, pool: Pool, access: Access) -> Context:
        def text(members: Sequence[int]) -> Floats:
            notes = access.notes([pool.ids[i] for i in members])
            return np.asarray(access.embed([" ".join(note.text for note in notes)])[0])

        def average(members: Sequence[int]) -> Floats:
            total = pool.vectors[list(members)].sum(axis=0, dtype=np.float64)
            return np.asarray(total / (np.linalg.norm(total) or 1.0))

        def last(members: Sequence[int]) -> Floats:
            return np.asarray(pool.vectors[members[-1]])

        several: Context = {"text": text, "average": average, "last": last}[self.context]
        return lambda members: several(members) if len(members) > 1 else last(members)


def chain(anchor: int, near: Ints, pool: Pool, context: Context, beta: float, known: set[int], most: int) -> list[int]:
    """Indices of one chain, the anchor first, until blocked or until `most` of its members are not `known`."""
    members = [anchor]
    previous = float(pool.dense[anchor])
    rows = pool.vectors[near].astype(np.float64)
    free = near != anchor
    while free.any() and len(set(members) - known) < most:
        scores = pool.dense[near] * _dots(rows, context(members))
        best = scores[free].max()
        if not best >= beta * previous:
            break
        place = int(np.flatnonzero(free & (scores >= best - 1e-12))[0])
        members.append(int(near[place]))
        free[place] = False
        previous = float(scores[place])
    return members


def _dots(rows: NDArray[np.float64], vector: Floats) -> NDArray[np.float64]:
    return np.asarray(np.einsum("nd,d->n", rows, vector.astype(np.float64)))


def _trace(pool: Pool, chains: Sequence[Sequence[int]], evidence: Evidence) -> tuple[Step, ...]:
    kept, steps = set(evidence.ids), []
    for members in chains:
        ids = tuple(pool.ids[i] for i in members)
        steps.append(Step("chain", ids[0], ids, tuple(id for id in ids if id in kept)))
        kept -= set(ids)
    return tuple(steps)

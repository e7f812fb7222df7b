"""Which set of candidates does a model choose as a whole?"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from readers.replies import numbers, shown
from readers.types import Access, Budget, Evidence, Pool, Query, Step, fallback, selected


@dataclass(frozen=True)
class Setr:
    """SetR: one ask, in which a model reasons out what the question needs and selects a set of the best `candidates`.

    The set comes first, in the model's order; `fill` adds the rest of the pool in native order while the budget holds
    more. Where the reply names no record the whole order is native, and the trace says so (`fallback`).
    Source: Lee et al. 2025, which trains the model; here any model is asked, by a prompt of this project, because the
    release holds neither weights nor code. Raises `ValueError` for less than one candidate.
    """

    model: str = ""
    candidates: int = 20
    fill: bool = True

    prompts: ClassVar[tuple[str, ...]] = ("setr",)
    title: ClassVar[str] = "A set that a model selects after reasoning out what the question needs"
    source: ClassVar[str] = "Lee et al. 2025, Shifting from Ranking to Set Selection (arXiv 2507.06838)"

    def __post_init__(self) -> None:
        if self.candidates < 1:
            raise ValueError(f"candidates ({self.candidates}) must be at least 1")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        if not len(pool):
            return Evidence((), "empty_pool")
        ids = pool.ids[: self.candidates]
        said = access.ask("setr", question=query.text, records=shown(access.notes(ids)))
        named = numbers(said, len(ids))
        chosen = [number - 1 for number in named or []]
        rest = [place for place in range(len(pool)) if place not in chosen] if self.fill or named is None else []
        evidence = selected(
            pool, np.array(chosen + rest, np.intp), budget, stop_reason="adaptive" if not rest else None
        )
        steps = (
            fallback("no record in the reply: the native order", evidence.ids)
            if named is None
            else Step("set", "", ids, tuple(pool.ids[place] for place in chosen)),
        )
        return replace(evidence, trace=steps)

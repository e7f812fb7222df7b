"""Which set serves every requirement that a model sees in the question?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from readers.decomposition import PROMPT, by_model
from readers.fca_ms import requirement_vectors
from readers.fca_ms_model import with_steps
from readers.requirements import attributes, coverage, unit
from readers.types import Access, Budget, Evidence, Pool, Query, Step, selected
from readers.xquad import Xquad, xquad


@dataclass(frozen=True)
class XquadModel(Xquad):
    """xQuAD whose aspects are the requirements that a model decomposes the question into: one ask, equal weights.

    P(d|a) is the min-max of the coverage c(r, m) of FCA-MS (`readers.requirements`), requirements encoded. `trade` as
    in `Xquad`. Without a usable reply the requirements are those by rules, and the trace says so.
    Raises `ValueError` as `Xquad` does.
    """

    model: str = ""

    prompts: ClassVar[tuple[str, ...]] = (PROMPT,)
    title: ClassVar[str] = "Relevance plus requirements by a model not served yet (xQuAD)"
    source: ClassVar[str] = "Santos, Macdonald & Ounis 2010, WWW; requirements after arXiv 2610.09348"

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        if not len(pool):
            return Evidence((), "empty_pool")
        needs = by_model(query.text, access)
        usable = np.asarray(np.isfinite(pool.vectors).all(axis=1))
        vectors = unit(requirement_vectors(query, needs.requirements, access, True))
        strength = coverage(needs.requirements, vectors, attributes(access.notes(pool.ids)), unit(pool.vectors))
        order, gains = xquad(pool.dense, strength, budget.most(pool), trade=self.trade, usable=usable)
        evidence = selected(pool, order, budget, gains=gains)
        taken = Step("select", "", evidence.ids, evidence.ids)
        return with_steps(evidence, needs, (taken,) if needs.steps else ())

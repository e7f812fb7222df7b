"""Which set serves every requirement that a model sees in the question?"""

from dataclasses import dataclass
from typing import ClassVar

from readers.decomposition import PROMPT, by_model
from readers.fca_ms_model import with_steps
from readers.types import Access, Budget, Evidence, Pool, Query, Step
from readers.xquad import Xquad, by_requirements


@dataclass(frozen=True)
class XquadModel(Xquad):
    """xQuAD whose aspects are the requirements that a model decomposes the question into: one ask, equal weights.

    Requirements are encoded; the rest, and `trade`, as in `Xquad`. Without a usable reply the requirements are those by
    rules, and the trace says so. Raises `ValueError` as `Xquad` does.
    """

    model: str = ""

    prompts: ClassVar[tuple[str, ...]] = (PROMPT,)
    title: ClassVar[str] = "Relevance plus requirements by a model not served yet (xQuAD)"
    source: ClassVar[str] = "Santos, Macdonald & Ounis 2010, WWW; requirements after arXiv 2610.09348"

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        if not len(pool):
            return Evidence((), "empty_pool")
        needs = by_model(query.text, access)
        evidence = by_requirements(query, pool, budget, access, needs.requirements, trade=self.trade, encode=True)
        taken = Step("select", "", evidence.ids, evidence.ids)
        return with_steps(evidence, needs, (taken,) if needs.steps else ())

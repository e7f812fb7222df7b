"""Which records complete a set, by weights learned on other conversations?"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from readers.completion import Action, Policy, State, by_rank, complete
from readers.locality import unit_range
from readers.ranking import descending
from readers.types import Access, Budget, Evidence, Ints, Pool, Query, selected

Scores = NDArray[np.float64]
_DAY = 86_400.0
_REACH = 100
FEATURES = (
    "cosine with the question",
    "cosine with what the set leaves unexplained of the question",
    "largest cosine with a record of the set",
    "BM25, min-max over the pool",
    "share of the set in the record's session",
    "closeness in time, 1 / (1 + days to the nearest record of the set)",
    "share of the set by the record's speaker",
    "native rank over the number of candidates",
)
_UNFITTED = (0.0, 1.0, *[0.0] * (len(FEATURES) - 2))
Weights = tuple[float, ...]


@dataclass(frozen=True)
class Rsc:
    """The pool's first `init_records`, then pages of `page` unseen candidates by a learned score: one call a page.

    The score is linear in `FEATURES`, taken anew from the set before each round; C3 is three rounds of eight.
    Without `weights` those of a conversation are fitted on the other folds' gold by a stage of its own (`tasks.fit`)
    and handed over by `fitted`; no gold comes here. `weights`: eight numbers with spaces between them, as
    `suffice fit` prints them of another benchmark; nothing is fitted then, and no gold of the benchmark that is read is
    seen. Unfitted, the cosine with the residual decides alone. Ties go to the native rank.
    Raises `ValueError` for a bound below 1 and for weights that are not eight finite numbers.
    Inferred, because the paper says one line (a learned residual query, three calls, no architecture): the simplest
    form, a conditional logit over eight features of candidate and set, in place of a network that moves the query;
    that candidates are the pool's first hundred, as in the fit; ten first records, as for BFR.
    """

    init_records: int = 10
    page: int = 8
    weights: str = ""

    completes: ClassVar[bool] = True
    title: ClassVar[str] = "A first set, completed by a score learned on other conversations"
    source: ClassVar[str] = "BFR (arXiv 2610.09348), App. L: RSC, dense residual"

    def __post_init__(self) -> None:
        for name in ("init_records", "page"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} ({getattr(self, name)}) must be at least 1")
        _ = self.numbers

    @property
    def learns(self) -> bool:
        """Whether the weights are still to be fitted, on other conversations of the benchmark that is read."""
        return not self.weights

    @property
    def numbers(self) -> Weights:
        """The weights, one a feature. Raises `ValueError` where they are not."""
        if not self.weights:
            return _UNFITTED
        found = tuple(map(float, self.weights.split()))
        if len(found) != len(FEATURES):
            raise ValueError(f"weights ({len(found)}) must match features ({len(FEATURES)})")
        if not np.isfinite(found).all():
            raise ValueError(f"weights ({self.weights}) must be finite")
        return found

    def fitted(self, weights: Sequence[float]) -> "Rsc":
        """This reader with learned weights, one a feature. Raises `ValueError` for another number of them."""
        return replace(self, weights=" ".join(repr(float(weight)) for weight in weights))

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        pool = head(pool)
        first = selected(pool, np.arange(len(pool))[: self.init_records], budget)
        place = {id: at for at, id in enumerate(pool.ids)}

        def next_page(state: State) -> list[Action | None]:
            held = np.array([place[note.id] for note in state.evidence], np.intp)
            scores = features(query, pool, held) @ np.array(self.numbers)
            return [by_rank("rsc", [pool.ids[at] for at in descending(scores)])]

        policy = Policy(next_page, lambda state, found: found[: self.page], self.page)
        return complete(query, first, "hybrid", policy, budget, access)


def head(pool: Pool) -> Pool:
    """The first hundred candidates."""
    arrays = {item.name: getattr(pool, item.name)[:_REACH] for item in fields(pool)}
    return Pool(**arrays)


def features(query: Query, pool: Pool, held: Ints) -> Scores:
    """(n, 8) `FEATURES` of every candidate, given the set `held` (places in the pool). What is not known is 0.

    The question's rest is q less its projection on the span of the set's vectors, at unit length; 0 where nothing is
    left.
    """
    vectors = np.nan_to_num(np.asarray(pool.vectors, np.float64), posinf=0.0, neginf=0.0)
    rest = residual(np.nan_to_num(np.asarray(query.vector, np.float64)), vectors[held])
    n, size = len(pool), max(len(held), 1)
    nearest = (vectors @ vectors[held].T).max(axis=1) if len(held) else np.zeros(n)
    days = np.abs(pool.times[:, None] - pool.times[held][None, :]) / _DAY
    close = np.nan_to_num(1.0 / (1.0 + days)).max(axis=1) if len(held) else np.zeros(n)
    columns = (
        np.nan_to_num(pool.dense),
        vectors @ rest,
        nearest,
        np.nan_to_num(unit_range(pool.lexical)),
        (pool.sessions[:, None] == pool.sessions[held]).sum(axis=1) / size,
        close,
        (pool.speakers[:, None] == pool.speakers[held]).sum(axis=1) / size,
        np.arange(n) / max(n, 1),
    )
    return np.column_stack(columns)


def residual(question: Scores, evidence: Scores) -> Scores:
    """(d,) the unit vector of `question` less its projection on the rows of `evidence` (m, d); 0 if none is left."""
    if len(evidence):
        products = np.linalg.pinv(evidence @ evidence.T, rcond=1e-10, hermitian=True)
        question = question - evidence.T @ (products @ (evidence @ question))
    length = float(np.linalg.norm(question))
    return question / length if length > 1e-6 else np.zeros_like(question)

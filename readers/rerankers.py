"""Which candidates does a model score highest, each by itself?"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from readers.ranking import descending
from readers.replies import shown, yes_share
from readers.types import Access, Budget, Evidence, Floats, Pool, Query, Step, fallback, selected

DIALECTS = ("jina", "tei", "vllm", "vllm_score")


@dataclass(frozen=True)
class CrossEncoder:
    """The `depth` best of the pool by a cross-encoder behind a rerank endpoint; the rest keep their native order.

    `dialect`: how the endpoint is asked: `jina` (Cohere and others speak it too), `tei`, `vllm` or `vllm_score`. Scores
    are asked for whole texts without dates; `calls` stays 0. Ties go to the native rank.
    Raises `ValueError` for an unknown dialect or a depth below one.
    """

    model: str = ""
    dialect: str = "jina"
    depth: int = 200

    title: ClassVar[str] = "Top records by a cross-encoder behind a rerank endpoint"
    source: ClassVar[str] = "Nogueira & Cho 2019, Passage Re-ranking with BERT (arXiv 1901.04085)"

    def __post_init__(self) -> None:
        if self.dialect not in DIALECTS:
            raise ValueError(f"dialect ({self.dialect}) must be one of {', '.join(DIALECTS)}")
        _check_depth(self.depth)

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        if not len(pool):
            return Evidence((), "empty_pool")
        texts = [note.text for note in access.notes(pool.ids[: self.depth])]
        scores = access.rerank(query.text, texts, self.dialect)
        return _best_first(scores, pool, budget)


@dataclass(frozen=True)
class LlmPointwise:
    """The `depth` best of the pool by P(yes) / (P(yes) + P(no)), the model asked of each whether it helps to answer.

    One ask a candidate, of which the first token alone counts; spellings of a label add up. A label that is not among
    the endpoint's likeliest tokens has the probability `floor`; where neither is, the score is 0 and the trace says how
    many such there were (`fallback`). Ties go to the native rank; what is deeper than `depth` keeps it.
    Inferred, because the paper of the arm gives no prompt: ours. Raises `ValueError` for a parameter out of range.
    """

    model: str = ""
    depth: int = 200
    floor: float = 1e-6

    prompts: ClassVar[tuple[str, ...]] = ("pointwise",)
    title: ClassVar[str] = "Top records by a model's probability of yes, each asked by itself"
    source: ClassVar[str] = "arXiv 2610.15642, its pointwise reranker; Nogueira et al. 2020 (arXiv 2003.06713)"

    def __post_init__(self) -> None:
        _check_depth(self.depth)
        if not 0 < self.floor < 1:
            raise ValueError(f"floor ({self.floor}) must be in (0, 1)")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        if not len(pool):
            return Evidence((), "empty_pool")
        notes = access.notes(pool.ids[: self.depth])
        each = [{"question": query.text, "record": shown([note]).removeprefix("[1] ")} for note in notes]
        shares = [yes_share(tokens, self.floor) for tokens in access.first_tokens("pointwise", each)]
        scores = np.array([0.0 if share is None else share for share in shares])
        evidence = _best_first(scores, pool, budget)
        mute = shares.count(None)
        taken = Step("select", "", evidence.ids, evidence.ids)
        steps = (fallback(f"neither yes nor no of {mute} records: score 0"), taken) if mute else ()
        return replace(evidence, trace=steps)


def _best_first(scores: Floats, pool: Pool, budget: Budget) -> Evidence:
    """The scored head of the pool by score, then its tail as it was; the gains are the scores, NaN of the tail."""
    tail = np.arange(len(scores), len(pool))
    order = np.concatenate([descending(scores), tail]).astype(np.intp)
    gains = np.concatenate([scores, np.full(len(tail), np.nan)])[order]
    return selected(pool, order, budget, gains=gains)


def _check_depth(depth: int) -> None:
    if depth < 1:
        raise ValueError(f"depth ({depth}) must be at least 1")

"""An access whose model says what a test tells it to."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from readers.types import Budget
from tasks.access import Library, QuestionAccess

Say = Callable[[str, Mapping[str, str]], str]

ORDERLY = {
    "requirements": '{"requirements": [{"id": "R1", "description": "where she went", "type": "answer_bearing_fact"}]}',
    "subset": '{"selected": [1], "missing": []}',
    "setr": "Selected: [1]",
    "rankgpt": "Ranking: [1]",
    "mragent": '{"calls": [{"tool": "search_text", "value": "She went"}]}',
    "mera_plan": '{"query": "She went"}',
    "mera_verify": '{"records": [1, 2]}',
}
"""Replies under which every reader that orders the pool keeps a pool of equals as it is."""


def orderly(prompt: str, variables: Mapping[str, str]) -> str:
    """The reply of `ORDERLY`."""
    return ORDERLY[prompt]


class ToldAccess(QuestionAccess):
    """`told` holds (prompt, variables) of every ask; `score` rates a text for both kinds of reranker."""

    def __init__(
        self,
        library: Library,
        budget: Budget,
        say: Say = orderly,
        score: Callable[[str], float] = lambda text: 0.5,
    ) -> None:
        super().__init__(library, budget)
        self.say, self.score = say, score
        self.told: list[tuple[str, dict[str, str]]] = []

    def ask(self, prompt: str, **variables: str) -> str:
        self.told.append((prompt, variables))
        return self.say(prompt, variables)

    def first_tokens(self, prompt: str, each: Sequence[Mapping[str, str]]) -> list[dict[str, float]]:
        self.told += [(prompt, dict(variables)) for variables in each]
        shares = [self.score(variables["record"]) for variables in each]
        return [{"yes": float(np.log(share)), "no": float(np.log1p(-share))} for share in shares]

    def rerank(self, question: str, texts: Sequence[str], dialect: str) -> Any:
        return np.array([self.score(text) for text in texts])

"""A reader's access with a model to ask: prompts rendered, replies from the ledger, asks and tokens counted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from readers.types import Asked, Budget, ModelFailed
from storage.errors import InputError
from tasks import prompts
from tasks.access import Library, QuestionAccess
from tasks.llm import Model, Reply, Request, ask
from tasks.llm.rerank import rerank

_ALTERNATIVES = 20
"""Alternatives of a first token that are asked for: the most that common endpoints give."""


class ModelAccess(QuestionAccess):
    """One question's reads of a `Library` and asks of a `Model`.

    An ask that was made for this question already is answered from memory and not counted again. A reply that the
    endpoint refused to give, or gave empty, is the empty text, which a reader meets with its fallback; where there was
    no reply at all `ModelFailed` is raised. `InputError`, `EndpointError` and `BudgetStop` come from `tasks.llm`.
    `waited`: seconds spent in asking, waits for a place at the endpoint included.
    """

    def __init__(self, library: Library, budget: Budget, lake: str, model: Model) -> None:
        super().__init__(library, budget)
        # What a reader asks next depends on the reply: no ask can wait a day for its batch.
        self._lake, self._model = lake, replace(model, batch=False)
        self._held: dict[str, Reply] = {}
        self._seconds = 0.0
        self.waited = 0.0

    @property
    def asked(self) -> Asked:
        """What was asked so far; the seconds of asks that were sent together are those of the slowest."""
        replies = list(self._held.values())
        return Asked(
            asks=len(replies),
            prompt_tokens=_total([reply.prompt_tokens for reply in replies]),
            completion_tokens=_total([reply.completion_tokens for reply in replies]),
            seconds=self._seconds,
        )

    def ask(self, prompt: str, **variables: str) -> str:
        """The reply to a prompt of `tasks/prompts/readers`. Raises `InputError` where its variables do not fit."""
        return self._text(self._replies(_requests(self._model, prompt, [variables]))[0])

    def first_tokens(self, prompt: str, each: Sequence[Mapping[str, str]]) -> list[dict[str, float]]:
        """The likeliest first tokens of each reply, of which one token is asked for, all fillings together.

        Raises `InputError` where the endpoint gives a reply without log-probabilities.
        """
        model = replace(self._model, max_tokens=1)
        requests = _requests(model, prompt, each, _ALTERNATIVES)
        return [self._alternatives(reply) for reply in self._replies(requests)]

    def rerank(self, question: str, texts: Sequence[str], dialect: str) -> NDArray[np.float64]:
        """(n,) scores of `texts` for the question, from the model's rerank endpoint."""
        start = perf_counter()
        scores, calls = rerank(self._lake, self._model, question, texts, dialect)
        self.waited += perf_counter() - start
        self._held |= calls
        self._seconds += sum(reply.latency_s or 0.0 for reply in calls.values())
        return np.array(scores, np.float64)

    def _replies(self, requests: Sequence[Request]) -> list[Reply]:
        new = [request for request in requests if request.digest not in self._held]
        if new:
            start = perf_counter()
            replies = ask(self._lake, new)
            self.waited += perf_counter() - start
            failed = next((reply for reply in replies if reply.status == "failed" and not reply.finish_reason), None)
            if failed:
                raise ModelFailed(f"model {self._model.name}: {failed.error}")
            self._held |= dict(zip((request.digest for request in new), replies, strict=True))
            self._seconds += max(reply.latency_s or 0.0 for reply in replies)
        return [self._held[request.digest] for request in requests]

    def _alternatives(self, reply: Reply) -> dict[str, float]:
        if reply.top_logprobs is None and reply.status in ("ok", "truncated"):
            raise InputError(
                f"model {self._model.name}: log-probabilities of the first token expected, none found; "
                f"llm_pointwise needs an endpoint and a model that give top_logprobs"
            )
        # Most likely first; a token that is spelled alike twice keeps its greater probability.
        return dict(reversed(reply.top_logprobs or ()))

    @staticmethod
    def _text(reply: Reply) -> str:
        return (reply.text or "") if reply.status != "refused" else ""


def _requests(model: Model, prompt: str, each: Sequence[Mapping[str, str]], alternatives: int = 0) -> list[Request]:
    said, purpose = prompts.load("readers", prompt), f"reader: {prompt}"
    rendered = [said.render(**variables) for variables in each]
    return [Request(model, shown, said.digest, top_logprobs=alternatives, purpose=purpose) for shown in rendered]


def _total(counts: Sequence[int | None]) -> int | None:
    """The sum; None where one was not counted."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None

"""Texts to relevance scores, from a rerank endpoint in the dialect it speaks."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from threading import BoundedSemaphore
from time import monotonic, sleep
from typing import Any

from storage.digests import digest
from tasks.llm.ask import ledger
from tasks.llm.budget import in_force
from tasks.llm.endpoint import closed
from tasks.llm.faults import Malformed
from tasks.llm.keys import address, key, shown
from tasks.llm.model import Message, Model, Reply, Request
from tasks.llm.once import once
from tasks.llm.patience import PATIENCE, GaveUp, Policy, patiently
from tasks.llm.prices import cost, price
from tasks.llm.rows import from_row, to_call, to_row


@dataclass(frozen=True)
class Dialect:
    """How an endpoint is asked. `results`: key of the list of scores, empty where the body is the list.

    `most`: texts a request; more are sent in chunks, which a score by itself does not notice.
    """

    path: str
    body: Callable[[str, str, Sequence[str]], dict[str, Any]]
    results: str
    score: str
    most: int


def _jina(model: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
    return {"model": model, "query": query, "documents": texts, "top_n": len(texts), "return_documents": False}


def _tei(model: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
    return {"query": query, "texts": texts, "truncate": True, "truncation_direction": "Right", "return_text": False}


def _vllm(model: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
    return {"model": model, "query": query, "documents": texts, "top_n": len(texts), "truncate_prompt_tokens": -1}


def _vllm_score(model: str, query: str, texts: Sequence[str]) -> dict[str, Any]:
    return {"model": model, "text_1": query, "text_2": texts, "truncate_prompt_tokens": -1}


DIALECTS = {
    "jina": Dialect("/rerank", _jina, "results", "relevance_score", 1000),
    "tei": Dialect("/rerank", _tei, "", "score", 32),
    "vllm": Dialect("/rerank", _vllm, "results", "relevance_score", 1000),
    "vllm_score": Dialect("/score", _vllm_score, "data", "score", 1000),
}
"""The first is also Cohere's. It cuts long texts by itself; the others are told to."""


def rerank(
    lake: str, model: Model, query: str, texts: Sequence[str], dialect: str, *, policy: Policy = PATIENCE
) -> tuple[list[float], dict[str, Reply]]:
    """A score for each of `texts`, in their order, and the calls behind them: digest → reply, its text the scores.

    Every index must come back exactly once, in any order; a reply in which one lacks or repeats is asked for again, as
    after status 429, 5xx and a cut connection. Calls are kept in the lake's ledger and never made twice, at most
    `concurrency` at a time; limits a minute are not heeded. `extra` of the model is merged into the request.
    Raises `InputError` where calls are refused, `EndpointError` where no usable reply is had, `BudgetStop`.
    """
    spoken = DIALECTS[dialect]
    scores: list[float] = []
    calls: dict[str, Reply] = {}
    for start in range(0, len(texts), spoken.most):
        chunk = list(texts[start : start + spoken.most])
        request = _request(model, spoken, query, chunk)
        reply = _known(lake, request) or _asked(lake, model, request, spoken, len(chunk), policy)
        calls[request.digest] = reply
        scores += json.loads(reply.text or "")
    return scores, calls


def _request(model: Model, dialect: Dialect, query: str, texts: Sequence[str]) -> Request:
    """The request as the ledger knows it: its one message is the body."""
    body = dialect.body(model.model, query, texts) | dict(model.extra)
    said = Message("user", json.dumps(body, ensure_ascii=False, sort_keys=True))
    return Request(model, (said,), digest(["rerank", dialect.path, dialect.score]), purpose="reader: rerank")


def _known(lake: str, request: Request) -> Reply | None:
    row = ledger(lake).find([request.digest]).get(request.digest)
    return from_row(row) if row else None


def _asked(lake: str, model: Model, request: Request, dialect: Dialect, size: int, policy: Policy) -> Reply:
    url, secret, budget = address(model.base_url), key(model), in_force(lake)
    attempts, listed = count(1), price(model, datetime.now(UTC).date())
    guess = cost(listed, request.characters / 4, 0.0)

    def call() -> Reply:
        attempt, spent = next(attempts), None
        while not budget.reserve(model.name, guess):
            sleep(_SETTLING_S)
        try:
            start, body = monotonic(), json.loads(request.messages[0].content)
            said = _client(url, secret).post(
                dialect.path, cast_to=object, body=body, options={"timeout": model.timeout_s}
            )
            reply = _reply(said, dialect, size)
            paid = cost(listed, reply.prompt_tokens, reply.completion_tokens)
            spent = guess if paid is None else paid
            return replace(reply, cost=paid, latency_s=monotonic() - start, attempts=attempt)
        finally:
            budget.settle(guess, spent)

    with _places(url, model.concurrency):
        try:
            reply = patiently(call, secret, policy)
        except GaveUp as error:
            raise closed(f"{url}{dialect.path}", model, error.fault) from None
    ledger(lake).append([to_row(to_call(request, shown(url)), reply)])
    return reply


def _reply(said: Any, dialect: Dialect, size: int) -> Reply:
    """The scores in the texts' order. Raises `Malformed` unless every index stands exactly once with a finite score."""
    items = said.get(dialect.results) if dialect.results and isinstance(said, dict) else said
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Malformed
    pairs = [(item.get("index"), item.get(dialect.score)) for item in items]
    scores = {place: float(score) for place, score in pairs if _index(place) and _finite(score)}
    if len(pairs) != size or sorted(scores) != list(range(size)):
        raise Malformed
    used = said.get("usage") if isinstance(said, dict) else None
    tokens = used.get("total_tokens") if isinstance(used, dict) else None
    return Reply(
        text=json.dumps([scores[place] for place in range(size)]),
        status="ok",
        finish_reason="stop",
        prompt_tokens=tokens if _index(tokens) else None,
        completion_tokens=0 if _index(tokens) else None,
    )


def _index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@once
def _client(url: str, secret: str) -> Any:
    import openai  # slow to import, and only needed where an endpoint is asked

    return openai.OpenAI(base_url=url, api_key=secret, max_retries=0)


@once
def _places(url: str, most: int) -> BoundedSemaphore:
    return BoundedSemaphore(most)


_SETTLING_S = 0.02

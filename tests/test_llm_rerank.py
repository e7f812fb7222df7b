"""A rerank endpoint's scores come back in the texts' order, each exactly once, or not at all."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from readers.rerankers import DIALECTS as KNOWN
from storage.errors import InputError
from tasks.llm import EndpointError, Model, ledger
from tasks.llm.budget import BudgetStop, budget
from tasks.llm.patience import Policy
from tasks.llm.rerank import DIALECTS, rerank

QUICK = Policy(attempts=3, first_wait_s=0.0)
TEXTS = [f"text {place}" for place in range(70)]
Items = list[dict[str, Any]]


def score(text: str) -> float:
    """What the endpoint thinks of a text: distinct, and not in the texts' order."""
    return int(text.split()[1]) * 37 % 101 / 101


class Endpoint:
    """Speaks the four dialects, in shuffled order; `spoil` changes the items of one reply after the other."""

    def __init__(self, server: HTTPServer) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.spoil: list[Callable[[Items], Items | Response]] = []
        for path in ("/v1/rerank", "/v1/score"):
            server.expect_request(path, method="POST").respond_with_handler(self.reply)
        self.url = server.url_for("/v1")

    def reply(self, request: Request) -> Response:
        body = json.loads(request.data)
        self.bodies.append(body)
        texts = body.get("documents") or body.get("texts") or body["text_2"]
        name = "relevance_score" if "documents" in body else "score"
        items: Any = [{"index": place, name: score(text)} for place, text in enumerate(texts)]
        random.Random(len(self.bodies)).shuffle(items)
        items = self.spoil.pop(0)(items) if self.spoil else items
        if isinstance(items, Response):
            return items
        key = "results" if "documents" in body else "data"
        return Response(json.dumps(items if "texts" in body else {key: items}), content_type="application/json")

    def ask(self, lake: Path, texts: list[str] = TEXTS, dialect: str = "jina", query: str = "q", **said: Any) -> Any:
        return rerank(str(lake), Model("r", "bge", self.url, **said), query, texts, dialect, policy=QUICK)


@pytest.fixture
def endpoint(httpserver: HTTPServer) -> Endpoint:
    return Endpoint(httpserver)


def test_readers_know_the_dialects_that_are_spoken() -> None:
    assert set(KNOWN) == set(DIALECTS)


@pytest.mark.parametrize(
    ("dialect", "sizes", "said"),
    [
        ("jina", [70], {"model": "bge", "query": "q", "top_n": 70, "return_documents": False}),
        ("tei", [32, 32, 6], {"query": "q", "truncate": True}),
        ("vllm", [70], {"model": "bge", "query": "q", "top_n": 70, "truncate_prompt_tokens": -1}),
        ("vllm_score", [70], {"model": "bge", "text_1": "q", "truncate_prompt_tokens": -1}),
    ],
)
def test_every_dialect_is_asked_as_it_expects_and_read_in_any_order(
    endpoint: Endpoint, tmp_path: Path, dialect: str, sizes: list[int], said: dict[str, Any]
) -> None:
    scores, calls = endpoint.ask(tmp_path, dialect=dialect)
    assert scores == [score(text) for text in TEXTS]
    assert [len(body.get("documents") or body.get("texts") or body["text_2"]) for body in endpoint.bodies] == sizes
    assert said.items() <= endpoint.bodies[0].items()
    assert len(calls) == len(sizes)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda items: items[1:],
        lambda items: [*items, items[0]],
        lambda items: [*items[1:], items[1]],
        lambda items: [*items[1:], items[0] | {"index": 70}],
        lambda items: [*items[1:], items[0] | {"index": "0"}],
        lambda items: [*items[1:], {"index": items[0]["index"]}],
        lambda items: [*items[1:], items[0] | {"relevance_score": float("nan")}],
        lambda items: Response("busy", 429, {"Retry-After": "0"}),
        lambda items: Response("down", 503, {"Retry-After": "0"}),
        lambda items: Response("<html>", 200),
    ],
    ids=["missing", "twice", "twice for another", "beyond", "a text", "no score", "nan", "429", "503", "html"],
)
def test_a_reply_that_does_not_score_every_index_once_is_asked_for_again(
    endpoint: Endpoint, tmp_path: Path, spoil: Callable[[Items], Items | Response]
) -> None:
    endpoint.spoil = [spoil]
    scores, calls = endpoint.ask(tmp_path)
    assert scores == [score(text) for text in TEXTS]
    assert len(endpoint.bodies) == 2
    assert [reply.attempts for reply in calls.values()] == [2]


def test_an_endpoint_that_never_scores_all_is_an_error_of_its_own_and_nothing_is_kept(
    endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.spoil = [lambda items: items[1:]] * 3
    with pytest.raises(EndpointError, match="no usable reply, a malformed reply"):
        endpoint.ask(tmp_path)
    assert len(endpoint.bodies) == 3
    assert endpoint.ask(tmp_path)[0] == [score(text) for text in TEXTS]


def test_a_refused_key_is_told_once_and_never_shown(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RERANK_KEY", "sk-canary")
    body = json.dumps({"error": {"message": "bad key sk-canary"}})
    endpoint.spoil = [lambda items: Response(body, 401, content_type="application/json")]
    with pytest.raises(InputError, match=r"status 401.*RERANK_KEY") as caught:
        endpoint.ask(tmp_path, key_variable="RERANK_KEY")
    assert "canary" not in str(caught.value)
    assert len(endpoint.bodies) == 1


def test_scores_that_were_paid_for_are_not_bought_again(endpoint: Endpoint, tmp_path: Path) -> None:
    first, _ = endpoint.ask(tmp_path, dialect="tei")
    again, calls = endpoint.ask(tmp_path, dialect="tei")
    assert again == first and len(endpoint.bodies) == 3 and len(calls) == 3
    assert ledger(str(tmp_path)).rows()["purpose"].to_list() == ["reader: rerank"] * 3
    endpoint.ask(tmp_path, dialect="tei", query="another")
    endpoint.ask(tmp_path, dialect="tei", extra={"raw_scores": True})
    assert len(endpoint.bodies) == 9
    assert endpoint.bodies[-1]["raw_scores"] is True


def test_nothing_is_asked_about_no_texts(endpoint: Endpoint, tmp_path: Path) -> None:
    assert endpoint.ask(tmp_path, texts=[]) == ([], {})
    assert endpoint.bodies == []


def test_a_bounded_cost_counts_scores_at_their_price(endpoint: Endpoint, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a price of model r expected"), budget(str(tmp_path), max_cost=1):
        endpoint.ask(tmp_path)
    with pytest.raises(BudgetStop, match="--max-cost 400"), budget(str(tmp_path), max_cost=400) as spent:
        for query in "abcdef":
            endpoint.ask(tmp_path, query=query, prompt_price=1e6, completion_price=0.0)  # a dollar a token
    assert spent.calls == len(endpoint.bodies) >= 1
    assert 0 < spent.cost <= 400

"""Arms that ask a model: what is kept, what is asked again, and what their addresses depend on."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Barrier, Lock
from typing import Any

import polars as pl
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from flows import protocol as protocols
from storage.errors import InputError
from storage.lake import Lake
from tasks import prompts
from tasks.candidates import build_pools
from tasks.compose import compose, missing_cells, selected
from tasks.consult import consult
from tasks.index import build_index, chunks_to_embed, embed_chunk
from tasks.ingest import ingest
from tasks.llm import BudgetStop, budget, ledger
from tasks.plan import Plan
from tasks.store import write_store
from tests.conftest import conversation, write_locomo
from tests.told_access import ORDERLY

CANARY = "canary-7f3a"
Body = dict[str, Any]


class Endpoint:
    """Chat completions by what a prompt of ours asks for; `rule`: body → another response, or None."""

    def __init__(self, server: HTTPServer) -> None:
        self.bodies: list[Body] = []
        self.rule: Callable[[Body], Response | None] = lambda body: None
        self._lock = Lock()
        server.expect_request("/v1/chat/completions", method="POST").respond_with_handler(self.reply)
        self.url = server.url_for("/v1")

    def reply(self, request: Request) -> Response:
        body = json.loads(request.data)
        with self._lock:
            self.bodies.append(body)
        return self.rule(body) or completion(_said(body))


def completion(text: str, **choice: Any) -> Response:
    said = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}, **choice}
    used = {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [said], "usage": used}
    return Response(json.dumps(body), content_type="application/json")


def _said(body: Body) -> str:
    marks = {"Selected:": "setr", "Ranking:": "rankgpt", '"requirements"': "requirements", '"selected"': "subset"}
    text = body["messages"][-1]["content"]
    return next(ORDERLY[prompt] for mark, prompt in marks.items() if mark in text)


@pytest.fixture(scope="module")
def threaded() -> Iterator[HTTPServer]:
    with HTTPServer(threaded=True) as held:
        yield held


@pytest.fixture
def endpoint(threaded: HTTPServer) -> Endpoint:
    threaded.clear()
    return Endpoint(threaded)


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a lake up to its pools and the benchmark file behind it; tests copy it."""
    folder = tmp_path_factory.mktemp("consult")
    said = conversation()
    for asked in said["qa"]:
        asked["answer"] = CANARY
    write_locomo(folder / "data.json", said)
    plan = _plan(folder, "http://127.0.0.1:9/v1", ["hybrid@k2"])
    store = plan.stores[0]
    write_store(plan, store)
    for chunk in chunks_to_embed(plan, store):
        embed_chunk(plan, store, chunk)
    build_index(plan, store)
    build_pools(plan, store, plan.conversation_ids())
    return folder


@pytest.fixture
def folder(pools: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(pools, tmp_path / "copy"))


def _plan(folder: Path, url: str, arms: list[str], **changes: Any) -> Plan:
    model = {"models.small.model": "m", "models.small.base_url": url}
    said = {"data.path": str(folder / "data.json"), "arms": arms, "budgets": ["k2"], **model, **changes}
    protocol = protocols.load("sample", said)
    lake = str(Lake.open(folder / "lake").root)
    dataset = ingest(lake, protocol.data.benchmark, protocol.data.path)
    return protocol.plan(lake, dataset.dataset, dataset.gold)


def _consult(plan: Plan) -> int:
    return consult(plan, plan.stores[0], plan.conversation_ids())


def _rows(plan: Plan) -> dict[tuple[str, str], dict[str, Any]]:
    rows = selected(plan, plan.stores[0], where=pl.lit(True))
    return {(row["arm"], row["question_id"]): row for row in rows.iter_rows(named=True)}


def test_asks_and_tokens_are_counted_a_question_and_nothing_is_asked_twice(folder: Path, endpoint: Endpoint) -> None:
    plan = _plan(folder, endpoint.url, ["hybrid", "setr(model=small)", "fca_ms_model(model=small)"])
    assert compose(plan, plan.stores[0], ["c1"]) == 3
    assert _consult(plan) == 6
    told = {arm: row for (arm, _), row in _rows(plan).items()}
    counted = {
        arm: (row["asks"], row["prompt_tokens"], row["completion_tokens"], row["fallbacks"])
        for arm, row in told.items()
    }
    assert counted == {
        "hybrid@k2": (None, None, None, None),
        "setr(model=small)@k2": (1, 11, 3, 0),
        "fca_ms_model(model=small)@k2": (2, 22, 6, 0),
    }
    assert len(endpoint.bodies) == 9
    assert CANARY not in json.dumps(endpoint.bodies)
    assert _consult(plan) == 0 and missing_cells(plan, plan.stores[0], plan.arms).is_empty()
    wider = _plan(folder, endpoint.url, ["setr(model=small)@k1"])
    assert _consult(wider) == 3
    assert len(endpoint.bodies) == 9, "another budget selects anew from replies that are paid for"


def test_an_arm_with_a_model_has_an_address_of_the_model_and_the_prompts_and_no_other_arm_has(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forms = ["hybrid", "setr(model=small)", "rankgpt(model=small)", "bfr_mv_model(model=small)@C6"]

    def addresses(**changes: Any) -> list[str]:
        plan = _plan(folder, "http://127.0.0.1:9/v1", forms, **changes)
        return [plan.selections(plan.stores[0], arm) for arm in plan.arms]

    before = addresses()
    assert len(set(before)) == 4
    assert addresses(**{"models.small.base_url": "http://127.0.0.1:8/v1", "models.small.concurrency": 2}) == before
    other = addresses(**{"models.small.model": "n"})
    assert [a == b for a, b in zip(before, other, strict=True)] == [True, False, False, False]
    shipped = tmp_path / "prompts"
    shutil.copytree(prompts.SHIPPED, shipped)
    monkeypatch.setattr(prompts, "SHIPPED", shipped)
    assert addresses() == before
    for name, changed in (("setr", [1]), ("subset", [1, 3]), ("requirements", [1, 3]), ("rankgpt", [1, 2, 3])):
        path = shipped / "readers" / f"{name}.md"
        path.write_text(path.read_text() + "\nBe brief.")
        assert [i for i in range(4) if addresses()[i] != before[i]] == changed


def test_a_question_without_a_reply_stays_missing_and_is_asked_again_alone(
    folder: Path, endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    plan = _plan(folder, endpoint.url, ["setr(model=small)"])
    refused = Response(json.dumps({"error": {"message": "too long"}}), 400, content_type="application/json")
    endpoint.rule = lambda body: refused if "Kiwi?" in body["messages"][-1]["content"] else None
    assert _consult(plan) == 2
    assert "1 questions without a reply of model small stay missing" in caplog.text
    assert missing_cells(plan, plan.stores[0], plan.arms)["question_id"].to_list() == ["c1/q1"]
    endpoint.rule = lambda body: None
    assert _consult(plan) == 1
    assert len(endpoint.bodies) == 4


@pytest.mark.parametrize(("reply", "text"), [("refused", "I cannot help."), ("empty", "")])
def test_a_refusal_and_an_empty_reply_are_fallbacks_that_are_counted(
    folder: Path, endpoint: Endpoint, reply: str, text: str
) -> None:
    finish = "content_filter" if reply == "refused" else "stop"
    endpoint.rule = lambda body: completion(text, finish_reason=finish)
    plan = _plan(folder, endpoint.url, ["setr(model=small)", "hybrid"])
    compose(plan, plan.stores[0], ["c1"])
    assert _consult(plan) == 3
    rows = _rows(plan)
    for question in {question for _, question in rows}:
        row = rows["setr(model=small)@k2", question]
        assert row["fallbacks"] == 1 and row["trace"][0]["view"] == "fallback"
        assert row["record_ids"] == rows["hybrid@k2", question]["record_ids"]


def test_questions_wait_side_by_side(folder: Path, endpoint: Endpoint) -> None:
    together = Barrier(3, timeout=30)
    endpoint.rule = lambda body: together.wait() and None
    assert _consult(_plan(folder, endpoint.url, ["setr(model=small)"])) == 3


def test_a_spent_budget_keeps_what_was_read_and_the_next_run_goes_on(folder: Path, endpoint: Endpoint) -> None:
    plan = _plan(folder, endpoint.url, ["setr(model=small)"], **{"models.small.concurrency": 1})
    with budget(plan.lake, max_calls=1), pytest.raises(BudgetStop):
        _consult(plan)
    assert len(_rows(plan)) == 1
    assert _consult(plan) == 2
    assert len(endpoint.bodies) == 3


def test_a_refused_key_stops_the_arm_in_one_line(folder: Path, endpoint: Endpoint) -> None:
    endpoint.rule = lambda body: Response("{}", 401, content_type="application/json")
    plan = _plan(
        folder, endpoint.url, ["rankgpt(model=small)"], **{"models.small.concurrency": 1, "models.small.model": "x"}
    )
    with pytest.raises(InputError, match="calls are refused with status 401"):
        _consult(plan)
    assert len(endpoint.bodies) == 1, "what has not begun is not sent"


def test_pointwise_scores_come_from_first_tokens_and_one_token_is_asked_for(folder: Path, endpoint: Endpoint) -> None:
    def weighed(body: Body) -> Response:
        yes = -0.1 if "parrot" in body["messages"][-1]["content"].split("Record:")[1] else -3.0
        pairs = [{"token": " Yes", "logprob": yes}, {"token": "no", "logprob": -1.0}]
        return completion("Yes", logprobs={"content": [{"token": "Yes", "logprob": yes, "top_logprobs": pairs}]})

    endpoint.rule = weighed
    plan = _plan(folder, endpoint.url, ["llm_pointwise(model=small)@all"])
    assert _consult(plan) == 3
    for row in _rows(plan).values():
        best = 1 / (1 + 2.718281828459045 ** (-1.0 + 0.1))
        least = 1 / (1 + 2.718281828459045 ** (-1.0 + 3.0))
        assert row["gains"] == pytest.approx([best] * 3 + [least])
        assert row["asks"] == 4
    assert {body["max_tokens"] for body in endpoint.bodies} == {1}
    assert len(ledger(plan.lake).rows()) == 12
    endpoint.rule = lambda body: None if "Selected" in str(body) else completion("Yes")
    with pytest.raises(InputError, match="log-probabilities of the first token expected"):
        _consult(_plan(folder, endpoint.url, ["llm_pointwise(model=small)@all"], **{"models.small.model": "n"}))


@pytest.mark.parametrize("form", ["setr@k2", "setr(model=large)@k2", "bfr_mv_model@C6"])
def test_an_arm_whose_model_the_protocol_lacks_is_refused(folder: Path, form: str) -> None:
    with pytest.raises(InputError, match=r"one of the models small expected, named as \(model=NAME\)"):
        _plan(folder, "http://127.0.0.1:9/v1", [form])

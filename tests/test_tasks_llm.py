"""A reply is had where it can be, kept the moment it comes, and never asked for twice."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Any, get_args

import pytest

from storage.calls import Ledger
from storage.errors import InputError
from storage.lake import Lake
from tasks.llm import BudgetStop, EndpointError, Message, Model, Reply, Request, ask, budget, ledger
from tasks.llm.completions import parse
from tasks.llm.engine import Engine, _engine_of
from tasks.llm.faults import Malformed, fault
from tasks.llm.lanes import Lane, Pace
from tasks.llm.model import Outcome
from tasks.llm.patience import Policy
from tasks.llm.prices import Price, cost, price
from tasks.llm.rows import to_call, to_row
from tasks.llm.spent import spent
from tests.fault_server import (
    CUT,
    EMPTY,
    FILTERED,
    HANG,
    MALFORMED,
    NEVER_ENDS,
    NO_CHOICES,
    NULL,
    REFUSAL,
    TRUNCATED,
    TRUNCATED_NULL,
    Fault,
    FaultServer,
    error,
    said,
)

ROOT = Path(__file__).parents[1]
QUICK = Policy(attempts=4, first_wait_s=0.001)


@pytest.fixture
def endpoint() -> Iterator[FaultServer]:
    with FaultServer() as server:
        yield server


def model(endpoint: FaultServer, **changes: Any) -> Model:
    return replace(Model("small", "m", endpoint.url, temperature=0.0, max_tokens=16), **changes)


def requests(model: Model, *texts: str, **changes: Any) -> list[Request]:
    return [replace(Request(model, (Message("user", text),), "p"), **changes) for text in texts]


def test_replies_come_in_the_requests_order_and_are_asked_once(endpoint: FaultServer, tmp_path: Path) -> None:
    texts = [f"q{place % 7}" for place in range(20)]
    for _ in range(2):
        replies = ask(str(tmp_path), requests(model(endpoint), *texts))
        assert [reply.text for reply in replies] == [f"echo: {text}" for text in texts]
        assert len(endpoint.asked()) == 7
    assert replies[0] == Reply("echo: q0", "ok", "stop", 1, 2, None, replies[0].latency_s)


def test_a_reply_is_told_as_it_comes_and_a_held_one_at_once(endpoint: FaultServer, tmp_path: Path) -> None:
    told: list[tuple[int, str | None]] = []
    asked = requests(model(endpoint), "a", "b", "a")
    for _ in range(2):
        told.clear()
        ask(str(tmp_path), asked, on_reply=lambda place, reply: told.append((place, reply.text)))
        assert sorted(told) == [(0, "echo: a"), (1, "echo: b"), (2, "echo: a")]


@pytest.mark.parametrize(
    "change",
    [
        {"model": {"model": "n"}},
        {"model": {"temperature": 0.5}},
        {"model": {"top_p": 0.5}},
        {"model": {"max_tokens": 17}},
        {"model": {"seed": 1}},
        {"model": {"extra": {"reasoning_effort": "low"}}},
        {"prompt": "other"},
        {"repeat": 1},
        {"top_logprobs": 2},
        {"messages": (Message("system", "q"),)},
        {"messages": (Message("user", "q"), Message("user", ""))},
    ],
)
def test_all_that_changes_a_reply_is_in_the_digest(change: dict[str, Any]) -> None:
    one = Request(Model("small", "m", temperature=0.0), (Message("user", "q"),), "p")
    changed = {**change, "model": replace(one.model, **change["model"])} if "model" in change else change
    assert replace(one, **changed).digest != one.digest


def test_how_a_model_is_reached_and_named_is_not_in_the_digest() -> None:
    one = Request(Model("small", "m"), (Message("user", "q"),), "p")
    reached = Model("other", "m", "http://x/v1", key_variable="K", concurrency=3, requests_per_minute=9, batch=True)
    assert replace(one, model=reached, purpose="judge").digest == one.digest


def test_what_is_not_given_is_not_sent_and_extra_is(endpoint: FaultServer, tmp_path: Path) -> None:
    bare = Model("small", "m", endpoint.url, extra={"reasoning_effort": "low", "top_k": 5})
    ask(str(tmp_path), requests(bare, "q"))
    assert endpoint.asked()[0].body == {
        "model": "m",
        "messages": [{"role": "user", "content": "q"}],
        "reasoning_effort": "low",
        "top_k": 5,
    }


def test_threads_that_ask_first_share_one_ledger_and_one_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two would each count its own calls alone, and each keep to the model's concurrency alone."""
    together = threading.Barrier(4)
    for made in (Ledger, Engine):
        begun = made.__init__

        def slowly(self: Any, *given: Any, begun: Any = begun) -> None:
            sleep(0.05)
            begun(self, *given)

        monkeypatch.setattr(made, "__init__", slowly)

    def first(_: int) -> tuple[int, int]:
        together.wait()
        return id(ledger(str(tmp_path))), id(_engine_of(-1))

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(first, range(4)))) == 1


def test_repeats_are_asked_each_and_not_told_apart_by_the_endpoint(endpoint: FaultServer, tmp_path: Path) -> None:
    ask(str(tmp_path), [*requests(model(endpoint), "q"), *requests(model(endpoint), "q", repeat=1)])
    first, second = endpoint.asked()
    assert first.body == second.body


@pytest.mark.parametrize(
    ("shape", "text", "status", "finish"),
    [
        (REFUSAL, "I cannot help with that.", "refused", "stop"),
        (FILTERED, None, "refused", "content_filter"),
        (TRUNCATED, "The answer is", "truncated", "length"),
        (TRUNCATED_NULL, None, "truncated", "length"),
        (NULL, None, "failed", "stop"),
        (EMPTY, None, "failed", "stop"),
        (said("\ud83d\ude00 \ud800"), "😀 \ufffd", "ok", "stop"),
        (said([{"type": "text", "text": "in parts"}]), "in parts", "ok", "stop"),
    ],
)
def test_a_reply_of_any_shape_has_one_status_and_is_bought_once(
    endpoint: FaultServer, tmp_path: Path, shape: Fault, text: str | None, status: str, finish: str
) -> None:
    endpoint.rule = lambda body: shape
    for _ in range(2):
        reply = ask(str(tmp_path), requests(model(endpoint), "q"))[0]
        assert (reply.text, reply.status, reply.finish_reason) == (text, status, finish)
        assert (reply.prompt_tokens, len(endpoint.asked())) == (1, 1)
    ledger(str(tmp_path)).fold(own=True)
    assert ledger(str(tmp_path)).rows()["text"].to_list() == [text]


def test_alternatives_of_the_first_token_are_kept(endpoint: FaultServer, tmp_path: Path) -> None:
    for _ in range(2):
        reply = ask(str(tmp_path), requests(model(endpoint), "q", top_logprobs=2))[0]
        assert reply.top_logprobs == (("Yes", -0.25), ("No", -1.5))
        ledger(str(tmp_path)).fold(own=True)


def test_whatever_stands_in_a_body_it_is_a_reply_that_can_be_kept_or_malformed() -> None:
    logged = {"content": [{"top_logprobs": [{"token": "Yes", "logprob": -0.25}]}]}
    body = {
        "choices": [{"finish_reason": "stop", "message": {"content": "Yes", "refusal": None}, "logprobs": logged}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 1},
    }
    odd = (None, 0, -1.5, True, "x", [], [None], [[]], {}, float("inf"), float("-inf"), float("nan"), 10**30)
    for spoilt in _spoilt(body, odd):
        with suppress(Malformed):
            reply = parse(json.loads(json.dumps(spoilt)))
            assert json.dumps(reply.top_logprobs, allow_nan=False) and reply.status in get_args(Outcome)
            assert all(0 <= count < 2**63 for count in (reply.prompt_tokens or 0, reply.completion_tokens or 0))
    logged["content"][0]["top_logprobs"].append({"token": "No", "logprob": float("-inf")})
    assert parse(body).top_logprobs == (("Yes", -0.25),)
    for finish in ("length", "max_tokens", "model_length"):
        assert parse(body | {"choices": [body["choices"][0] | {"finish_reason": finish}]}).status == "truncated"


def _spoilt(value: Any, odd: Sequence[Any]) -> Iterator[Any]:
    """`value` with any one of its parts replaced by each of `odd`."""
    yield from odd
    places = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for place, part in list(places):
        for other in _spoilt(part, odd):
            copy = value.copy()
            copy[place] = other
            yield copy


@pytest.mark.parametrize(
    "passing",
    [
        *(error(status) for status in (408, 409, 429, 500, 502, 503, 529)),
        error(429, retry_after="0.01"),
        error(429, retry_after="nonsense"),
        CUT,
        MALFORMED,
        NO_CHOICES,
        Fault(raw='{"error": {"code": 502, "message": "the provider went away"}}'),
        Fault(raw="[]"),
        Fault(raw=""),
        said("x", "error"),
        HANG,
        NEVER_ENDS,
        Fault(latency_s=30),
    ],
)
def test_a_passing_fault_is_tried_again(endpoint: FaultServer, tmp_path: Path, passing: Fault) -> None:
    endpoint.faults.extend([passing, passing])
    # A busy machine may take a while for what is to come in time.
    slow = passing.hang or passing.drips or passing.latency_s > 0
    reply = ask(str(tmp_path), requests(model(endpoint, timeout_s=0.3 if slow else 20.0), "q"), policy=QUICK)[0]
    assert (reply.text, reply.attempts, len(endpoint.asked())) == ("echo: q", 3, 3)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 422])
def test_a_refused_request_is_not_tried_again(endpoint: FaultServer, tmp_path: Path, status: int) -> None:
    ask(str(tmp_path), requests(model(endpoint), "good"))
    endpoint.faults.append(error(status, "some_code"))
    reply = ask(str(tmp_path), requests(model(endpoint), "q"), policy=QUICK)[0]
    assert (reply.status, reply.text, reply.attempts) == ("failed", None, 1)
    assert reply.error == f"status {status} (some_code)"
    assert len(endpoint.asked()) == 2


def test_a_request_without_a_reply_is_asked_again_by_the_next_run(endpoint: FaultServer, tmp_path: Path) -> None:
    endpoint.faults.extend([error(500)] * 4)
    asked = requests(model(endpoint), "q")
    assert ask(str(tmp_path), asked, policy=QUICK)[0].status == "failed"
    assert ask(str(tmp_path), asked, policy=QUICK)[0].text == "echo: q"
    assert ledger(str(tmp_path)).rows()["status"].to_list() == ["failed", "ok"]


def test_nobody_asks_before_the_endpoint_said(endpoint: FaultServer, tmp_path: Path) -> None:
    endpoint.faults.append(error(429, retry_after="0.6"))
    one = model(endpoint, concurrency=1)
    ask(str(tmp_path), requests(one, *"abcd"), policy=QUICK)
    first, second, *rest = (seen.at for seen in endpoint.asked())
    assert second - first >= 0.6
    assert len(rest) == 3


def test_a_date_to_come_back_at_is_understood() -> None:
    import httpx2
    import openai

    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    for headers, low, high in (({"retry-after": later}, 28, 30), ({"retry-after-ms": "1500"}, 1.5, 1.5)):
        response = httpx2.Response(429, headers=headers, request=httpx2.Request("POST", "http://x"))
        found = fault(openai.RateLimitError("slow", response=response, body=None), "key")
        assert found.wait_s is not None and low <= found.wait_s <= high


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        (error(401, "invalid_api_key"), "check the key in OPENAI_API_KEY"),
        (error(402), "no credit left"),
        (
            Fault(raw='{"error": {"code": 402, "message": "Add credits"}}'),
            "status 402: Add credits; there is no credit",
        ),
        (error(429, "insufficient_quota"), "no credit left"),
        (error(404, "model_not_found"), "check the model's name and base_url"),
        (error(403), "what the key in OPENAI_API_KEY may do"),
        (error(400, "unsupported_parameter", message="Unsupported: max_tokens"), "Unsupported: max_tokens; mend"),
    ],
)
def test_a_stage_whose_calls_all_fail_alike_stops_with_one_line(
    endpoint: FaultServer, tmp_path: Path, refusal: Fault, message: str
) -> None:
    endpoint.rule = lambda body: refusal
    one = model(endpoint, concurrency=2)
    with pytest.raises(InputError, match=message) as caught:
        ask(str(tmp_path), requests(one, *map(str, range(200))), policy=QUICK)
    assert "\n" not in str(caught.value)
    assert len(endpoint.asked()) <= 8
    endpoint.rule = lambda body: None
    assert [reply.status for reply in ask(str(tmp_path), requests(one, *"ab"))] == ["ok", "ok"]


def test_an_endpoint_that_never_answers_stops_the_stage(tmp_path: Path) -> None:
    nobody = Model("small", "m", "http://127.0.0.1:9/v1", concurrency=2)
    with pytest.raises(EndpointError, match="the connection failed; is it up"):
        ask(str(tmp_path), requests(nobody, *map(str, range(50))), policy=QUICK)


def test_one_bad_request_among_good_ones_costs_no_other(endpoint: FaultServer, tmp_path: Path) -> None:
    endpoint.rule = lambda body: error(400, "too_long") if body["messages"][0]["content"].endswith("3") else None
    replies = ask(str(tmp_path), requests(model(endpoint), *map(str, range(30))))
    assert [place for place, reply in enumerate(replies) if reply.status == "failed"] == [3, 13, 23]


def test_calls_at_a_time_never_pass_the_models_concurrency_and_use_it(endpoint: FaultServer, tmp_path: Path) -> None:
    endpoint.latency_s = 0.05
    ask(str(tmp_path), requests(model(endpoint, concurrency=4), *map(str, range(24))))
    assert endpoint.most_flying == 4


def test_a_burst_of_429_halves_the_calls_once_and_they_grow_back() -> None:
    lane = Lane()
    lane.admit(Model("small", "m", concurrency=16))
    for _ in range(16):
        lane.slow_down(started=1.0, wait_s=0.0)
    assert lane.width == 8
    for _ in range(200):
        lane.well(0, 0)
    assert lane.width == 16


def test_a_pace_admits_no_more_than_its_limit_in_any_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("tasks.llm.lanes.monotonic", lambda: now[0])
    pace, times = Pace(30), []
    for step in (0.0, 0.1, 5.0, 40.0, 0.0) * 40:
        now[0] += step
        times.append(now[0] + pace.reserve(1))
    assert all(later - earlier >= 60 - 1e-6 for earlier, later in zip(times, times[30:], strict=False))


def test_requests_and_tokens_a_minute_hold_on_the_wire(endpoint: FaultServer, tmp_path: Path) -> None:
    began = monotonic()
    ask(str(tmp_path / "r"), requests(model(endpoint, requests_per_minute=600), *"abcdef"))
    assert endpoint.asked()[-1].at - began >= 5 * 60 / 600
    with FaultServer() as other:  # a call uses 3 tokens; what was reserved beyond is given back
        began = monotonic()
        ask(str(tmp_path / "t"), requests(model(other, tokens_per_minute=1800, concurrency=1), *"abcdef"))
        assert other.asked()[-1].at - began >= 5 * 3 * 60 / 1800


def test_the_same_request_from_many_threads_is_asked_once(endpoint: FaultServer, tmp_path: Path) -> None:
    endpoint.latency_s = 0.2
    texts: list[str | None] = []
    asked = requests(model(endpoint), "q")
    threads = [threading.Thread(target=lambda: texts.append(ask(str(tmp_path), asked)[0].text)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == ["echo: q"] * 8
    assert len(endpoint.asked()) == 1


def test_max_calls_ends_cleanly_and_the_next_run_goes_on(endpoint: FaultServer, tmp_path: Path) -> None:
    asked = requests(model(endpoint, concurrency=3), *map(str, range(10)))
    for calls in (4, 8):
        with pytest.raises(BudgetStop, match="--max-calls 4"), budget(str(tmp_path), max_calls=4):
            ask(str(tmp_path), asked)
        assert len(endpoint.asked()) == calls == len(ledger(str(tmp_path)).rows())
    with budget(str(tmp_path), max_calls=4) as spent:
        assert len(ask(str(tmp_path), asked)) == 10
    assert spent.calls == 2


def test_max_cost_is_never_passed_and_unspent_estimates_are_used(endpoint: FaultServer, tmp_path: Path) -> None:
    priced = model(endpoint, concurrency=8, prompt_price=1e6, completion_price=1e6, max_tokens=10)  # a dollar a token
    with pytest.raises(BudgetStop, match="--max-cost 40"), budget(str(tmp_path), max_cost=40) as spent:
        ask(str(tmp_path), requests(priced, *map(str, range(30))))
    assert spent.cost == sum(ledger(str(tmp_path)).rows()["cost"]) == 3 * len(endpoint.asked())
    assert 40 - 10.25 < spent.cost <= 40


def test_an_endpoint_that_counts_no_tokens_is_held_to_its_limits_by_estimates(
    endpoint: FaultServer, tmp_path: Path
) -> None:
    bare = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}]}
    endpoint.rule = lambda body: Fault(raw=json.dumps(bare))
    priced = model(endpoint, concurrency=1, prompt_price=1e6, completion_price=1e6, max_tokens=10)  # a dollar a token
    with pytest.raises(BudgetStop, match="--max-cost 40"), budget(str(tmp_path), max_cost=40):
        ask(str(tmp_path), requests(priced, *map(str, range(30))))
    assert len(endpoint.asked()) == 3, "a call of 10.25 tokens at most"
    began = monotonic()
    paced = model(endpoint, concurrency=1, tokens_per_minute=3000, max_tokens=10)
    ask(str(tmp_path / "t"), requests(paced, *"abcd"))
    assert endpoint.asked()[-1].at - began >= 3 * 10.25 * 60 / 3000


def test_a_bounded_cost_needs_a_price(endpoint: FaultServer, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a price of model small expected"), budget(str(tmp_path), max_cost=1):
        ask(str(tmp_path), requests(model(endpoint), "q"))
    assert not endpoint.asked()


def test_an_unknown_price_is_none_and_a_known_one_is_arithmetic() -> None:
    dated = Model("small", "gpt-4o-mini-2024-07-18")
    held = price(dated, date(2026, 1, 1))
    assert held == Price(0.15, 0.6, date(2024, 7, 18), 0.5)
    assert cost(held, 2_000_000, 1_000_000) == pytest.approx(0.9)
    assert cost(held, None, 5) is None
    assert price(dated, date(2024, 7, 17)) is None
    assert price(Model("small", "unheard-of"), date(2026, 1, 1)) is None
    assert price(replace(dated, prompt_price=1.0, completion_price=2.0), date(2026, 1, 1)) == Price(1.0, 2.0)


def test_the_key_is_sent_and_stands_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    canary = "sk-canary-3141592653"
    monkeypatch.setenv("MY_KEY", canary)
    caplog.set_level(0)
    with FaultServer(key=canary) as endpoint:
        one = model(endpoint, key_variable="MY_KEY")
        assert ask(str(tmp_path), requests(one, "q"))[0].text == "echo: q"
        assert endpoint.asked()[0].headers["authorization"] == f"Bearer {canary}"
        echoing = error(400, code=canary, message=f"the key {canary} is odd")
        endpoint.faults.extend([echoing] * 3)
        ask(str(tmp_path), requests(one, *"abc"))
        endpoint.key = "another"
        with pytest.raises(InputError, match=r"check the key in MY_KEY") as caught:
            ask(str(tmp_path), requests(replace(one, model="n"), "q"))
    ledger(str(tmp_path)).fold()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    shown = f"{caught.value!r} {caught.value.__cause__!r} {caught.value.__context__!r} {caplog.text}"
    assert b"echo: q" in kept and canary.encode() not in kept
    assert canary not in shown + repr(ledger(str(tmp_path)).rows().rows())


def test_the_public_api_is_never_asked_without_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(InputError, match="a key in the environment variable OPENAI_API_KEY expected"):
        ask(str(tmp_path), requests(Model("small", "m"), "q"))


def test_an_empty_base_url_is_that_of_the_environment(
    endpoint: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    assert ask(str(tmp_path), requests(Model("small", "m"), "q"))[0].text == "echo: q"


_ASKER = """
import sys
from tasks.llm import Message, Model, Request, ask
lake, url, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
model = Model("small", "m", url, concurrency=4)
asked = [Request(model, (Message("user", f"q{number}"),), "p") for number in range(count)]
ask(lake, asked, on_reply=lambda place, reply: print(reply.text, flush=True))
"""


def test_after_a_kill_only_requests_in_flight_are_asked_again(endpoint: FaultServer, tmp_path: Path) -> None:
    endpoint.latency_s = 0.02
    command = [sys.executable, "-c", _ASKER, str(tmp_path), endpoint.url, "400"]
    handed_on: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as run:
        assert run.stdout
        handed_on += [run.stdout.readline().strip() for _ in range(40)]
        run.kill()
        handed_on += run.stdout.read().split("\n")[:-1]
    before = [seen.body["messages"][0]["content"] for seen in endpoint.asked()]
    assert 40 <= len(handed_on) < 400
    replies = ask(str(tmp_path), requests(model(endpoint, temperature=None, max_tokens=None), *_numbered(400)))
    assert [reply.text for reply in replies] == [f"echo: {text}" for text in _numbered(400)]
    again = [seen.body["messages"][0]["content"] for seen in endpoint.asked()][len(before) :]
    assert not {f"echo: {text}" for text in again} & set(handed_on), "none that was handed on is asked again"
    assert len(set(again) & set(before)) <= 4, "only what was in flight is"
    assert len(again) == len(set(again))


def test_processes_that_share_a_lake_share_its_replies(endpoint: FaultServer, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _ASKER, str(tmp_path), endpoint.url, "20"]
    one = model(endpoint, temperature=None, max_tokens=None)
    ask(str(tmp_path), requests(one, *_numbered(5)))
    subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
    assert len(ask(str(tmp_path), requests(one, *_numbered(20)))) == 20
    assert len(endpoint.asked()) == 20


def _numbered(count: int) -> list[str]:
    return [f"q{number}" for number in range(count)]


def test_what_a_run_spent_is_told_by_purpose_and_an_unknown_price_is_no_price(
    endpoint: FaultServer, tmp_path: Path
) -> None:
    priced = model(endpoint, prompt_price=1.0, completion_price=2.0)
    ask(str(tmp_path), requests(priced, "before", purpose="answer"))
    since = datetime.now(UTC)
    endpoint.faults.append(error(500))
    replies = ask(str(tmp_path), requests(priced, "a", "b", "before", purpose="answer"), policy=QUICK)
    ask(str(tmp_path), requests(replace(priced, model="m2", prompt_price=None), "a", purpose="judge"))
    answered, judged = spent(str(tmp_path), since)
    assert answered[:3] == ("answer", "m", 3), "two replies, one of them at the second attempt, one from the ledger"
    tokens = [(reply.prompt_tokens or 0, reply.completion_tokens or 0) for reply in replies[:2]]
    assert answered[3:5] == tuple(map(sum, zip(*tokens, strict=True)))
    assert answered.cost == pytest.approx(sum(prompt + 2 * reply for prompt, reply in tokens) / 1e6)
    assert judged[:3] == ("judge", "m2", 1) and judged.cost is None
    assert spent(str(tmp_path), datetime.now(UTC)) == []


def test_what_another_run_asks_at_that_time_is_not_told_as_ones_own(endpoint: FaultServer, tmp_path: Path) -> None:
    since = datetime.now(UTC)
    Ledger(Lake(tmp_path)).append(
        [
            to_row(to_call(each, endpoint.url), Reply("no", "ok", "stop"))
            for each in requests(model(endpoint), "shared", "theirs", purpose="answer")
        ]
    )
    assert spent(str(tmp_path), since) == []
    ask(str(tmp_path), requests(model(endpoint), "shared", "ours", purpose="answer"))
    (ours,), (every,) = spent(str(tmp_path), since), spent(str(tmp_path), since, by_all=True)
    assert (ours.calls, every.calls) == (1, 3)

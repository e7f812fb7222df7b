"""A batch gives the replies that calls would, under the same keys, and is never bought twice."""

from collections.abc import Iterator
from pathlib import Path
from threading import RLock
from typing import Any

import pytest

from storage.errors import InputError
from tasks.llm import BudgetStop, Message, Model, Request, ask, batch, budget, ledger
from tasks.llm.patience import Policy
from tests.fault_server import HANG, REFUSAL, FaultServer, error

QUICK = Policy(attempts=3, first_wait_s=0.001, poll_s=0.01)


@pytest.fixture
def endpoint() -> Iterator[FaultServer]:
    with FaultServer(polls=2) as server:
        yield server


def requests(endpoint: FaultServer, *texts: str, **changes: Any) -> list[Request]:
    model = Model("small", "gpt-4o-mini-2024-07-18", endpoint.url, **({"batch": True} | changes))
    return [Request(model, (Message("user", text),), "p") for text in texts]


def test_a_batch_and_calls_share_ledger_and_keys_at_half_the_price(endpoint: FaultServer, tmp_path: Path) -> None:
    replies = ask(str(tmp_path), requests(endpoint, *"abcb"), policy=QUICK)
    assert [reply.text for reply in replies] == ["echo: a", "echo: b", "echo: c", "echo: b"]
    assert len(endpoint.batches) == 1 and not endpoint.asked()
    one, two = ask(str(tmp_path), requests(endpoint, "a", "d", batch=False))
    assert one == replies[0] and len(endpoint.asked()) == 1
    assert two.cost == pytest.approx((0.15 + 2 * 0.6) / 1e6) == pytest.approx(2 * (one.cost or 0))


def test_what_a_batch_did_not_answer_is_asked_again_and_the_rest_is_kept(endpoint: FaultServer, tmp_path: Path) -> None:
    faults = {"a": error(500, "server_error"), "b": HANG, "c": REFUSAL}
    endpoint.rule = lambda body: faults.get(body["messages"][0]["content"])
    replies = ask(str(tmp_path), requests(endpoint, *"abcd"), policy=QUICK)
    assert [reply.status for reply in replies] == ["failed", "failed", "refused", "ok"]
    assert (
        replies[0].error == "status 500 (server_error)" and replies[1].error == "not answered by a batch that completed"
    )
    faults.clear()
    replies = ask(str(tmp_path), requests(endpoint, *"abcd"), policy=QUICK)
    assert [reply.status for reply in replies] == ["ok", "ok", "refused", "ok"]
    assert len(endpoint.files["file-3"].splitlines()) == 2, "only the two without a reply are in the second batch"


def test_a_line_separator_in_a_reply_ends_no_line_and_a_broken_line_answers_nothing(
    endpoint: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (reply,) = ask(str(tmp_path), requests(endpoint, "a\u2028b\x85c"), policy=QUICK)
    assert reply.text == "echo: a\u2028b\x85c"
    whole = batch._text
    monkeypatch.setattr(batch, "_text", lambda post, file: whole(post, file)[:-9])
    first, second = ask(str(tmp_path), requests(endpoint, *"de"), policy=QUICK)
    assert {first.status, second.status} == {"ok", "failed"}


def test_a_killed_run_waits_for_its_batch_whatever_part_is_asked_for(
    endpoint: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(batch, "sleep", killed)
    with pytest.raises(KeyboardInterrupt):
        ask(str(tmp_path), requests(endpoint, *"abc"), policy=QUICK)
    monkeypatch.undo()
    assert ask(str(tmp_path), requests(endpoint, "c", "z"), policy=QUICK)[0].text == "echo: c"
    assert len(endpoint.batches) == 2
    ask(str(tmp_path), requests(endpoint, *"abcz"), policy=QUICK)
    assert len(endpoint.batches) == 2


def test_a_batch_that_another_run_had_meanwhile_is_not_bought_again(
    endpoint: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = batch.Submissions.out

    def late(*arguments: Any) -> Any:
        """The other run ends between this one's look into the ledger and its look for batches."""
        monkeypatch.undo()
        ask(str(tmp_path), requests(endpoint, *"ab"), policy=QUICK)
        return looked(*arguments)

    monkeypatch.setattr(batch, "_SUBMITTING", RLock())
    monkeypatch.setattr(batch.Submissions, "out", late)
    replies = ask(str(tmp_path), requests(endpoint, *"abc"), policy=QUICK)
    assert [reply.text for reply in replies] == ["echo: a", "echo: b", "echo: c"]
    sent = [len(endpoint.files[each["input_file_id"]].splitlines()) for each in endpoint.batches.values()]
    assert sent == [2, 1]


def test_a_run_killed_between_handing_over_and_noting_finds_its_batch(
    endpoint: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = batch._created

    def killed_after(*arguments: Any) -> str:
        made(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(batch, "_created", killed_after)
    with pytest.raises(KeyboardInterrupt):
        ask(str(tmp_path), requests(endpoint, *"ab"), policy=QUICK)
    monkeypatch.undo()
    assert ask(str(tmp_path), requests(endpoint, *"ab"), policy=QUICK)[1].text == "echo: b"
    assert len(endpoint.batches) == 1


def test_a_batch_that_fails_alike_for_all_stops_with_one_line(endpoint: FaultServer, tmp_path: Path) -> None:
    endpoint.rule = lambda body: error(404, "model_not_found")
    for _ in range(2):
        with pytest.raises(InputError, match=r"status 404 \(model_not_found\); check the model's name"):
            ask(str(tmp_path), requests(endpoint, *"ab"), policy=QUICK)
    assert len(endpoint.batches) == 2 and not len(ledger(str(tmp_path)).rows())


def test_a_budget_bounds_a_batch(endpoint: FaultServer, tmp_path: Path) -> None:
    for left in (2, 1):
        with budget(str(tmp_path), max_calls=2) as spent:
            if left == 2:
                with pytest.raises(BudgetStop):
                    ask(str(tmp_path), requests(endpoint, *"abc"), policy=QUICK)
            else:
                ask(str(tmp_path), requests(endpoint, *"abc"), policy=QUICK)
        assert spent.calls == left and spent.cost == pytest.approx(left * (0.15 + 2 * 0.6) / 2e6)
    assert sorted(ledger(str(tmp_path)).rows()["text"]) == ["echo: a", "echo: b", "echo: c"]


def test_many_requests_go_in_batches_of_a_size_that_is_taken(
    endpoint: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "MOST_REQUESTS", 2)
    assert [reply.text for reply in ask(str(tmp_path), requests(endpoint, *"abcde"), policy=QUICK)][4] == "echo: e"
    assert len(endpoint.batches) == 3

"""Requests to replies through the Batch API: cheaper, within a day, and the same replies under the same keys."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from time import sleep
from typing import Any, Literal
from uuid import uuid4

from storage.calls import Ledger
from storage.errors import InputError
from storage.lake import Lake
from storage.submissions import Submission, Submissions
from tasks.llm.budget import Budget, BudgetStop, in_force
from tasks.llm.completions import parse
from tasks.llm.endpoint import closed
from tasks.llm.faults import Fault, Malformed, reason
from tasks.llm.keys import address, key, shown
from tasks.llm.model import Model, Reply, Request
from tasks.llm.patience import GaveUp, Policy, patiently
from tasks.llm.prices import Price, cost, price
from tasks.llm.rows import from_row, to_call, to_row

MOST_REQUESTS = 50_000
MOST_BYTES = 100_000_000
_URL: Literal["/v1/chat/completions"] = "/v1/chat/completions"
_LABEL = "suffice"
_ENDED = ("completed", "expired", "cancelled")
_SUBMITTING = threading.Lock()


def ask_batch(
    lake: str, ledger: Ledger, requests: Sequence[Request], take: Callable[[str, Reply], None], policy: Policy
) -> None:
    """Have distinct requests of one model answered in batches; `take(digest, reply)` for each that is.

    A batch that a killed run left at the endpoint is waited for, not sent again. A request that its batch did not
    answer is a `failed` reply and is asked for again by the next run. Raises as `ask` does; `BudgetStop` comes
    once what the budget allowed has been answered.
    """
    post, held, wanted = _post(requests[0].model, policy), Submissions(Lake(lake)), {r.digest for r in requests}
    with _SUBMITTING:
        out = [found for item in held.out(post.shown, sorted(wanted)) if (found := _found(post, held, item))]
        sent = {digest for item in out for digest in item.requests}
        had = ledger.find(wanted - sent)  # another run keeps the replies to a batch before it forgets it
        bounds = in_force(lake)
        left = [item for item in requests if item.digest not in sent and item.digest not in had]
        affordable, stop = _afforded(post, bounds, left)
        out += [_submitted(post, held, chunk) for chunk in _chunks(affordable)]
    for digest, row in had.items():
        take(digest, from_row(row))
    reserved = {request.digest: cost(post.price, *request.tokens) for request in affordable}
    for item in out:
        rows = _collected(post, held, item)
        ledger.append(rows)
        held.forget(item)
        for row in rows:
            if row["request"] in reserved:
                bounds.settle(reserved.pop(row["request"]), row["cost"])
            if row["request"] in wanted:
                take(row["request"], from_row(row))
    if stop:
        raise stop


@dataclass(frozen=True)
class Post:
    """One model's way to the Batch API."""

    model: Model
    url: str
    secret: str
    client: Any
    policy: Policy

    @property
    def shown(self) -> str:
        """The endpoint as it may be kept."""
        return shown(self.url)

    @property
    def price(self) -> Price | None:
        """The price of a call in a batch today."""
        listed = price(self.model, datetime.now(UTC).date())
        return listed and replace(
            listed, prompt=listed.prompt * listed.batch, completion=listed.completion * listed.batch
        )

    def do(self, call: Callable[[], Any]) -> Any:
        """What a call of the client returns, tried again while that may help. Raises as `ask` does."""
        try:
            return patiently(call, self.secret, self.policy)
        except GaveUp as gone:
            raise closed(self.url, self.model, gone.fault) from None

    def find(self, name: str) -> str | None:
        """The endpoint's name of the batch that a submission became, if it did."""
        batches = self.client.batches.list(limit=100)
        return next((batch.id for batch in batches if (batch.metadata or {}).get(_LABEL) == name), None)


def _post(model: Model, policy: Policy) -> Post:
    import openai

    url, secret = address(model.base_url), key(model)
    client = openai.OpenAI(base_url=url, api_key=secret, max_retries=0, timeout=model.timeout_s)
    return Post(model, url, secret, client, policy)


def _afforded(post: Post, budget: Budget, requests: Sequence[Request]) -> tuple[list[Request], BudgetStop | None]:
    """As many requests as the budget allows, and what stops the others."""
    affordable: list[Request] = []
    for request in requests:
        try:
            if not budget.reserve(post.model.name, cost(post.price, *request.tokens)):
                return affordable, BudgetStop("--max-cost", budget.calls, budget.cost)
        except BudgetStop as stop:
            return affordable, stop
        affordable.append(request)
    return affordable, None


def _chunks(requests: Sequence[Request]) -> Iterator[list[Request]]:
    """The requests in batches that the Batch API takes."""
    chunk: list[Request] = []
    size = 0
    for request in requests:
        length = len(_line(request))
        if chunk and (len(chunk) == MOST_REQUESTS or size + length > MOST_BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(request)
        size += length
    if chunk:
        yield chunk


def _line(request: Request) -> bytes:
    said = {"custom_id": request.digest, "method": "POST", "url": _URL, "body": request.body}
    return json.dumps(said).encode() + b"\n"


def _submitted(post: Post, held: Submissions, requests: Sequence[Request]) -> Submission:
    """Hand requests over, noted before and after: killed in between, the batch is found by its label."""
    noted = Submission(uuid4().hex, post.shown, tuple(to_call(request, post.shown) for request in requests))
    held.note(noted)
    data = b"".join(map(_line, requests))
    try:
        file = post.do(lambda: post.client.files.create(file=("requests.jsonl", data), purpose="batch"))
        batch = post.do(lambda: post.find(noted.name) or _created(post, file.id, noted.name))
    except InputError:
        held.forget(noted)
        raise
    known = replace(noted, batch=batch)
    held.note(known)
    return known


def _created(post: Post, file: str, name: str) -> str:
    made = post.client.batches.create(
        input_file_id=file, endpoint=_URL, completion_window="24h", metadata={_LABEL: name}
    )
    return str(made.id)


def _found(post: Post, held: Submissions, item: Submission) -> Submission | None:
    """A submission with its batch's name, or None (and it is forgotten) where it never became one."""
    if item.batch:
        return item
    batch = post.do(lambda: post.find(item.name) or "")
    if batch:
        return replace(item, batch=batch)
    held.forget(item)
    return None


def _collected(post: Post, held: Submissions, item: Submission) -> list[dict[str, Any]]:
    """Wait for a batch; the ledger's rows of all its requests, in their order.

    Raises `InputError` where the endpoint refused the batch or failed every request for one reason.
    """
    while (batch := post.do(lambda: post.client.batches.retrieve(item.batch))).status not in _ENDED:
        if batch.status == "failed":
            held.forget(item)
            first = next(iter((batch.errors and batch.errors.data) or []), None)
            found = Fault(
                f"batch failed ({first.code})" if first else "batch failed", said=first.message if first else ""
            )
            raise closed(post.url, post.model, found)
        sleep(post.policy.poll_s)
    files = [name for name in (batch.output_file_id, batch.error_file_id) if name]
    texts = [post.do(partial(_text, post, name)) for name in files]
    replies = {line["custom_id"]: _reply(post, line) for text in texts for line in _lines(text)}
    missing = Reply(None, "failed", error=f"not answered by a batch that {batch.status}")
    rows = [to_row(call, replies.get(call["request"], missing)) for call in item.calls]
    reasons = {row["error"] for row in rows}
    if replies and not any(row["finish_reason"] for row in rows) and len(reasons) == 1:
        held.forget(item)
        raise closed(post.url, post.model, Fault(reasons.pop()))
    return rows


def _text(post: Post, file: str) -> str:
    return str(post.client.files.content(file).text)


def _lines(text: str) -> Iterator[dict[str, Any]]:
    """The objects of a file, one a line; a line that is none answers nothing. JSON may hold U+2028, which ends none."""
    for line in text.split("\n"):
        with suppress(ValueError):
            said = json.loads(line)
            if isinstance(said, dict) and isinstance(said.get("custom_id"), str):
                yield said


def _reply(post: Post, line: dict[str, Any]) -> Reply:
    """The reply in one line of a batch's files."""
    response = line.get("response") or {}
    status, body = response.get("status_code"), response.get("body")
    if status == 200:
        try:
            reply = parse(body)
        except Malformed:
            return Reply(None, "failed", error="a malformed reply")
        return replace(reply, cost=cost(post.price, reply.prompt_tokens, reply.completion_tokens))
    said = (body.get("error") if isinstance(body, dict) else None) or line.get("error") or {}
    return Reply(None, "failed", error=reason(status, said.get("code"), post.secret))

"""How calls are sent: one event loop a process, one lane an endpoint, each request once, every reply kept."""

import asyncio
import json
import os
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from time import monotonic
from typing import Any

from storage.calls import Ledger
from storage.errors import InputError
from tasks.llm.budget import Budget, in_force
from tasks.llm.completions import parse
from tasks.llm.faults import Fault, fault
from tasks.llm.keys import address, key, shown
from tasks.llm.lanes import Lane
from tasks.llm.model import Model, Reply, Request
from tasks.llm.prices import Price, cost, price
from tasks.llm.rows import to_row
from tasks.outcomes import EndpointError


@dataclass(frozen=True)
class Policy:
    """How patient the engine is.

    `attempts` of one request; waits before the next are drawn from 0 to `first_wait_s` · 2ⁿ, at most
    `longest_wait_s`. An endpoint that asks for more than `longest_pause_s` is taken to be closed.
    """

    attempts: int = 8
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0
    longest_pause_s: float = 300.0

    def wait_s(self, attempt: int) -> float:
        """Seconds before the next attempt (full jitter)."""
        return random.uniform(0.0, min(self.longest_wait_s, self.first_wait_s * 2**attempt))


PATIENCE = Policy()


class Unsent(Exception):
    """A request that was not sent, since its job has stopped."""


@dataclass
class Job:
    """One `ask`: what stops it stops all that it has not sent yet."""

    lake: str
    ledger: Ledger
    budget: Budget
    policy: Policy
    error: BaseException | None = None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    def stop(self, error: BaseException) -> None:
        """Send nothing more; the first error is the job's."""
        self.error = self.error or error
        self.stopped.set()

    def check(self) -> None:
        """Raises `Unsent` where the job has stopped."""
        if self.error:
            raise Unsent

    async def pause(self, seconds: float) -> None:
        """Wait, or raise `Unsent` as soon as the job stops."""
        if seconds > 0:
            try:
                await asyncio.wait_for(self.stopped.wait(), seconds)
            except TimeoutError:
                return
        self.check()


@dataclass
class Endpoint:
    """One endpoint under one key: its client, its lane and how its calls have gone of late."""

    url: str
    key: str
    client: Any
    lane: Lane = field(default_factory=Lane)
    went_well: set[str] = field(default_factory=set)
    failing: dict[str, tuple[str, int]] = field(default_factory=dict)

    def well(self, model: str) -> None:
        """A call of a model had a reply."""
        self.went_well.add(model)
        self.failing.pop(model, None)

    def failed(self, model: Model, found: Fault) -> Exception | None:
        """Count a request that failed for good; the error that stops the job where all fail for one reason.

        A key, a credit or a model that was never accepted stops it at once; after a reply, the third such failure
        in a row does. So does the third request in a row that used up its attempts, and the fifth of a model that
        was refused for the same reason before any had a reply.
        """
        reason, times = self.failing.get(model.model, (found.reason, 0))
        times = times + 1 if reason == found.reason else 1
        self.failing[model.model] = (found.reason, times)
        new = model.model not in self.went_well
        allowed = (1 if new else 3) if found.hopeless else 3 if found.again else 5 if new else None
        if allowed is None or times < allowed:
            return None
        del self.failing[model.model]
        return _closed(self.url, model, found)


class Engine:
    """Sends requests from one event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._endpoints: dict[tuple[str, str], Endpoint] = {}
        self._flying: dict[tuple[str, str], asyncio.Future[Reply]] = {}
        self._books: dict[int, Book] = {}
        threading.Thread(target=self._loop.run_forever, name="suffice-calls", daemon=True).start()

    def submit(
        self,
        lake: str,
        ledger: Ledger,
        requests: Sequence[Request],
        policy: Policy,
        told: Callable[[int, Reply | None, BaseException | None], None],
    ) -> Callable[[BaseException], None]:
        """Send distinct requests; `told(place, reply, None)` for each, then `told(-1, None, error or None)`.

        Returns what stops the sending. Calls of `told` come from the engine's thread.
        """
        job = Job(lake, ledger, in_force(lake), policy)
        asyncio.run_coroutine_threadsafe(self._all(job, requests, told), self._loop)
        return lambda error: void(self._loop.call_soon_threadsafe(job.stop, error))

    async def _all(
        self,
        job: Job,
        requests: Sequence[Request],
        told: Callable[[int, Reply | None, BaseException | None], None],
    ) -> None:
        async def one(place: int, request: Request) -> None:
            try:
                told(place, await self._once(job, request), None)
            except Unsent:
                return
            except BaseException as error:
                job.stop(error)

        try:
            await asyncio.gather(*(one(place, request) for place, request in enumerate(requests)))
        finally:
            told(-1, None, job.error)

    async def _once(self, job: Job, request: Request) -> Reply:
        """The reply to a request, sent by this job or by another that is asking the same right now."""
        name = (job.lake, request.digest)
        while flying := self._flying.get(name):
            try:
                return await asyncio.shield(flying)
            except Unsent:
                job.check()
        mine = self._flying[name] = self._loop.create_future()
        try:
            reply = await self._kept(job, request)
            mine.set_result(reply)
            return reply
        except BaseException:
            mine.set_exception(Unsent())
            mine.exception()
            raise
        finally:
            del self._flying[name]

    async def _kept(self, job: Job, request: Request) -> Reply:
        """Ask until there is a reply or no hope, keep what came, then hand it on."""
        job.check()
        endpoint = self._endpoint(request.model)
        reply, found = await self._asked(job, endpoint, request)
        await self._book(job.ledger).keep(to_row(request, reply, shown(endpoint.url)))
        if found is None:
            endpoint.well(request.model.model)
        elif error := endpoint.failed(request.model, found):
            job.stop(error)
            raise Unsent
        return reply

    async def _asked(self, job: Job, endpoint: Endpoint, request: Request) -> tuple[Reply, Fault | None]:
        """The reply, or a failed one with the fault of the last attempt."""
        held = price(request.model, datetime.now(UTC).date())
        attempt = 0
        while True:
            attempt += 1
            started, outcome = await self._attempt(job, endpoint, request, held)
            if isinstance(outcome, Reply):
                return replace(outcome, attempts=attempt), None
            wait = job.policy.wait_s(attempt) if outcome.wait_s is None else outcome.wait_s
            if not outcome.again or attempt == job.policy.attempts or wait > job.policy.longest_pause_s:
                return Reply(None, "failed", attempts=attempt, error=outcome.reason), outcome
            if outcome.slow_down:
                endpoint.lane.slow_down(started, wait)
            await job.pause(wait)

    async def _attempt(
        self, job: Job, endpoint: Endpoint, request: Request, held: Price | None
    ) -> tuple[float, Reply | Fault]:
        """One call in its turn and within the budget: when it began, and its reply or fault."""
        lane, tokens = endpoint.lane, _tokens(request)
        guess = cost(held, request.characters / 4, request.model.max_tokens or _COMPLETION)
        await lane.enter()
        try:
            job.check()
            await job.pause(lane.wait_s(tokens))
            while rest := lane.paused_s():
                await job.pause(rest)
            job.budget.reserve(request.model.name, guess)
            started, paid = monotonic(), None
            try:
                outcome = await _sent(endpoint, request)
                if isinstance(outcome, Reply):
                    paid = cost(held, outcome.prompt_tokens, outcome.completion_tokens)
                    outcome = replace(outcome, cost=paid, latency_s=monotonic() - started)
                    lane.well(tokens, (outcome.prompt_tokens or 0) + (outcome.completion_tokens or 0))
                return started, outcome
            finally:
                job.budget.settle(guess, paid)
        finally:
            lane.leave()

    def _endpoint(self, model: Model) -> Endpoint:
        url, secret = address(model.base_url), key(model)
        if (url, secret) not in self._endpoints:
            self._endpoints[url, secret] = Endpoint(url, secret, _client(url, secret))
        endpoint = self._endpoints[url, secret]
        endpoint.lane.admit(model)
        return endpoint

    def _book(self, ledger: Ledger) -> "Book":
        return self._books.setdefault(id(ledger), Book(ledger))


class Book:
    """Writes rows to a ledger in a thread, all that have gathered at a time: one sync serves them together."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._thread = ThreadPoolExecutor(1, "suffice-ledger")
        self._rows: list[tuple[dict[str, Any], asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def keep(self, row: dict[str, Any]) -> None:
        """Return once the row is on the disk. Raises what the disk raises."""
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._rows.append((row, kept))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        await kept

    async def _write(self) -> None:
        while self._rows:
            batch, self._rows = self._rows, []
            try:
                await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._ledger.append, [row for row, _ in batch]
                )
            except Exception as error:
                for _, kept in batch:
                    kept.set_exception(error)
            else:
                for _, kept in batch:
                    kept.set_result(None)


def engine() -> Engine:
    """The engine of this process."""
    return _engine_of(os.getpid())


@cache
def _engine_of(process: int) -> Engine:
    return Engine()


def void(_: object) -> None:
    """Nothing."""


_COMPLETION = 256


def _tokens(request: Request) -> float:
    """About how many tokens a call takes: four characters one, and all that the reply may have."""
    return request.characters / 4 + (request.model.max_tokens or _COMPLETION)


def _client(url: str, secret: str) -> Any:
    import openai  # slow to import, and only needed where an endpoint is asked

    return openai.AsyncOpenAI(base_url=url, api_key=secret, max_retries=0)


async def _sent(endpoint: Endpoint, request: Request) -> Reply | Fault:
    """One attempt: a parsed reply, or what went wrong. The whole body must come within the model's time."""
    create = endpoint.client.chat.completions.with_raw_response.create
    try:
        async with asyncio.timeout(request.model.timeout_s):
            raw = await create(**_arguments(request), timeout=request.model.timeout_s)
        return parse(json.loads(raw.content))
    except Exception as error:
        return fault(error, endpoint.key)


def _arguments(request: Request) -> dict[str, Any]:
    """The body as the client takes it: what a protocol adds goes past the client's own names."""
    extra = dict(request.model.extra)
    said = {key: value for key, value in request.body.items() if key not in extra}
    return said | ({"extra_body": extra} if extra else {})


def _closed(url: str, model: Model, found: Fault) -> Exception:
    """Why nothing more is asked of an endpoint, in one line."""
    where = f"model {model.name} ({model.model} at {shown(url)})"
    said = f": {found.said}" if found.said else ""
    if found.hopeless or not found.again:
        remedy = _REMEDIES.get(found.reason.split(" (")[0], "mend the request's parameters in the [models] table")
        if "402" in found.reason or "quota" in found.reason or "billing" in found.reason:
            remedy = "there is no credit left; add some and run again"
        return InputError(f"{where}: calls are refused with {found.reason}{said}; {remedy.format(model=model)}")
    return EndpointError(f"{where}: no usable reply, {found.reason}{said}; is it up? run again to go on")


_REMEDIES = {
    "status 401": "check the key in {model.key_variable}",
    "status 403": "check what the key in {model.key_variable} may do",
    "status 404": "check the model's name and base_url",
}

"""How calls are sent: one event loop a process, one lane an endpoint, each request once, every reply kept."""

import asyncio
import atexit
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import monotonic

from storage.calls import Ledger
from tasks.llm.book import Book
from tasks.llm.budget import Budget, in_force
from tasks.llm.endpoint import Endpoint, endpoint_of
from tasks.llm.faults import Fault
from tasks.llm.keys import address, key, shown
from tasks.llm.model import Model, Reply, Request
from tasks.llm.once import once
from tasks.llm.patience import Policy
from tasks.llm.prices import Price, cost, price
from tasks.llm.rows import to_call, to_row


class Unsent(Exception):
    """A request that was not sent, since its job has stopped."""


@dataclass
class Job:
    """One `ask`: what stops it stops all that it has not sent yet. `reached`: each model's base URL and key."""

    lake: str
    ledger: Ledger
    budget: Budget
    policy: Policy
    reached: dict[Model, tuple[str, str]]
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


class Engine:
    """Sends requests from one event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._endpoints: dict[tuple[str, str], Endpoint] = {}
        self._flying: dict[tuple[str, str], asyncio.Future[Reply]] = {}
        self._books: dict[int, Book] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="suffice-calls", daemon=True)
        self._thread.start()
        atexit.register(self._close, os.getpid())

    def submit(
        self,
        lake: str,
        ledger: Ledger,
        requests: Sequence[Request],
        policy: Policy,
        told: Callable[[int, Reply | None, BaseException | None], None],
    ) -> Callable[[BaseException], None]:
        """Send distinct requests; `told(place, reply, None)` for each, then `told(-1, None, error or None)`.

        Returns what stops the sending. Calls of `told` come from the engine's thread. Raises `InputError` where a
        key cannot be had.
        """
        reached = {model: (address(model.base_url), key(model)) for model in {request.model for request in requests}}
        job = Job(lake, ledger, in_force(lake), policy, reached)
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

        async def some(left: Iterator[tuple[int, Request]]) -> None:
            for place, request in left:
                await one(place, request)

        queues: dict[Model, list[tuple[int, Request]]] = {}
        for place, request in enumerate(requests):
            queues.setdefault(request.model, []).append((place, request))
        try:
            # More than may go at a time, so that the next are ready when a place is free, but not all at once.
            workers = {model: min(len(queue), _READY * model.concurrency) for model, queue in queues.items()}
            lines = {model: iter(queue) for model, queue in queues.items()}
            await asyncio.gather(*(some(lines[model]) for model, count in workers.items() for _ in range(count)))
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
        endpoint = self._endpoint(request.model, *job.reached[request.model])
        reply, found = await self._asked(job, endpoint, request)
        closed = endpoint.took(request.model, found)
        if closed:
            job.stop(closed)
        await self._book(job.ledger).keep(to_row(to_call(request, shown(endpoint.url)), reply))
        if closed:
            raise Unsent
        return reply

    async def _asked(self, job: Job, endpoint: Endpoint, request: Request) -> tuple[Reply, Fault | None]:
        """The reply, or a failed one with the fault of the last attempt."""
        held, body = price(request.model, datetime.now(UTC).date()), json.dumps(request.body).encode()
        attempt = 0
        while True:
            attempt += 1
            started, outcome = await self._attempt(job, endpoint, request, body, held)
            if isinstance(outcome, Reply):
                return replace(outcome, attempts=attempt), None
            wait = job.policy.wait_s(attempt, outcome)
            if wait is None:
                return Reply(None, "failed", attempts=attempt, error=outcome.reason), outcome
            if outcome.slow_down:
                endpoint.lane.slow_down(started, outcome.wait_s or wait)
            await job.pause(wait)

    async def _attempt(
        self, job: Job, endpoint: Endpoint, request: Request, body: bytes, held: Price | None
    ) -> tuple[float, Reply | Fault]:
        """One call in its turn and within the budget: when it began, and its reply or fault."""
        lane, tokens = endpoint.lane, sum(request.tokens)
        guess = cost(held, *request.tokens)
        await lane.enter()
        try:
            job.check()
            await job.pause(lane.wait_s(tokens))
            while rest := lane.paused_s():
                await job.pause(rest)
            while not job.budget.reserve(request.model.name, guess):
                await job.pause(_SETTLING_S)
            started, spent = monotonic(), None
            try:
                outcome = await endpoint.send(request.model, body)
                if isinstance(outcome, Reply):
                    paid = cost(held, outcome.prompt_tokens, outcome.completion_tokens)
                    spent = guess if paid is None else paid
                    outcome = replace(outcome, cost=paid, latency_s=monotonic() - started)
                    counted = (outcome.prompt_tokens, outcome.completion_tokens)
                    lane.well(tokens, sum(count for count in counted if count is not None) if any(counted) else tokens)
                return started, outcome
            finally:
                job.budget.settle(guess, spent)
        finally:
            lane.leave()

    def _close(self, process: int) -> None:
        """Close connections as the process ends; calls that are under way are not waited for."""
        if process == os.getpid():
            for endpoint in self._endpoints.values():
                with suppress(Exception):
                    asyncio.run_coroutine_threadsafe(endpoint.client.close(), self._loop).result(timeout=2.0)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(timeout=2.0)

    def _endpoint(self, model: Model, url: str, secret: str) -> Endpoint:
        if (url, secret) not in self._endpoints:
            self._endpoints[url, secret] = endpoint_of(url, secret)
        endpoint = self._endpoints[url, secret]
        endpoint.lane.admit(model)
        return endpoint

    def _book(self, ledger: Ledger) -> Book:
        return self._books.setdefault(id(ledger), Book(ledger))


def engine() -> Engine:
    """The engine of this process."""
    return _engine_of(os.getpid())


@once
def _engine_of(process: int) -> Engine:
    return Engine()


def void(_: object) -> None:
    """Nothing."""


_SETTLING_S = 0.02
_READY = 4

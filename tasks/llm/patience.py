"""How patient we are with an endpoint that fails."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from time import sleep
from typing import TypeVar

from tasks.llm.faults import Fault, fault

T = TypeVar("T")


@dataclass(frozen=True)
class Policy:
    """How patient the engine is.

    `attempts` of one request; the wait after the n-th is drawn from 0 to `first_wait_s` · 2ⁿ, at most
    `longest_wait_s`, on top of what the endpoint asks for. One
    that asks for more than `longest_pause_s` is taken to be closed. A batch is looked at
    every `poll_s`.
    """

    attempts: int = 8
    first_wait_s: float = 0.5
    longest_wait_s: float = 60.0
    longest_pause_s: float = 300.0
    poll_s: float = 30.0

    def wait_s(self, attempt: int, found: Fault) -> float | None:
        """Seconds before the next attempt: what the endpoint asks for, and full jitter. None where it is hopeless."""
        if not found.again or attempt >= self.attempts or (found.wait_s or 0.0) > self.longest_pause_s:
            return None
        jitter = random.uniform(0.0, min(self.longest_wait_s, self.first_wait_s * 2**attempt))
        return (found.wait_s or 0.0) + jitter


PATIENCE = Policy()


class GaveUp(Exception):
    """A call that failed for good; `fault` says of what."""

    def __init__(self, found: Fault) -> None:
        self.fault = found
        super().__init__(found.reason)

    def __reduce__(self) -> tuple[type["GaveUp"], tuple[Fault]]:
        return GaveUp, (self.fault,)


def patiently(call: Callable[[], T], key: str, policy: Policy = PATIENCE) -> T:
    """What `call` returns, tried again while that may help. Raises `GaveUp`."""
    attempt = 0
    while True:
        attempt += 1
        try:
            return call()
        except Exception as error:
            found = fault(error, key)
        wait = policy.wait_s(attempt, found)
        if wait is None:
            raise GaveUp(found)
        sleep(wait)

"""How many calls one endpoint is sent at a time, and how fast."""

import asyncio
from collections import deque
from time import monotonic

from tasks.llm.model import Model


class Pace:
    """Spreads an amount evenly over minutes, so that no window of a minute holds more than the limit."""

    def __init__(self, per_minute: int) -> None:
        self._seconds_each = 60.0 / per_minute
        self._next = 0.0

    def reserve(self, amount: float) -> float:
        """Take `amount`; returns the seconds to wait before using it."""
        now = monotonic()
        start = max(now, self._next)
        self._next = start + amount * self._seconds_each
        return start - now

    def correct(self, difference: float) -> None:
        """Take more, or give back, once the true amount is known."""
        self._next += difference * self._seconds_each


class Lane:
    """The calls to one endpoint: first come, first served.

    Calls at a time rise by one after each round that went well, up to the model's `concurrency`, and are halved
    where the endpoint asks to slow down, once for all calls that were under way (AIMD, Chiu & Jain 1989).
    Models that share an endpoint share its lane, under the tightest of their limits.
    """

    def __init__(self) -> None:
        self.ceiling = 0
        self.width = 0.0
        self._active = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._not_before = 0.0
        self._slowed_at = 0.0
        self._requests: tuple[int, Pace] | None = None
        self._tokens: tuple[int, Pace] | None = None

    def admit(self, model: Model) -> None:
        """Bring a model's limits to bear."""
        if not self.ceiling or model.concurrency < self.ceiling:
            self.ceiling = model.concurrency
            self.width = min(self.width or self.ceiling, self.ceiling)
        self._requests = _tighter(self._requests, model.requests_per_minute)
        self._tokens = _tighter(self._tokens, model.tokens_per_minute)

    async def enter(self) -> None:
        """Wait for a place."""
        if self._active < int(self.width) and not self._waiting:
            self._active += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def leave(self) -> None:
        """Give the place to the next in line."""
        self._active -= 1
        self._wake()

    def wait_s(self, tokens: float) -> float:
        """Seconds until a call of about `tokens` may go; what it takes of the limits is taken."""
        waits = [self._not_before - monotonic()]
        waits += [pace.reserve(amount) for _, pace, amount in self._paces(tokens)]
        return max(0.0, *waits)

    def paused_s(self) -> float:
        """Seconds that the endpoint has asked to wait still."""
        return max(0.0, self._not_before - monotonic())

    def well(self, estimated: float, used: float) -> None:
        """A call went well; it took `used` tokens."""
        self.width = min(self.ceiling, self.width + 1 / max(self.width, 1.0))
        if self._tokens:
            self._tokens[1].correct(used - estimated)
        self._wake()

    def slow_down(self, started: float, wait_s: float) -> None:
        """A call that began at `started` was told to come later: nobody goes before `wait_s` have passed."""
        if started >= self._slowed_at:
            self.width = max(1.0, self.width / 2)
            self._slowed_at = monotonic()
        self._not_before = max(self._not_before, monotonic() + wait_s)

    def _paces(self, tokens: float) -> list[tuple[int, Pace, float]]:
        pairs = ((self._requests, 1.0), (self._tokens, tokens))
        return [(limit[0], limit[1], amount) for limit, amount in pairs if limit]

    def _wake(self) -> None:
        while self._waiting and self._active < int(self.width):
            turn = self._waiting.popleft()
            if not turn.done():
                self._active += 1
                turn.set_result(None)


def _tighter(held: tuple[int, Pace] | None, per_minute: int | None) -> tuple[int, Pace] | None:
    if per_minute is None or (held and held[0] <= per_minute):
        return held
    return per_minute, Pace(per_minute)

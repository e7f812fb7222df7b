"""How much a run may spend on calls."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from storage.errors import InputError
from storage.places import spelled


class BudgetStop(RuntimeError):
    """The budget of a run is used up; what was paid for is kept. `calls` and `cost` (US dollars) were spent."""

    def __init__(self, limit: str, calls: int, cost: float) -> None:
        self.limit, self.calls, self.cost = limit, calls, cost
        super().__init__(
            f"budget: {limit} reached after {calls:,} calls and {cost:.4g} US dollars; "
            f"every reply is kept, run again to go on"
        )

    def __reduce__(self) -> tuple[type["BudgetStop"], tuple[str, int, float]]:
        return BudgetStop, (self.limit, self.calls, self.cost)  # a worker of a cluster sends it to the run


@dataclass
class Budget:
    """What a run may spend, and what it has. A call is counted when it is sent and priced when it replies.

    Calls under way are held at their estimate, so that `max_cost` is passed by no more than the estimate errs.
    """

    max_calls: int | None = None
    max_cost: float | None = None
    calls: int = 0
    cost: float = 0.0
    _held: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def reserve(self, model: str, estimate: float | None) -> bool:
        """Count a call that is about to be sent and hold its estimate.

        False where that must wait for what calls under way will have cost. Raises `BudgetStop` where it would
        pass a limit, `InputError` where its price is unknown and bounded.
        """
        with self._lock:
            if self.max_calls is not None and self.calls >= self.max_calls:
                raise BudgetStop(f"--max-calls {self.max_calls:,}", self.calls, self.cost)
            if self.max_cost is not None:
                if estimate is None:
                    raise InputError(
                        f"--max-cost: a price of model {model} expected, none known; give prompt_price and "
                        f"completion_price in its [models] table, or bound the run with --max-calls"
                    )
                if self.cost + estimate > self.max_cost:
                    raise BudgetStop(f"--max-cost {self.max_cost:g}", self.calls, self.cost)
                if self.cost + self._held + estimate > self.max_cost:
                    return False
            self.calls += 1
            self._held += estimate or 0.0
            return True

    def settle(self, estimate: float | None, cost: float | None) -> None:
        """Replace a held estimate with what the call did cost, None without a reply.

        Where an endpoint counts no tokens that is the estimate, or no bound would ever be met.
        """
        with self._lock:
            self._held -= estimate or 0.0
            self.cost += cost or 0.0


_IN_FORCE: dict[str, Budget] = {}


@contextmanager
def budget(lake: str, *, max_calls: int | None = None, max_cost: float | None = None) -> Iterator[Budget]:
    """Within the block, calls for `lake` from any thread of this process are counted and bounded."""
    root = spelled(lake)
    held = _IN_FORCE.get(root)
    _IN_FORCE[root] = Budget(max_calls, max_cost)
    try:
        yield _IN_FORCE[root]
    finally:
        del _IN_FORCE[root]
        if held:
            _IN_FORCE[root] = held


def in_force(lake: str) -> Budget:
    """The budget of a lake's calls; without bounds where none was set."""
    return _IN_FORCE.get(spelled(lake)) or Budget()

"""How a stage's shards are run, watched and timed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from prefect import Task
from prefect.futures import as_completed

from flows.ending import ends_at_once
from flows.progress import WATCHER

Shards = Sequence[tuple[Task[Any, int], tuple[Any, ...]]]


@dataclass
class Log:
    """What each stage made and how long it took, in seconds."""

    new: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, stage: str, *phases: Shards) -> int:
        """Run shards, phase after phase, the shards of one phase together; returns how many things are new.

        A shard is a task that returns a count, with its arguments. The first failure is raised once the
        others of its phase have ended, so that what they made is kept. SIGINT and SIGTERM wait for none.
        """
        watcher, start = WATCHER.get(), perf_counter()
        watcher.begin(stage, sum(len(phase) for phase in phases))
        with ends_at_once():
            new = sum(_made(phase, lambda: watcher.advance(stage)) for phase in phases)
        self.end(stage, new, perf_counter() - start)
        return new

    def end(self, stage: str, new: int, seconds: float) -> None:
        """Note a finished stage."""
        self.new[stage] = self.new.get(stage, 0) + new
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        WATCHER.get().end(stage, new, seconds)


def _made(phase: Shards, advance: Callable[[], None]) -> int:
    """What the shards of a phase made together."""
    futures = [task.submit(*arguments) for task, arguments in phase]
    failed: list[Any] = []
    for future in as_completed(futures):
        advance()
        failed += [future] if future.state.is_failed() or future.state.is_crashed() else []
    return sum(future.result() for future in [*failed, *futures])

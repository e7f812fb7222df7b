"""What a person sees of a run while it works."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)


class Watcher(Protocol):
    """Is told of stages as they begin, go on and end."""

    def begin(self, stage: str, shards: int) -> None:
        """`shards` of work lie ahead; 0 where there is nothing to do."""
        ...

    def advance(self, stage: str) -> None:
        """One shard is done."""
        ...

    def end(self, stage: str, new: int, seconds: float) -> None:
        """The stage is done; it made `new` things."""
        ...


UNITS: Mapping[str, str] = {
    "ingest": "rows",
    "store": "records",
    "index": "records and texts",
    "pool": "pools",
    "compose": "selections",
    "tune": "readings",
    "answer": "answers",
    "judge": "verdicts and scores",
    "sufficiency": "states",
    "calibrate": "verdicts",
    "report": "files",
}


class Silent:
    """Shows nothing."""

    def begin(self, stage: str, shards: int) -> None:
        """Nothing."""

    def advance(self, stage: str) -> None:
        """Nothing."""

    def end(self, stage: str, new: int, seconds: float) -> None:
        """Nothing."""


class Lines(Silent):
    """One line a stage, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def end(self, stage: str, new: int, seconds: float) -> None:
        """Print what the stage made."""
        self._console.print(_done(stage, new, seconds), highlight=False)


class Bars(Lines):
    """A bar a stage with counts and an estimate, for a terminal."""

    def __init__(self, console: Console, bars: Progress) -> None:
        super().__init__(console)
        self._bars = bars
        self._ids: dict[str, TaskID] = {}

    def begin(self, stage: str, shards: int) -> None:
        """Open the bar."""
        self._ids[stage] = self._bars.add_task(stage, total=max(shards, 1))

    def advance(self, stage: str) -> None:
        """Move the bar."""
        self._bars.advance(self._ids[stage])

    def end(self, stage: str, new: int, seconds: float) -> None:
        """Close the bar and leave a line."""
        if stage in self._ids:
            self._bars.remove_task(self._ids.pop(stage))
        super().end(stage, new, seconds)


SILENT = Silent()
WATCHER: ContextVar[Watcher] = ContextVar("watcher", default=SILENT)


@contextmanager
def shown(console: Console, *, quiet: bool) -> Iterator[None]:
    """Within the block, stages are shown on `console`: bars on a terminal, lines elsewhere, nothing if `quiet`."""
    bars = Progress(
        TextColumn("{task.description:>11}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    live: AbstractContextManager[object] = bars
    watcher: Watcher = Silent() if quiet else Bars(console, bars) if console.is_terminal else Lines(console)
    token = WATCHER.set(watcher)
    try:
        if isinstance(watcher, Bars):
            with live:
                yield
        else:
            yield
    finally:
        WATCHER.reset(token)


def _done(stage: str, new: int, seconds: float) -> str:
    made = f"{new:,} new {UNITS[stage]}" if new else "nothing to do"
    return f"{stage:>11}  {made} ({seconds:.1f} s)"

"""What a person sees of a run while it works."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import ClassVar, Protocol

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

from tasks.llm.waiting import REPLIES


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
    """One line a stage, for logs and pipes, and one a minute while models are waited for."""

    look_s: ClassVar[float] = 60.0

    def __init__(self, console: Console) -> None:
        self._console = console
        self._stage, self._before, self._since = "", 0, monotonic()

    def begin(self, stage: str, shards: int) -> None:
        """Count replies from here."""
        self._stage, self._before, self._since = stage, REPLIES.had, monotonic()

    def look(self) -> None:
        """Print how many replies have come and about how long the others will take, where some are waited for."""
        had, wanted = REPLIES.had - self._before, REPLIES.wanted - self._before
        if wanted > had > 0:
            left = (monotonic() - self._since) / had * (wanted - had)
            self._console.print(
                f"{self._stage:>11}  {had:,} of {wanted:,} replies, about {minutes(left)} left", highlight=False
            )

    def end(self, stage: str, new: int, seconds: float) -> None:
        """Print what the stage made."""
        self._console.print(_done(stage, new, seconds), highlight=False)


class Bars(Lines):
    """A bar a stage with counts and an estimate, for a terminal; one of replies while models are waited for."""

    look_s: ClassVar[float] = 1.0

    def __init__(self, console: Console, bars: Progress) -> None:
        super().__init__(console)
        self._bars = bars
        self._ids: dict[str, TaskID] = {}
        self._replies = bars.add_task("replies", visible=False)

    def look(self) -> None:
        """Move the bar of replies."""
        had, wanted = REPLIES.had - self._before, REPLIES.wanted - self._before
        self._bars.update(self._replies, completed=had, total=wanted, visible=wanted > had)

    def begin(self, stage: str, shards: int) -> None:
        """Open the bar."""
        super().begin(stage, shards)
        self._bars.reset(self._replies, visible=False)
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
        speed_estimate_period=900.0,  # replies of a slow model come a few a minute
    )
    live: AbstractContextManager[object] = bars
    watcher: Watcher = Silent() if quiet else Bars(console, bars) if console.is_terminal else Lines(console)
    token = WATCHER.set(watcher)
    try:
        if isinstance(watcher, Bars):
            with live, _looking(watcher):
                yield
        elif isinstance(watcher, Lines):
            with _looking(watcher):
                yield
        else:
            yield
    finally:
        WATCHER.reset(token)


@contextmanager
def _looking(watcher: Lines) -> Iterator[None]:
    """Within the block the watcher looks how replies come, now and then."""
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(watcher.look_s):
            watcher.look()

    thread = threading.Thread(target=go_on, name="suffice-replies", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def minutes(seconds: float) -> str:
    """A length of time in whole minutes, or in seconds where it is short."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:,.0f} min"


def _done(stage: str, new: int, seconds: float) -> str:
    made = f"{new:,} new {UNITS[stage]}" if new else "nothing to do"
    return f"{stage:>11}  {made} ({seconds:.1f} s)"

"""How far does Prefect's page of a run say that it is?"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, ClassVar
from uuid import UUID

from flows.artifacts import key
from flows.progress import WATCHER, Watcher


@contextmanager
def progress_kept(name: str, stages: Sequence[str]) -> Iterator[None]:
    """Within the block this run has a progress artifact: which of its stages it is at, and how far.

    It costs a call when the block begins and ends, one a stage that has work, and one a minute between. Does nothing
    outside of a flow run; a server that does not take it costs a warning, never the run.
    """
    from prefect.context import FlowRunContext

    if FlowRunContext.get() is None:
        yield
        return
    watcher = Kept(WATCHER.get(), key(name, "progress"), list(dict.fromkeys(("ingest", *stages))))
    token = WATCHER.set(watcher)
    try:
        yield
        watcher.say("done", 100.0)
    except Exception:
        watcher.say(f"stopped, {watcher.place}")
        raise
    finally:
        WATCHER.reset(token)


class Kept:
    """Keeps a run's progress artifact, and passes all that it is told to the `inner` watcher."""

    every_s: ClassVar[float] = 60.0

    def __init__(self, inner: Watcher, artifact: str, stages: Sequence[str]) -> None:
        self._inner, self._stages = inner, stages
        self._stage, self._shards, self._done = stages[0], 1, 0
        self._said = monotonic()
        self._id: UUID | None = self._asked(lambda api: api.create_progress_artifact(0.0, artifact, self.place))

    @property
    def place(self) -> str:
        """Where the run is, in words."""
        return f"stage {self._at + 1} of {len(self._stages)}: {self._stage}"

    @property
    def _at(self) -> int:
        return self._stages.index(self._stage)

    def begin(self, stage: str, shards: int) -> None:
        """Say which stage it is, if it has work."""
        self._inner.begin(stage, shards)
        self._stage, self._shards, self._done = stage, max(shards, 1), 0
        if shards:
            self.say(self.place)

    def advance(self, stage: str) -> None:
        """Say how far it is, once a minute."""
        self._inner.advance(stage)
        self._done += 1
        if monotonic() - self._said >= self.every_s:
            self.say(self.place)

    def end(self, stage: str, new: int, seconds: float) -> None:
        """Pass it on."""
        self._inner.end(stage, new, seconds)

    def say(self, words: str, percent: float | None = None) -> None:
        """Put words on the artifact with a percentage: if None, that of the stages, and of this one's shards, done."""
        share = (self._at + self._done / self._shards) / len(self._stages)
        value = round(100 * share, 1) if percent is None else percent
        self._said, own = monotonic(), self._id
        if own is not None:
            self._id = self._asked(lambda api: api.update_progress_artifact(own, value, words))

    def _asked(self, call: Callable[[Any], UUID]) -> UUID | None:
        """The artifact's id; None, and no further call, once the server has refused."""
        import prefect.artifacts

        try:
            return call(prefect.artifacts)
        except Exception as error:  # whatever the client raises: the run is not there for its artifact
            logging.getLogger(__name__).warning("no progress of this run is kept: %s", error)
            return None

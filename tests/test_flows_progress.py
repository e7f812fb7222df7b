"""Whoever waits for a slow model is told how far it is."""

from io import StringIO

import pytest
from rich.console import Console

from flows import progress
from flows.progress import Lines
from tasks.llm.waiting import REPLIES


def test_replies_that_are_waited_for_are_told_with_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    out, now = StringIO(), [100.0]
    monkeypatch.setattr(progress, "monotonic", lambda: now[0])
    with REPLIES.awaited(2) as tell:
        tell()
    lines = Lines(Console(file=out, width=200))
    lines.begin("answer", 1)
    with REPLIES.awaited(4) as tell:
        now[0] += 60.0
        lines.look()
        tell()
        lines.look()
        now[0] += 30.0
        tell()
        lines.look()
    lines.look()
    assert [line.strip() for line in out.getvalue().splitlines()] == [
        "answer  1 of 4 replies, about 3 min left",
        "answer  2 of 4 replies, about 2 min left",
    ]


def test_replies_that_never_came_are_no_longer_waited_for() -> None:
    before = REPLIES.wanted, REPLIES.had
    with pytest.raises(KeyError), REPLIES.awaited(3) as tell:
        tell()
        raise KeyError
    assert (REPLIES.wanted - before[0], REPLIES.had - before[1]) == (1, 1)

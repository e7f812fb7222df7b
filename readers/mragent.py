"""What does an agent gather that searches the flat turns with tools, round after round?"""

import re
from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar

import numpy as np

from readers.bfr import persons
from readers.completion import Action, by_name, by_session, by_time, by_words
from readers.replies import json_object, known, shown, text_of
from readers.types import Access, Budget, Evidence, Note, Pool, Query, Step, StopReason, fallback

_DAY = 86_400.0
_SECOND = 1 / _DAY
_DATE = re.compile(r"(\d{4})-(\d{2})(?:-(\d{2}))?")
_SOURCE = "MRAgent (arXiv 2606.06036), as flattened by BFR (arXiv 2610.09348), same-store controls"
EVIDENCE = ("retrieved", "cited")


@dataclass(frozen=True)
class Found:
    """What the agent knows: the records in order of arrival, numbered from 1, and the calls made so far."""

    question: str
    notes: tuple[Note, ...]
    done: tuple[str, ...]


@dataclass(frozen=True)
class Decision:
    """What the agent does next: tool calls, or an end with the records it cites. `why`: the reply was of no use."""

    calls: tuple[Action, ...] = ()
    cited: tuple[str, ...] = ()
    why: str = ""


Decide = Callable[[Found, int], Decision]


@dataclass(frozen=True)
class MragentFlat:
    """MRAgent over flat turns: a model calls tools in at most `rounds` rounds and `tools` calls, then cites records.

    Tools: `search_text`, `search_entity`, `search_temporal` (a day or a month) and `search_session` (of a record), each
    of `depth` records and each a counted retrieval call. One ask a round; the last one asks for the records alone.
    `evidence`: `retrieved`, all that came back in order of arrival, or `cited`, those that the model named at its end.
    The pool is not read. A reply of no use ends the search; if nothing is held by then the question itself is searched
    once, and the trace says so (`fallback`).
    Inferred, because no source says: that the evidence is the union retrieved; that a search passes over what is held,
    so that the same search again is its next page. Dropped with the graph: cues, tags, topics, personas and the ask for
    keywords. Prompts are this project's own. Raises `ValueError` for a parameter out of range.
    """

    model: str = ""
    rounds: int = 8
    tools: int = 50
    depth: int = 5
    evidence: str = "retrieved"

    searches: ClassVar[bool] = True
    prompts: ClassVar[tuple[str, ...]] = ("mragent",)
    title: ClassVar[str] = "MRAgent's same-store control: a model searches flat turns with tools"
    source: ClassVar[str] = _SOURCE

    def __post_init__(self) -> None:
        _check(rounds=self.rounds, tools=self.tools, depth=self.depth)
        if self.evidence not in EVIDENCE:
            raise ValueError(f"evidence ({self.evidence}) must be one of {', '.join(EVIDENCE)}")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        def decide(found: Found, left: int) -> Decision:
            said = access.ask(
                "mragent",
                question=found.question,
                records=shown(found.notes),
                searches="\n".join(found.done) or "(none)",
                rounds_left=str(left),
            )
            return decision(said, found, last=left == 0)

        search = Search(query.text, access, _least(self.tools, budget.calls), self.depth)
        return search.run(decide, self.rounds, budget, cited=self.evidence == "cited")


@dataclass(frozen=True)
class MragentScripted:
    """The tool loop of `mragent_flat` under a script in place of the model: what the tools alone give. No model.

    First the question's words and the first person it names are searched, then the session of the first record found;
    that is all: at most three calls. Parameters as in `MragentFlat`. Raises `ValueError` for one out of range.
    """

    rounds: int = 8
    tools: int = 50
    depth: int = 5

    searches: ClassVar[bool] = True
    title: ClassVar[str] = "MRAgent's tools under a fixed script, without a model"
    source: ClassVar[str] = f"this project, after {_SOURCE}"

    def __post_init__(self) -> None:
        _check(rounds=self.rounds, tools=self.tools, depth=self.depth)

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        search = Search(query.text, access, _least(self.tools, budget.calls), self.depth)
        return search.run(scripted, self.rounds, budget, cited=False)


def scripted(found: Found, left: int) -> Decision:
    """The script: words and a name, then a session, then the end."""
    if not found.done:
        named = persons(found.question)[:1]
        return Decision((by_words(found.question), *map(by_name, named)))
    if found.notes and not any(line.startswith("session") for line in found.done):
        return Decision((by_session(found.notes[0].id),))
    return Decision()


@dataclass
class Search:
    """One question's search: at most `most` calls of `depth` records each."""

    question: str
    access: Access
    most: float
    depth: int
    held: dict[str, Note] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    calls: int = 0

    def run(self, decide: Decide, rounds: int, budget: Budget, *, cited: bool) -> Evidence:
        """Rounds of decisions until one calls no tool, or rounds or calls are spent."""
        last, stop = Decision(), "budget"
        for place in range(rounds):
            left = rounds - 1 - place if self.calls < self.most else 0
            last = decide(Found(self.question, tuple(self.held.values()), self._done()), left)
            if last.why:
                self._rescue(last.why)
            for action in last.calls[: int(min(self.most - self.calls, len(last.calls)))]:
                self._call(action)
            if not last.calls:
                stop = "adaptive" if left > 0 and not last.why else "budget"
                break
        ids = list(last.cited) if cited else list(self.held)
        if cited and not ids:
            ids = list(self.held)
            self.steps.append(fallback("no record cited: all that were retrieved", ids))
        return self._within(ids, budget, stop)

    def _call(self, action: Action) -> None:
        notes = action.ask(self.access, self.depth, self.held)
        ids = tuple(note.id for note in notes)
        self.calls += 1
        self.held |= {note.id: note for note in notes}
        self.steps.append(Step(action.view, action.cue, ids, ids))

    def _rescue(self, why: str) -> None:
        """Say that a reply was of no use, and search the question's words where nothing is held yet."""
        self.steps.append(fallback(why, tuple(self.held)))
        if not self.held and self.calls < self.most:
            self._call(by_words(self.question))

    def _done(self) -> tuple[str, ...]:
        return tuple(f"{step.view}: {step.cue}" for step in self.steps if step.view != "fallback")

    def _within(self, ids: Sequence[str], budget: Budget, stop: str) -> Evidence:
        tokens = np.array([self.held[id].tokens for id in ids], np.int64)
        kept = tuple(ids[place] for place in budget.prefix(np.arange(len(ids)), tokens))
        reason: StopReason = "budget" if len(kept) < len(ids) or stop == "budget" else "adaptive"
        return Evidence(kept, reason, calls=self.calls, trace=tuple(self.steps))


def decision(said: str, found: Found, *, last: bool) -> Decision:
    """What a reply tells to do: `{"calls": [...]}` or `{"records": [numbers]}`; in the last round no calls."""
    told = json_object(said, "calls", "records")
    if told is None:
        return Decision(why="neither tool calls nor records in the reply")
    asked = told.get("calls") or []
    made = [tool(call, found.notes) for call in asked] if isinstance(asked, list) else []
    calls = tuple(action for action in made if action is not None)
    if calls and not last:
        return Decision(calls)
    numbers = told.get("records")
    cited = known(numbers if isinstance(numbers, list) else [], len(found.notes))
    if asked and not calls and not cited:
        return Decision(why="no tool call in the reply that can be made")
    return Decision(cited=tuple(found.notes[number - 1].id for number in cited))


def tool(call: Any, notes: Sequence[Note]) -> Action | None:
    """The read behind one tool call, None for an unknown tool or an argument that fits none."""
    if not isinstance(call, dict):
        return None
    name, value = str(call.get("tool", "")), call.get("value")
    if name in ("search_text", "search_entity") and text_of(value):
        return by_words(text_of(value)) if name == "search_text" else by_name(text_of(value))
    if name == "search_temporal":
        return around(text_of(value))
    if name == "search_session":
        numbered = known([value], len(notes))
        return by_session(notes[numbered[0] - 1].id) if numbered else None
    return None


def around(date: str) -> Action | None:
    """The records of a day `2023-05-08` or of a month `2023-05`, the nearest to its middle first."""
    match = _DATE.fullmatch(date)
    if not match:
        return None
    year, month = int(match[1]), int(match[2])
    try:
        start = datetime(year, month, int(match[3] or 1), tzinfo=UTC).timestamp()
        days = 1 if match[3] else monthrange(year, month)[1]
    except ValueError:
        return None
    # A second short of the next midnight, which the view would take in.
    return by_time(start + (days - _SECOND) * _DAY / 2, (days - _SECOND) / 2)


def _least(own: int, limit: int | None) -> int:
    return own if limit is None else min(own, limit)


def _check(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name} ({count}) must be at least 1")

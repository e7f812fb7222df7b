"""Which further records complete a first set of evidence, within rounds, calls and new records?"""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from readers.types import Access, Budget, Evidence, Note, Query, Step, StopReason


@dataclass(frozen=True, slots=True)
class State:
    """What a round starts from. `evidence`: records in order of arrival; `round`: rounds done before this one."""

    question: str
    evidence: tuple[Note, ...]
    round: int


@dataclass(frozen=True, slots=True)
class Action:
    """One read to issue, which is one call. `ask(access, most, without)` issues it; `cue` is for the trace."""

    view: str
    cue: str
    ask: Callable[[Access, int, Collection[str]], tuple[Note, ...]]


Cue = Callable[[State], Action | None]
Schedule = tuple[Cue, ...]


@dataclass(frozen=True)
class Policy:
    """How a reader completes; each part is a function of the state that the round starts from.

    `plan`: the actions of a round, None where a cue is missing. `retain`: which of the records that came back are
    kept, best first. `depth`: how many records a read asks for. `satisfied`: whether to stop before the budget does.
    """

    plan: Callable[[State], Iterable[Action | None]]
    retain: Callable[[State, tuple[Note, ...]], Sequence[Note]]
    depth: int
    satisfied: Callable[[State], bool] = lambda state: False


def complete(query: Query, first: Evidence, name: str, policy: Policy, budget: Budget, access: Access) -> Evidence:
    """`first`, the evidence of the reader `name`, and what the rounds add to it.

    A round issues the actions of the plan in turn while calls last, each without the evidence that the round started
    from, and keeps once, over all that came back. A missing cue is no call. What is kept is cut to the new records,
    and to the records and tokens, that the budget still holds.
    Source: Algorithm 2 of BFR (arXiv 2610.09348). Deviation: a round that keeps nothing is the last, because every
    later one would ask the same; the release asks on until its calls are spent. The reason is then
    `pool_exhausted`: the policy finds nothing more.
    """
    held = {note.id: note for note in access.notes(first.ids)}
    trace = [*(step for step in first.trace if step.view == "fallback"), Step("init", name, first.ids, first.ids)]
    rounds = calls = 0
    stop: StopReason = "empty_pool" if first.stop_reason == "empty_pool" else "budget"
    while stop == "budget" and rounds < _bound(budget.rounds) and calls < _bound(budget.calls):
        room = _room(budget, tuple(held.values()), len(first.ids))
        if room.records == 0:
            break
        state = State(query.text, tuple(held.values()), rounds)
        if policy.satisfied(state):
            stop = "adaptive"
            break
        steps, found = _ask(policy, state, access, _bound(budget.calls) - calls)
        retained = policy.retain(state, found)
        kept = _fitting(retained, room)
        held |= {note.id: note for note in kept}
        trace += _attributed(steps, [note.id for note in kept])
        rounds += 1
        calls += len(steps)
        if len(kept) < len(retained):
            break
        if not kept:
            stop = "pool_exhausted"
    return Evidence(ids=tuple(held), stop_reason=stop, calls=calls, trace=tuple(trace))


def _ask(policy: Policy, state: State, access: Access, calls: float) -> tuple[list[Step], tuple[Note, ...]]:
    """A round's calls with what each returned, and the records returned, once each in order of first return."""
    without = {note.id for note in state.evidence}
    steps: list[Step] = []
    found: dict[str, Note] = {}
    for action in policy.plan(state):
        if len(steps) >= calls:
            break
        if action is not None:
            notes = action.ask(access, policy.depth, without)
            steps.append(Step(action.view, action.cue, tuple(note.id for note in notes), ()))
            for note in notes:
                found.setdefault(note.id, note)
    return steps, tuple(found.values())


def _attributed(steps: Iterable[Step], kept: Sequence[str]) -> list[Step]:
    """The steps, each with those kept records that it was the first to return."""
    told, seen = [], set[str]()
    for step in steps:
        told.append(replace(step, kept=tuple(id for id in kept if id in step.returned and id not in seen)))
        seen |= set(step.returned)
    return told


def _room(budget: Budget, held: Sequence[Note], first: int) -> Budget:
    """The records and tokens that may still be added."""
    bounds = (_left(budget.new_records, len(held) - first), _left(budget.records, len(held)))
    known = [bound for bound in bounds if bound is not None]
    return Budget(
        records=min(known) if known else None,
        tokens=_left(budget.tokens, sum(note.tokens for note in held)),
    )


def _fitting(notes: Sequence[Note], room: Budget) -> Sequence[Note]:
    tokens = np.array([note.tokens for note in notes], np.int64)
    return notes[: len(room.prefix(np.arange(len(notes)), tokens))]


def _left(limit: int | None, spent: int) -> int | None:
    return None if limit is None else max(0, limit - spent)


def _bound(limit: int | None) -> float:
    return math.inf if limit is None else limit


# Reads ---------------------------------------------------------------------------------------------------


def by_words(cue: str) -> Action:
    """The text view."""
    return Action("text", cue, lambda access, most, without: access.text(cue, most, without))


def by_name(name: str) -> Action:
    """The entity view."""
    return Action("entity", name, lambda access, most, without: access.entity(name, most, without))


def by_session(anchor: str) -> Action:
    """The session view."""
    return Action("session", anchor, lambda access, most, without: access.session(anchor, most, without))


def by_time(anchor: float, days: float) -> Action:
    """The time view."""
    return Action(
        "time", f"{anchor:.0f}±{days:g}d", lambda access, most, without: access.time(anchor, days, most, without)
    )


def by_rank(name: str, order: Sequence[str]) -> Action:
    """The next page of the ranking `order` that the reader `name` made: its first records not in evidence."""

    def ask(access: Access, most: int, without: Collection[str]) -> tuple[Note, ...]:
        return access.ranked(order, most, without)

    return Action("ranking", name, ask)

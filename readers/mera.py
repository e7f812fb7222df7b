"""What does a planner recover that asks, round after round, for what its verified evidence still lacks?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from readers.replies import json_object, known, numbers, shown, text_of
from readers.types import Access, Budget, Evidence, Note, Pool, Query, Step, StopReason, fallback


@dataclass(frozen=True)
class MeraFlat:
    """MERA over flat turns: in at most `rounds` rounds a model plans the next search, then verifies what came back.

    A round is two asks: a query from the question and the facts verified so far, searched in the text view for `depth`
    records not seen yet (one counted call); then which of those records bear on the question. Evidence are the verified
    records, in order of their verification. The planner may end the search. The pool is not read.
    A plan that cannot be read becomes the question itself, a verification that cannot be read keeps all that came
    back; the trace says so (`fallback`). Source: arXiv 2609.37443, whose 0.6B planner is trained by reinforcement; here
    any model is asked. Inferred: prompts, rounds and depth, and that a verified fact is its record.
    Raises `ValueError` for a parameter below one.
    """

    model: str = ""
    rounds: int = 4
    depth: int = 10

    searches: ClassVar[bool] = True
    prompts: ClassVar[tuple[str, ...]] = ("mera_plan", "mera_verify")
    title: ClassVar[str] = "MERA's same-store control: a model plans searches and verifies what they bring"
    source: ClassVar[str] = "MERA (arXiv 2609.37443), over the flat store"

    def __post_init__(self) -> None:
        for name in ("rounds", "depth"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} ({getattr(self, name)}) must be at least 1")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        verified: list[Note] = []
        seen: set[str] = set()
        steps: list[Step] = []
        stop: StopReason = "budget"
        for _ in range(self.rounds if budget.calls is None else min(self.rounds, budget.calls)):
            cue, why = plan(query.text, verified, steps, access)
            if why:
                steps.append(fallback(why))
            if not cue:
                stop = "adaptive"
                break
            notes = access.text(cue, self.depth, seen)
            kept, why = verify(query.text, notes, access)
            if why:
                steps.append(fallback(why, [note.id for note in kept]))
            steps.append(Step("text", cue, tuple(note.id for note in notes), tuple(note.id for note in kept)))
            verified += kept
            seen |= {note.id for note in notes}
        return _within(verified, steps, budget, stop)


def plan(question: str, verified: Sequence[Note], steps: Sequence[Step], access: Access) -> tuple[str, str]:
    """The next query, empty at the end of the search, and why the reply was of no use."""
    asked = [step.cue for step in steps if step.view == "text"]
    said = access.ask("mera_plan", question=question, records=shown(verified), searches="\n".join(asked) or "(none)")
    told = json_object(said, "query", "done")
    if told is None:
        return question, "no query in the reply: the question itself"
    return ("" if told.get("done") is True else text_of(told.get("query"))), ""


def verify(question: str, notes: Sequence[Note], access: Access) -> tuple[list[Note], str]:
    """Those of the records that bear on the question, and why the reply was of no use."""
    if not notes:
        return [], ""
    said = access.ask("mera_verify", question=question, records=shown(notes))
    told = json_object(said, "records")
    values: Any = told["records"] if told else None
    kept = known(values, len(notes)) if isinstance(values, list) else numbers(said, len(notes))
    if kept is None:
        return list(notes), "no records in the reply: all that came back"
    return [notes[number - 1] for number in kept], ""


def _within(verified: Sequence[Note], steps: Sequence[Step], budget: Budget, stop: StopReason) -> Evidence:
    tokens = np.array([note.tokens for note in verified], np.int64)
    kept = budget.prefix(np.arange(len(verified)), tokens)
    calls = sum(step.view == "text" for step in steps)
    ids = tuple(verified[place].id for place in kept)
    return Evidence(ids, "budget" if len(kept) < len(verified) else stop, calls=calls, trace=tuple(steps))

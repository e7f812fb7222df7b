"""What every source returns: conversations, questions, gold and an account of the irregular."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from storage.digests import digest
from storage.records import Gold, Question, Record, Turn


@dataclass(frozen=True)
class Ingested:
    """One benchmark as read.

    `facts`: label → count, or the list of irregular things that were repaired, dropped or ignored.
    `observations`: facts that the file comes with, as records in time order.
    """

    benchmark: str
    turns: Sequence[Turn]
    questions: Sequence[Question]
    gold: Sequence[Gold]
    facts: Mapping[str, Any]
    observations: Sequence[Record] = ()

    @cached_property
    def dataset(self) -> str:
        """The address of what readers and answerers see. Gold is not part of it: a corrected label keeps answers."""
        turns = [
            [t.id, t.conversation_id, t.session_id, t.position, t.speaker, t.text, t.caption, _iso(t.said_at)]
            for t in self.turns
        ]
        questions = [[q.id, q.conversation_id, q.kind, _iso(q.asked_at), q.text] for q in self.questions]
        seen: dict[str, Any] = {"benchmark": self.benchmark, "turns": turns, "questions": questions}
        if self.observations:
            seen["observations"] = [[o.id, o.speaker, o.text, list(o.source_turn_ids)] for o in self.observations]
        return digest(seen)

    @cached_property
    def gold_digest(self) -> str:
        """The address of what metrics and judges compare with."""
        rows = [[g.question_id, g.answer, list(g.turn_ids), list(g.session_ids), list(g.rubric)] for g in self.gold]
        return digest({"dataset": self.dataset, "gold": rows})


def _iso(time: Any) -> str | None:
    return None if time is None else str(time.isoformat())

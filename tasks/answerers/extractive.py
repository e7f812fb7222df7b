"""Which answer the evidence gives, without a model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from storage.records import Question, Record
from tasks.answerers.asked import asked_for
from tasks.answerers.ranking import RANKED, ranked
from tasks.answerers.reading import READ_CHARACTERS, Known
from tasks.answerers.spans import answer_words
from tasks.asking import Asking
from tasks.outcomes import NO_INFORMATION, Answer
from tasks.provenance import code

JOIN_SHARE = 0.6  # of the best record's score, to join a list


@dataclass(frozen=True)
class Extractive:
    """Picks the answer's words from the evidence by word overlap and by the question's kind.

    `threshold`: the least share, in [0, 1], of the question's weight that the best record must cover;
    below it the reply is `NO_INFORMATION`. `joined`: how many records a list answer may draw on.
    Deterministic; ties go to the older record and to the earlier span. At most the first 20,000 characters
    of a record are read. The rules were written after reading samples of all ten LoCoMo conversations; the
    weights were searched on 26, 30, 41, 42, 43 alone. On gold evidence these score 0.43 by stem F1, the other
    five 0.41 (non-adversarial questions).
    Raises `ValueError` for a threshold outside [0, 1] or `joined` outside [1, 8].
    """

    name: ClassVar[str] = "extractive"
    title: ClassVar[str] = "picks the answer's words from the evidence (offline, no model)"
    offline: ClassVar[bool] = True

    threshold: float = 0.3
    joined: int = 4
    _known: Known = field(default_factory=Known, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1 or not 1 <= self.joined <= RANKED:
            raise ValueError(
                f"threshold must be in [0, 1] and joined in [1, {RANKED}], not {self.threshold} and {self.joined}"
            )

    def spec(self) -> dict[str, object]:
        """The code that decides, so that a changed rule is another answerer."""
        return {
            "code": code(
                "tasks.answerers.extractive",
                "tasks.answerers.asked",
                "tasks.answerers.reading",
                "tasks.answerers.ranking",
                "tasks.answerers.spans",
                "tasks.answerers.dates",
                "tasks.text",
            )
        }

    def answer_many(
        self, items: Sequence[tuple[Question, Sequence[Record]]], asking: Asking | None = None
    ) -> Iterator[Answer]:
        for question, evidence in items:
            yield Answer(self._answer(question, evidence), "ok")

    def _answer(self, question: Question, evidence: Sequence[Record]) -> str:
        asked = asked_for(question.text[:READ_CHARACTERS])
        best = ranked(asked, [self._known.read(record) for record in evidence])
        if not best or best[0].coverage < self.threshold:
            return NO_INFORMATION
        several = self.joined if asked.plural else 1
        near = [item for item in best[:several] if item.score >= JOIN_SHARE * best[0].score]
        return answer_words(asked, near or best[:1], best[:3]) or NO_INFORMATION

"""What an answerer is, and which there are."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol

from storage.records import Question, Record
from tasks.answerers.extractive import Extractive
from tasks.outcomes import Answer


class Answerer(Protocol):
    """Answers questions from their evidence, and from nothing else: gold never reaches it.

    `offline`: needs no model and costs nothing; its numbers are labelled as its own in every table.
    """

    name: ClassVar[str]
    offline: ClassVar[bool]

    def spec(self) -> dict[str, object]:
        """What changes replies beside the parameters, as plain JSON values; part of every answer's key."""
        ...

    def answer_many(self, items: Sequence[tuple[Question, Sequence[Record]]]) -> Iterator[Answer]:
        """One answer an item, in the items' order, each yielded as soon as it is known.

        An item is (question, evidence records, oldest first). Empty evidence is answered by the declared
        rule `tasks.outcomes.NO_INFORMATION`, not by a model.
        """
        ...


ANSWERERS: dict[str, type[Any]] = {"extractive": Extractive}

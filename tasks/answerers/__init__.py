"""What an answerer is, and which there are."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol

from storage.records import Question, Record
from tasks.answerers.extractive import Extractive
from tasks.answerers.prompted import Prompted
from tasks.asking import Asking
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

    def answer_many(
        self, items: Sequence[tuple[Question, Sequence[Record]]], asking: Asking
    ) -> Iterator[Answer | None]:
        """One answer an item, in the items' order; None where no reply was had, so that it is asked for later.

        An item is (question, evidence records, oldest first). `asking` reaches the protocol's models. Empty evidence
        is answered by the declared rule `tasks.outcomes.NO_INFORMATION` unless the answerer says otherwise.
        """
        ...


ANSWERERS: dict[str, type[Any]] = {"extractive": Extractive, "prompted": Prompted}

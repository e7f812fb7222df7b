"""What a judge is, and which there are."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol

from storage.records import Gold, Question
from tasks.judges.lexical import LexicalMatch, StemF1
from tasks.outcomes import Verdict


class Judge(Protocol):
    """Grades replies against gold.

    `offline`: needs no model and costs nothing; its numbers are labelled as its own in every table.
    """

    name: ClassVar[str]
    offline: ClassVar[bool]

    def spec(self) -> dict[str, object]:
        """What changes verdicts beside the parameters, as plain JSON values; part of every verdict's key."""
        ...

    def judge_many(self, items: Sequence[tuple[Question, Gold, str | None]]) -> Iterator[Verdict]:
        """One verdict an item, in the items' order, each yielded as soon as it is known.

        An item is (question, its gold, the reply); a reply of None is one that could not be had.
        """
        ...


JUDGES: dict[str, type[Any]] = {"stem_f1": StemF1, "lexical_match": LexicalMatch}

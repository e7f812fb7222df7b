"""What a judge is, and which there are."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol

from storage.records import Gold, Question
from tasks.asking import Asking
from tasks.judges.absence import LocomoAdversarial
from tasks.judges.beam import Beam
from tasks.judges.graded import Lenient, Strict
from tasks.judges.lexical import LexicalMatch, StemF1
from tasks.judges.longmemeval import LongMemEval
from tasks.judges.recorded import Recorded
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

    def judge_many(
        self, items: Sequence[tuple[Question, Gold, str | None]], asking: Asking
    ) -> Iterator[Verdict | None]:
        """One verdict an item, in the items' order; None where no reply was had, so that it is asked for later.

        An item is (question, its gold, the reply); a reply of None is one that could not be had. `asking` reaches the
        protocol's models.
        """
        ...


JUDGES: dict[str, type[Any]] = {
    "stem_f1": StemF1,
    "lexical_match": LexicalMatch,
    "locomo_adversarial": LocomoAdversarial,
    "lenient": Lenient,
    "strict": Strict,
    "longmemeval": LongMemEval,
    "beam": Beam,
    "recorded": Recorded,
}

"""What a judge of sufficiency is, and which there are."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Protocol

from tasks.asking import Asking
from tasks.judges.asked import Told
from tasks.sufficiency.blinded import Blinded
from tasks.sufficiency.exhibit import Exhibit
from tasks.sufficiency.lexical import LexicalCover


class SufficiencyJudge(Protocol):
    """Says whether an evidence text holds all that a reference answer needs.

    It is blind: it is handed no method, budget, id, score or reply. `offline`: needs no model.
    """

    name: ClassVar[str]
    offline: ClassVar[bool]

    def spec(self) -> dict[str, object]:
        """What changes votes beside the parameters, as plain JSON values."""
        ...

    def judge_many(self, items: Sequence[Exhibit], asking: Asking) -> Iterator[Told[str] | None]:
        """One vote an item, in order: one of `exhibit.LABELS`. None: no reply was had, to be asked again later."""
        ...


SUFFICIENCY_JUDGES: dict[str, type[Any]] = {"lexical_cover": LexicalCover, "blinded": Blinded}

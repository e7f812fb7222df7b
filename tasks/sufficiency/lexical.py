"""Whether the words of the reference answer stand in the evidence: a stand-in that needs no model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tasks.asking import Asking
from tasks.judges.asked import Told
from tasks.judges.lexical import canonical_words
from tasks.provenance import code
from tasks.sufficiency.exhibit import Exhibit
from tasks.text import STOP_WORDS, stem


@dataclass(frozen=True)
class LexicalCover:
    """Sufficient if at least `threshold` of the reference's distinct content stems stand in the evidence.

    Dates and numbers are written one way on both sides. A reference without content words ("yes") is uncertain, and so
    is an evidence text that holds some but too few; one that holds none is insufficient. It knows no inference: a date
    that has to be worked out counts as missing. Its rates are its own and stand for no model's.
    Raises `ValueError` for a threshold outside (0, 1].
    """

    name: ClassVar[str] = "lexical_cover"
    title: ClassVar[str] = "the reference's words are in the evidence (offline stand-in)"
    offline: ClassVar[bool] = True

    threshold: float = 0.8

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ValueError(f"threshold must be in (0, 1], not {self.threshold}")

    def spec(self) -> dict[str, object]:
        """The code that decides."""
        return {"code": code("tasks.sufficiency.lexical", "tasks.judges.lexical", "tasks.text")}

    def judge_many(self, items: Sequence[Exhibit], asking: Asking | None = None) -> Iterator[Told[str] | None]:
        for exhibit in items:
            yield Told(self._label(exhibit), "ok", None)

    def _label(self, exhibit: Exhibit) -> str:
        wanted = _stems(exhibit.reference)
        if not wanted:
            return "uncertain"
        found = len(wanted & _stems(exhibit.evidence)) / len(wanted)
        return "sufficient" if found >= self.threshold else "insufficient" if found == 0 else "uncertain"


def _stems(text: str) -> set[str]:
    return {stem(word) for word in canonical_words(text) if word not in STOP_WORDS}

"""Whether a reply says that there is no such information, as LoCoMo's adversarial questions want it."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from storage.records import Gold, Question
from tasks.asking import Asking
from tasks.judges.deciding import decided
from tasks.outcomes import Verdict
from tasks.provenance import code

_INFORMATION = r"(?:information|info|record|mention|evidence|answer|details?|indication|reference|data)"
_SAID = r"(?:mentioned|stated|specified|said|given|provided|known|discussed|available|recorded|described|found|clear)"
_NOT = r"(?:(?:is|was|are|were|has|have|does|do|did)(?: not|n['’]?t)|cannot|can not|can['’]?t|could not|couldn['’]?t)"
_TELLER = r"(?:\A|[.;,:]\s*|\b(?:i|we|it|they|that|which|records?|evidence|conversations?|memor(?:y|ies)|text) )"
_DENIED = re.compile(
    rf"\b(?:no (?:\w+ ){{0,2}}{_INFORMATION}\b|not (?:\w+ly |been )?{_SAID}\b|{_NOT} (?:\w+ ){{0,2}}{_SAID}\b"
    rf"|{_NOT} (?:\w+ )?(?:mention|state|specify|indicate|include|contain|provide)\b"
    rf"|{_NOT} any (?:\w+ )?{_INFORMATION}\b|(?:not enough|insufficient) (?:\w+ )?{_INFORMATION}\b"
    rf"|(?:nothing|none) (?:\w+ ){{0,4}}(?:{_SAID}|mentions?|says?|states?)\b"
    rf"|{_NOT} (?:be )?(?:answer|determin)\w*"
    r"|(?:unknown|unclear|unanswerable|unspecified|never (?:mentioned|said|stated)|not sure)\b)"
    rf"|{_TELLER}{_NOT} (?:be )?(?:say|know|have|tell|find|told|found)\b",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"\b(?:but|however|though|although|probably|likely|perhaps|suggests?|implies|instead)\b", re.IGNORECASE
)


def denies(reply: str, slack: int = 20) -> bool:
    """Whether `reply` says that there is no such information and stops there.

    It holds a phrase of denial, no turn to an answer all the same ("but", "probably"), and at most `slack` words.
    """
    return len(reply.split()) <= slack and _DENIED.search(reply) is not None and _TURN.search(reply) is None


@dataclass(frozen=True)
class LocomoAdversarial:
    """Right iff the reply says that there is no such information (`denies`), at most `slack` words long.

    For questions of kind "adversarial", whose recorded answers are traps; every other kind is `failed`, not judged.
    A missing or blank reply is wrong. Source: snap-research/locomo, task_eval/evaluation.py, category 5; deviation:
    it looks for two phrases alone and accepts a reply that gives the trap after them.
    Raises `ValueError` for a slack below 1.
    """

    name: ClassVar[str] = "locomo_adversarial"
    title: ClassVar[str] = "adversarial questions: the reply says there is no such information (offline)"
    offline: ClassVar[bool] = True

    slack: int = 20

    def __post_init__(self) -> None:
        if self.slack < 1:
            raise ValueError(f"slack must be at least 1, not {self.slack}")

    def spec(self) -> dict[str, object]:
        """The code that decides."""
        return {"code": code("tasks.judges.absence")}

    def judge_many(
        self, items: Sequence[tuple[Question, Gold, str | None]], asking: Asking | None = None
    ) -> Iterator[Verdict]:
        for question, _, reply in items:
            if question.kind != "adversarial":
                yield Verdict(None, None, "failed")
            else:
                yield decided(reply is not None and denies(reply, self.slack))

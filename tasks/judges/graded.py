"""Whether a model finds that a reply says the gold answer: the generous judge and the strict one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from storage.records import Gold, Question
from tasks.asking import Asking
from tasks.judges.absence import denies
from tasks.judges.asked import Ask, first_requests, told
from tasks.judges.deciding import LABELS, decided, decision, verdict
from tasks.judges.replies import words
from tasks.llm import Request
from tasks.outcomes import Verdict
from tasks.prompts import Prompt, load
from tasks.provenance import code

Items = Sequence[tuple[Question, Gold, str | None]]

OFFERS = ("question", "reference", "reply", "right", "wrong")


@dataclass(frozen=True)
class Graded:
    """A model judge of two labels.

    `prompt`: a shipped prompt's name or a file with any of the variables `OFFERS`. `words`: what the model is to
    say, right then wrong; they belong to the judge, because small models say some words better than others.
    `repeats`: how often each answer is judged; the score is the mean, the label the majority.
    A missing or blank reply is wrong without asking. A question of kind "adversarial" is decided by `denies`; any
    other without a gold answer is `failed`. Raises `ValueError` for words or repeats that do not fit.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    offline: ClassVar[bool] = False

    model: str
    prompt: str = ""
    words: str = "yes/no"
    repeats: int = 1

    def __post_init__(self) -> None:
        words(LABELS, self.words)
        self._prompt()
        if self.repeats < 1:
            raise ValueError(f"repeats must be at least 1, not {self.repeats}")

    def spec(self) -> dict[str, object]:
        """The prompt's digest and the code that reads replies."""
        return {"prompt": self._prompt().digest, "code": _code()}

    def judge_many(self, items: Items, asking: Asking) -> Iterator[Verdict | None]:
        asks = self._asks(items)
        votes = iter(told(asking, asking.model(self.model), asks, repeats=self.repeats, purpose="judge"))
        for item in items:
            yield _without_model(*item) or verdict(next(votes))

    def requests(self, items: Items, asking: Asking) -> list[Request]:
        """What is sent for `items`, but for repairs."""
        return first_requests(asking.model(self.model), self._asks(items), self.repeats, "judge")

    def _asks(self, items: Items) -> list[Ask[str]]:
        prompt, known = self._prompt(), words(LABELS, self.words)
        return [
            decision(prompt, known, question=question.text, reference=gold.answer or "", reply=reply or "")
            for question, gold, reply in items
            if _without_model(question, gold, reply) is None
        ]

    def _prompt(self) -> Prompt:
        return load("judging", self.prompt, OFFERS, needs=("reference", "reply"))


@dataclass(frozen=True)
class Lenient(Graded):
    """Right if the reply touches on the gold's topic or its date, however it says it and whatever else it says."""

    name: ClassVar[str] = "lenient"
    title: ClassVar[str] = "a model, generous: same topic, any form of the same date"

    prompt: str = "lenient"
    words: str = "CORRECT/WRONG"


@dataclass(frozen=True)
class Strict(Graded):
    """Right if the reply says all that the gold says, nothing against it, and commits to it."""

    name: ClassVar[str] = "strict"
    title: ClassVar[str] = "a model, strict: all that the gold says and nothing against it"

    prompt: str = "strict"


def _code() -> str:
    return code(*(f"tasks.judges.{name}" for name in ("graded", "asked", "deciding", "replies", "absence")))


def _without_model(question: Question, gold: Gold, reply: str | None) -> Verdict | None:
    """The verdict where no model is needed, else None."""
    if question.kind == "adversarial":
        return decided(reply is not None and denies(reply))
    if gold.answer is None:
        return Verdict(None, None, "failed")
    return None if reply is not None and reply.strip() else decided(False)

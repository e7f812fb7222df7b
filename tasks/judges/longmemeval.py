"""Whether a reply is right by LongMemEval's rules, which differ by the question's type."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from storage.records import Gold, Question
from tasks.asking import Asking
from tasks.judges.asked import Ask, first_requests, told
from tasks.judges.deciding import LABELS, decided, decision, verdict
from tasks.judges.replies import words
from tasks.llm import Request
from tasks.outcomes import Verdict
from tasks.prompts import Prompt, load
from tasks.provenance import code

Items = Sequence[tuple[Question, Gold, str | None]]

_BY_KIND = {
    "temporal-reasoning": "temporal",
    "knowledge-update": "update",
    "single-session-preference": "preference",
}
_RULES = ("plain", "abstention", *_BY_KIND.values())


def rule(question: Question) -> str:
    """By which rule a question is judged: `abstention` where its id ends in `_abs` or its kind says so.

    Else `temporal` (a count of days may be off by one), `update` (the earlier value may stand beside the updated
    one), `preference` (the answer is a rubric), `plain` for every other kind.
    """
    ids = (part.endswith("_abs") for id in (question.id, question.conversation_id) for part in id.split("/"))
    if any(ids) or "abstention" in question.kind:
        return "abstention"
    return _BY_KIND.get(question.kind, "plain")


@dataclass(frozen=True)
class LongMemEval:
    """A model judge of two labels that asks by the question's `rule`.

    `words`, `repeats`: as of the other model judges. Preference questions are judged against the gold's rubric where
    it has one, else against its answer; all others the other way round. A missing or blank reply is wrong; a gold
    without answer and rubric is `failed`. Source: xiaowu0162/LongMemEval, evaluate_qa.py, the same rules by type; the
    prompts are this project's. Raises `ValueError` for words or repeats that do not fit.
    """

    name: ClassVar[str] = "longmemeval"
    title: ClassVar[str] = "a model, by LongMemEval's rules for each type of question"
    offline: ClassVar[bool] = False

    model: str
    words: str = "yes/no"
    repeats: int = 1

    def __post_init__(self) -> None:
        words(LABELS, self.words)
        if self.repeats < 1:
            raise ValueError(f"repeats must be at least 1, not {self.repeats}")

    def spec(self) -> dict[str, object]:
        """The digests of all its prompts and the code that reads replies."""
        return {
            "prompts": {name: prompt.digest for name, prompt in _prompts().items()},
            "code": code(
                "tasks.judges.longmemeval", "tasks.judges.asked", "tasks.judges.deciding", "tasks.judges.replies"
            ),
        }

    def judge_many(self, items: Items, asking: Asking) -> Iterator[Verdict | None]:
        votes = iter(told(asking, asking.model(self.model), self._asks(items), repeats=self.repeats, purpose="judge"))
        for item in items:
            yield _without_model(*item) or verdict(next(votes))

    def requests(self, items: Items, asking: Asking) -> list[Request]:
        """What is sent for `items`, but for repairs."""
        return first_requests(asking.model(self.model), self._asks(items), self.repeats, "judge")

    def _asks(self, items: Items) -> list[Ask[str]]:
        prompts, known = _prompts(), words(LABELS, self.words)
        return [
            decision(
                prompts[rule(question)],
                known,
                question=question.text,
                reference=_reference(question, gold),
                reply=reply or "",
            )
            for question, gold, reply in items
            if _without_model(question, gold, reply) is None
        ]


def _prompts() -> dict[str, Prompt]:
    return {
        name: load("judging", f"longmemeval_{name}", ("question", "reference", "reply", "right", "wrong"))
        for name in _RULES
    }


def _reference(question: Question, gold: Gold) -> str:
    rubric, answer = "\n".join(gold.rubric), gold.answer or ""
    return rubric or answer if rule(question) == "preference" else answer or rubric


def _without_model(question: Question, gold: Gold, reply: str | None) -> Verdict | None:
    if not _reference(question, gold):
        return Verdict(None, None, "failed")
    return None if reply is not None and reply.strip() else decided(False)

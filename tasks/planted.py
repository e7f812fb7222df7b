"""Which answers are known to be wrong, and which to be right, so that a judge can be measured."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storage.digests import digest
from storage.records import Gold, Question
from tasks.judges.lexical import canonical_words
from tasks.text import STOP_WORDS

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_GOOD = (
    "{answer}",
    "The answer is {answer}.",
    "Going by what was said, it is {answer}.",
    "{answer}, as far as the records say.",
)
_VAGUE = (
    "It had to do with {topic}.",
    "They talked about {topic} at some point, and it was one of those things.",
    "Something connected with {topic}, as was mentioned around that time.",
)


@dataclass(frozen=True)
class Case:
    """One reply with what is known of it. `truth`: `good`, `specific` or `vague` (both wrong), or `unknown`."""

    question: Question
    gold: Gold
    reply: str
    truth: str


def planted(questions: Sequence[Question], gold: Mapping[str, Gold], seed: int) -> list[Case]:
    """For each question with a gold answer: a good reply, a wrong one that is specific and a wrong one that is vague.

    good: the gold answer, alone or in a sentence. specific: the gold of another question of the same kind and
    conversation, of which the words (dates and numbers written one way) neither contain nor are contained in those of
    the true gold; a question without one has none. vague: a sentence about the question's own topic that answers
    nothing. One of each, drawn by `seed` and the question's id. An adversarial question is passed over.
    """
    answered = [
        question
        for question in questions
        if question.kind != "adversarial" and (gold[question.id].answer or "").strip()
    ]
    rivals: dict[tuple[str, str], list[str]] = {}
    for question in answered:
        rivals.setdefault((question.conversation_id, question.kind), []).append(gold[question.id].answer or "")
    return [
        Case(question, gold[question.id], reply, truth)
        for question in answered
        for truth, reply in _replies(question, gold[question.id].answer or "", rivals, seed)
    ]


def _replies(
    question: Question, answer: str, rivals: Mapping[tuple[str, str], Sequence[str]], seed: int
) -> list[tuple[str, str]]:
    draw = int(digest([seed, question.id])[:12], 16)
    others = rivals[question.conversation_id, question.kind]
    wrong = [other for other in dict.fromkeys(others) if differs(other, answer)]
    found = [("good", _GOOD[draw % len(_GOOD)].format(answer=answer))]
    if wrong:
        found.append(("specific", wrong[draw % len(wrong)]))
    return [*found, ("vague", _VAGUE[draw % len(_VAGUE)].format(topic=_topic(question.text, answer)))]


def differs(one: str, other: str) -> bool:
    """Whether neither text's words (dates and numbers written one way) contain the other's; both have some."""
    left, right = set(canonical_words(one)), set(canonical_words(other))
    return bool(left) and bool(right) and not left <= right and not right <= left


def _topic(question: str, answer: str) -> str:
    """The content words of a question, without any of its answer."""
    known = set(canonical_words(answer))
    words = [word for word in _WORD.findall(question) if word.lower() not in STOP_WORDS]
    kept = [word for word in words if not set(canonical_words(word)) & known]
    return " ".join(dict.fromkeys(kept)) or "all that"

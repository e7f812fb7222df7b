"""Which answer a model gives to a prompt file with the evidence in it."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from storage.records import Question, Record
from tasks.asking import Asking
from tasks.evidence import rendered, spoken
from tasks.llm import Reply, Request
from tasks.outcomes import NO_INFORMATION, Answer
from tasks.prompts import Prompt, load
from tasks.provenance import code

OFFERS = ("question", "evidence", "reference_date")

_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)|\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A```\w*\n(.*?)\n?```\Z", re.DOTALL)
_LINE = re.compile(r"^[ \t*_#>-]*(?:final\s+)?answer[*_]*\s*:[*_ \t]*(.+?)[\s*_]*$", re.IGNORECASE | re.MULTILINE)
_FLOOD = re.compile(r"[ \t*_]{50,}")  # the time of the pattern above grows with the square of one
_NO_ANSWER = re.compile(
    r"\A(?:error|exception|traceback)\b\s*[:(]|(?:\A|\n)[ \t*_#>-]*(?:final\s+)?answer[*_]*\s*:[\s*_]*\Z", re.IGNORECASE
)


@dataclass(frozen=True)
class Prompted:
    """A model's answer.

    `model`: one of the protocol's. `prompt`: `short` (the answer alone), `brief` (the same in fewer words and without
    a way out, for small models), `long` (scan, verify, combine, date, then the answer), or a text file with any of the
    variables `OFFERS`. The model sees the question, the records oldest first with their dates, and the date the
    question is asked on; no scores, no ids, no kind, no gold. `empty`: what is done without evidence: `declare` answers
    `NO_INFORMATION` without asking, `ask` asks all the same.
    Raises `ValueError` for another `empty`, `InputError` for a prompt that cannot be used.
    """

    name: ClassVar[str] = "prompted"
    title: ClassVar[str] = "a model answers from the evidence, by a prompt file"
    offline: ClassVar[bool] = False

    model: str
    prompt: str = "short"
    empty: str = "declare"

    def __post_init__(self) -> None:
        if self.empty not in ("ask", "declare"):
            raise ValueError(f"empty must be ask or declare, not {self.empty!r}")
        self._prompt()

    def spec(self) -> dict[str, object]:
        """The prompt's digest, the code that reads replies and how records are shown."""
        return {"prompt": self._prompt().digest, "code": code("tasks.answerers.prompted", "tasks.evidence")}

    def answer_many(
        self, items: Sequence[tuple[Question, Sequence[Record]]], asking: Asking
    ) -> Iterator[Answer | None]:
        """One answer an item, in order; None where no reply was had, so that it is asked again later."""
        replies = iter(asking.ask(self.requests(items, asking)))
        for _, evidence in items:
            yield outcome(next(replies)) if self._asks(evidence) else Answer(NO_INFORMATION, "ok")

    def requests(self, items: Sequence[tuple[Question, Sequence[Record]]], asking: Asking) -> list[Request]:
        """What is sent for `items`: one request for each that is not answered by rule."""
        prompt, model = self._prompt(), asking.model(self.model)
        return [
            Request(model, prompt.fill(_shown(question, evidence)), prompt.digest, purpose="answer")
            for question, evidence in items
            if self._asks(evidence)
        ]

    def _asks(self, evidence: Sequence[Record]) -> bool:
        return bool(evidence) or self.empty == "ask"

    def _prompt(self) -> Prompt:
        return load("answering", self.prompt, OFFERS, needs=("question", "evidence"))


def outcome(reply: Reply) -> Answer | None:
    """What a reply is as an answer: None where none was had, so that it is asked for again.

    A refusal, nothing said and text that reports an error are no answers, and of a reply that was cut at its token
    limit only an answer line that it still ended counts.
    """
    if reply.status == "failed" and reply.finish_reason is None:
        return None
    if reply.status in ("refused", "failed"):
        return Answer(None, reply.status, reply.text)
    text = answer_in(reply.text or "", cut=reply.status == "truncated")
    if reply.status == "truncated":
        return Answer(text, "truncated", reply.text)
    return Answer(text, "ok" if text is not None else "parse_failed", reply.text)


def answer_in(reply: str, *, cut: bool = False) -> str | None:
    """The answer that `reply` gives: the `answer` of a JSON object, else of its last `Answer:` line, else all of it.

    Thoughts in `<think>` and a fence around all are dropped. None for nothing, for an `answer` that is null or empty,
    for text that reports an error, and, if it was `cut`, unless an answer line ended before the cut.
    """
    said = _THOUGHT.sub("", reply).strip()
    fenced = _FENCE.match(said)
    said = fenced[1].strip() if fenced else said
    lines = _LINE.findall(_FLOOD.sub(" ", said.rpartition("\n")[0] if cut else said))
    held = _json_answer(said)
    text = held if held is not None else lines[-1] if lines else "" if cut else said
    return None if not text.strip() or _NO_ANSWER.search(text) else text.strip()


def _json_answer(text: str) -> str | None:
    """What stands under `answer`, empty for null; None where `text` is no object that has one."""
    if not text.startswith("{"):
        return None
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = said.get("answer", said) if isinstance(said, dict) else said
    return "" if found is None else str(found) if isinstance(found, str | int | float) else None


def _shown(question: Question, evidence: Sequence[Record]) -> dict[str, str]:
    return {
        "question": question.text,
        "evidence": rendered(evidence) or "(no records)",
        "reference_date": spoken(question.asked_at) if question.asked_at else "an unknown date",
    }

"""Which questions have a label that is known to be wrong?"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from storage.errors import InputError
from storage.records import Question

Fault = Literal["answer", "citation"]
WRONG_CITATION = "WRONG_CITATION"
_AUDIT_ID = re.compile(r"locomo_(\d+)_qa(\d+)")


class _Label(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    question_id: str
    error_type: str
    question: str | None = None


def wrong_labels(path: Path, questions: Sequence[Question]) -> dict[str, Fault]:
    """Question id → `citation` where only the cited turns are wrong, else `answer`, in the file's order.

    `path`: a JSON list of objects with `question_id`, `error_type` (`WRONG_CITATION` is a fault of the citation) and,
    to be sure of the edition, `question`. Ids are the benchmark's, or the LoCoMo audit's `locomo_<i>_qa<j>`:
    question j of the i-th conversation. `questions`: all of the benchmark, in its order.
    Raises `InputError` for a file of another form, an id that no question has or twice, or another question's text.
    """
    known = {question.id: question for question in questions}
    conversations = list(dict.fromkeys(question.conversation_id for question in questions))
    found: dict[str, Fault] = {}
    for label in _read(path):
        question = known.get(_own_id(label.question_id, conversations))
        if question is None or question.id in found:
            fault = "found twice" if question else "has no question"
            raise InputError(
                f"wrong labels {path}: ids of this benchmark once each expected, {label.question_id} {fault}"
            )
        if label.question is not None and label.question.split() != question.text.split():
            raise InputError(
                f"wrong labels {path}: {label.question_id} is {question.text!r} here and {label.question!r} there; "
                f"name the labels of this edition"
            )
        found[question.id] = "citation" if label.error_type == WRONG_CITATION else "answer"
    return found


def _own_id(id: str, conversations: Sequence[str]) -> str:
    match = _AUDIT_ID.fullmatch(id)
    if match and int(match[1]) < len(conversations):
        return f"{conversations[int(match[1])]}/q{int(match[2])}"
    return id


def _read(path: Path) -> list[_Label]:
    try:
        said = json.loads(path.read_text(encoding="utf-8-sig"))
        return TypeAdapter(list[_Label]).validate_python(said, strict=True)
    except OSError as error:
        raise InputError(f"data.wrong_labels: a JSON file expected, {path} cannot be read") from error
    except (ValueError, ValidationError) as error:
        what = str(error).splitlines()[0]
        raise InputError(f"wrong labels {path}: a list of question_id and error_type expected, {what} found") from error

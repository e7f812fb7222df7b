"""What the public audit of LoCoMo holds: planted wrong answers and real answers, each with a judge's votes."""

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from storage.errors import InputError
from storage.records import Gold, Question
from tasks.judges.lexical import canonical_words
from tasks.planted import Case

SPECIFIC = "planted_wrong_specific.json"
VAGUE = "planted_wrong_vague.json"
ANSWERS = "answers_gpt-4o-mini_full_context.json"
_TRUTH = {SPECIFIC: "specific", VAGUE: "vague", ANSWERS: "unknown"}
_KINDS = {"1": "multi-hop", "2": "temporal", "3": "open-domain", "4": "single-hop", "5": "adversarial"}


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    question_id: str
    question: str
    golden_answer: str
    generated_answer: str
    llm_judgments: dict[str, bool]
    category: str


class _File(BaseModel):
    detailed_results: dict[str, list[_Row]]


def is_audit(folder: str | Path) -> bool:
    """Whether `folder` holds files of the audit."""
    return any((Path(folder) / name).is_file() for name in _TRUTH)


def audit_files(folder: str | Path) -> list[Path]:
    """Those of the audit's files with votes that `folder` holds. Raises `InputError` where it holds none."""
    if not is_audit(folder):
        raise InputError(f"audit {folder}: a folder with any of {', '.join(_TRUTH)} expected, none found")
    return [path for name in _TRUTH if (path := Path(folder) / name).is_file()]


def audit_cases(folder: str | Path) -> list[Case]:
    """Every answer of the files, in their order; the real answers' truth is `unknown`.

    A real answer that has the gold's own words (dates and numbers written one way) comes again, as a `good` one.
    Question ids are the files' (`locomo_0_qa0`), conversations their groups. Raises `InputError` for a file that
    is not of the audit's form.
    """
    cases = [
        Case(
            Question(row.question_id, group, _KINDS.get(row.category, row.category), None, row.question),
            Gold(row.question_id, row.golden_answer, (), ()),
            row.generated_answer,
            _TRUTH[path.name],
        )
        for path in audit_files(folder)
        for group, rows in _rows(path, path.stat().st_mtime_ns).items()
        for row in rows
    ]
    good = [replace(case, truth="good") for case in cases if case.truth == "unknown" and _verbatim(case)]
    return [*cases, *good]


def recorded_votes(folder: str | Path) -> dict[tuple[str, str], tuple[bool, ...]]:
    """(question id, answer) → the votes of the audit's judge, in their order."""
    return {
        (row.question_id, row.generated_answer): tuple(vote for _, vote in sorted(row.llm_judgments.items()))
        for path in audit_files(folder)
        for rows in _rows(path, path.stat().st_mtime_ns).values()
        for row in rows
    }


def _verbatim(case: Case) -> bool:
    return canonical_words(case.reply) == canonical_words(case.gold.answer or "") != []


@lru_cache(maxsize=4)
def _rows(path: Path, changed: int) -> dict[str, list[_Row]]:
    try:
        said = json.loads(path.read_text(encoding="utf-8-sig"))
        return TypeAdapter(_File).validate_python(said, strict=True).detailed_results
    except (ValueError, ValidationError) as error:
        raise InputError(f"audit {path}: its published form expected, {str(error).splitlines()[0]} found") from error

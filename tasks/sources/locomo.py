"""LoCoMo's JSON to turns, questions and gold, every irregularity handled and counted."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from storage.errors import InputError
from storage.records import Gold, Question, Turn
from tasks.sources.ingested import Ingested
from tasks.sources.locomo_observations import Observed, observe

FILE_NAME = "locomo10.json"
KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_SESSION = re.compile(r"session_(\d+)(_date_time)?")
_TIME_FORMAT = "%I:%M %p on %d %B, %Y"


def load(path: Path) -> Ingested:
    """Read one LoCoMo file.

    Sessions are ordered by number; a session's date that does not parse becomes None and is counted.
    Evidence ids are every `D<session>:<turn>` in the evidence strings, compared as integers; those that
    name no turn are dropped and reported. Adversarial questions have no answer and no evidence: their
    `adversarial_answer` is a trap and their evidence ids name the tempting turn. The facts under `observation` are
    kept where the file has them.
    Raises `InputError` for a file that is not JSON, not UTF-8, has duplicate keys, or lacks a needed key.
    """
    notes = _Notes()
    turns: list[Turn] = []
    questions: list[Question] = []
    gold: list[Gold] = []
    observations = Observed()
    for sample in _samples(path):
        try:
            sample_turns = list(_turns(sample, notes))
            turns += sample_turns
            for question, answer in _questions(sample, sample_turns, notes):
                questions.append(question)
                gold.append(answer)
            observe(sample, sample_turns, lambda text, id: _text(text, id, notes), observations)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            name = sample.get("sample_id", "?") if isinstance(sample, dict) else "?"
            raise InputError(
                f"{path}, conversation {name}: LoCoMo's keys expected, {type(error).__name__} at {error} found"
            ) from error
    _refuse_repeats(path, [t.id for t in turns], "turn")
    _refuse_repeats(path, [q.id for q in questions], "question")
    facts = _facts(turns, questions, gold, notes) | observations.facts
    return Ingested("locomo", turns, questions, gold, facts, observations.records)


@dataclass
class _Notes:
    """What was irregular, by kind of irregularity."""

    orphan_dates: list[str] = field(default_factory=list)
    unknown_dates: list[str] = field(default_factory=list)
    repaired_evidence: list[str] = field(default_factory=list)
    dropped_evidence: list[str] = field(default_factory=list)
    mended_texts: list[str] = field(default_factory=list)


def _samples(path: Path) -> list[Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_no_duplicates)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: UTF-8 expected, byte {error.start} is not; download the file again") from error
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}: complete JSON expected, broken at character {error.pos} ({error.msg}); download the file again"
        ) from error
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error
    if not isinstance(data, list) or not data:
        raise InputError(f"{path}: a non-empty list of conversations expected, {type(data).__name__} found")
    return data


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = Counter(key for key, _ in pairs)
    repeated = [key for key, count in keys.items() if count > 1]
    if repeated:
        raise ValueError(f"each key once expected, {repeated[0]!r} found twice in one object; mend the file")
    return dict(pairs)


def _turns(sample: dict[str, Any], notes: _Notes) -> Iterator[Turn]:
    name, conversation = str(sample["sample_id"]), sample["conversation"]
    position = 0
    for number in _session_numbers(name, conversation, notes):
        session = f"{name}/S{number}"
        said_at = _time(conversation.get(f"session_{number}_date_time"), session, notes)
        for raw in conversation[f"session_{number}"]:
            id = f"{name}/{raw['dia_id']}"
            caption = raw.get("blip_caption")
            yield Turn(
                id=id,
                conversation_id=name,
                session_id=session,
                position=position,
                speaker=_text(raw["speaker"], id, notes),
                text=_text(raw["text"], id, notes),
                caption=_text(caption, id, notes) if caption else None,
                said_at=said_at,
            )
            position += 1


def _session_numbers(name: str, conversation: dict[str, Any], notes: _Notes) -> list[int]:
    numbers = []
    for key in conversation:
        match = _SESSION.fullmatch(key)
        if match and not match[2]:
            numbers.append(int(match[1]))
        elif match and f"session_{match[1]}" not in conversation:
            notes.orphan_dates.append(f"{name} {key}")
    return sorted(numbers)


def _time(value: object, session: str, notes: _Notes) -> datetime | None:
    try:
        return datetime.strptime(str(value).strip(), _TIME_FORMAT)
    except ValueError:
        notes.unknown_dates.append(f"{session}: {value!r}")
        return None


def _text(value: object, id: str, notes: _Notes) -> str:
    """Text that Parquet and JSON can hold: lone surrogates become U+FFFD, NUL is removed."""
    text = str(value)
    mended = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "")
    if mended != text:
        notes.mended_texts.append(id)
    return mended


def _questions(sample: dict[str, Any], turns: list[Turn], notes: _Notes) -> Iterator[tuple[Question, Gold]]:
    name = str(sample["sample_id"])
    by_number = {_numbers(turn.id): turn for turn in turns}
    now = next((turn.said_at for turn in reversed(turns) if turn.said_at), None)
    for place, row in enumerate(sample["qa"]):
        id = f"{name}/q{place}"
        category = int(row["category"])
        if category not in KINDS:
            raise InputError(f"{id}: a category of 1 to 5 expected, {row['category']!r} found")
        evidence = [] if category == 5 else _evidence(row.get("evidence", []), id, by_number, notes)
        answer = None if category == 5 else row["answer"]
        yield (
            Question(id, name, KINDS[category], now, _text(row["question"], id, notes)),
            Gold(
                question_id=id,
                answer=None if answer is None else _text(answer, id, notes),
                turn_ids=tuple(turn.id for turn in evidence),
                session_ids=tuple(dict.fromkeys(turn.session_id for turn in evidence)),
            ),
        )


def _evidence(raw: list[str] | str, id: str, by_number: dict[tuple[int, int], Turn], notes: _Notes) -> list[Turn]:
    found: dict[str, Turn] = {}
    for string in [raw] if isinstance(raw, str) else raw:
        numbers = [(int(session), int(turn)) for session, turn in _EVIDENCE.findall(string)]
        resolved = [by_number[pair] for pair in numbers if pair in by_number]
        found.update((turn.id, turn) for turn in resolved)
        if not resolved:
            notes.dropped_evidence.append(f"{id}: {string!r}")
        elif len(resolved) < len(numbers) or [f"D{s}:{t}" for s, t in numbers] != [string]:
            notes.repaired_evidence.append(f"{id}: {string!r}")
    return sorted(found.values(), key=lambda turn: turn.position)


def _numbers(turn_id: str) -> tuple[int, int]:
    match = _EVIDENCE.search(turn_id.rpartition("/")[2])
    if not match:
        raise InputError(f"{turn_id}: a turn id D<session>:<turn> expected")
    return int(match[1]), int(match[2])


def _refuse_repeats(path: Path, ids: list[str], what: str) -> None:
    id, count = Counter(ids).most_common(1)[0] if ids else ("", 0)
    if count > 1:
        raise InputError(f"{path}: unique {what} ids expected, {id} found {count} times")


def _facts(turns: list[Turn], questions: list[Question], gold: list[Gold], notes: _Notes) -> dict[str, Any]:
    kinds = Counter(question.kind for question in questions)
    return {
        "conversations": len({turn.conversation_id for turn in turns}),
        "sessions": len({turn.session_id for turn in turns}),
        "turns": len(turns),
        "turns with an image caption": sum(turn.caption is not None for turn in turns),
        "questions": len(questions),
        **{f"{kind} questions": kinds[kind] for kind in KINDS.values()},
        "questions with gold evidence": sum(bool(row.turn_ids) for row in gold),
        "(question, turn) pairs": sum(len(row.turn_ids) for row in gold),
        "questions without gold evidence": [
            question.id
            for question, row in zip(questions, gold, strict=True)
            if not row.turn_ids and question.kind != "adversarial"
        ],
        "evidence strings repaired": notes.repaired_evidence,
        "evidence strings dropped": notes.dropped_evidence,
        "session dates without a session": notes.orphan_dates,
        "session dates that do not parse": notes.unknown_dates,
        "texts with characters replaced": notes.mended_texts,
    }

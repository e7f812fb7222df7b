"""LoCoMo's JSON to turns, questions and gold, every irregularity handled and counted."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from storage.errors import InputError
from storage.records import Gold, Question, Turn
from tasks.sources.ingested import Account, Ingested, Told, refuse_repeats
from tasks.sources.locomo_observations import observe
from tasks.sources.reading import moment, storable, whole

FILE_NAME = "locomo10.json"
KINDS = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_SESSION = re.compile(r"session_(\d+)(_date_time)?")
_REPAIRED, _DROPPED = "evidence strings repaired", "evidence strings dropped"
_ORPHANS, _UNDATED = "session dates without a session", "session dates that do not parse"
_MENDED, _GOLDLESS = "texts with characters replaced", "questions without gold evidence"


def load(path: Path) -> Ingested:
    """Read one LoCoMo file.

    Sessions are ordered by number; a session's date that does not parse becomes None and is counted.
    Evidence ids are every `D<session>:<turn>` in the evidence strings, compared as integers; those that
    name no turn are dropped and reported. Adversarial questions have no answer and no evidence: their
    `adversarial_answer` is a trap and their evidence ids name the tempting turn. The facts under `observation` are
    kept where the file has them.
    Raises `InputError` for a file that is not JSON, not UTF-8, has duplicate keys, or lacks a needed key.
    """
    return Ingested("locomo", partial(_told, path))


def _told(path: Path, account: Account) -> Iterator[Told]:
    account.note(_GOLDLESS)
    for label in (_REPAIRED, _DROPPED, _ORPHANS, _UNDATED, _MENDED):
        account.note(label)
    seen: set[str] = set()
    for sample in _samples(path):
        try:
            turns = list(_turns(sample, account))
            asked = list(_questions(sample, turns, account))
            observed = observe(sample, turns, lambda text, id: _text(text, id, account), account)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            name = sample.get("sample_id", "?") if isinstance(sample, dict) else "?"
            raise InputError(
                f"{path}, conversation {name}: LoCoMo's keys expected, {type(error).__name__} at {error} found"
            ) from error
        refuse_repeats(path, (turn.id for turn in turns), "turn", seen)
        refuse_repeats(path, (question.id for question, _ in asked), "question", seen)
        _count(turns, asked, account)
        yield Told(turns, asked, observed)


def _samples(path: Path) -> list[Any]:
    data = whole(path)
    if not isinstance(data, list) or not data:
        raise InputError(f"{path}: a non-empty list of conversations expected, {type(data).__name__} found")
    return data


def _turns(sample: dict[str, Any], account: Account) -> Iterator[Turn]:
    name, conversation = str(sample["sample_id"]), sample["conversation"]
    position = 0
    for number in _session_numbers(name, conversation, account):
        session = f"{name}/S{number}"
        date = conversation.get(f"session_{number}_date_time")
        said_at = moment(date)
        account.note(_UNDATED, *[f"{session}: {date!r}"] * (said_at is None))
        for raw in conversation[f"session_{number}"]:
            id = f"{name}/{raw['dia_id']}"
            caption = raw.get("blip_caption")
            yield Turn(
                id=id,
                conversation_id=name,
                session_id=session,
                position=position,
                speaker=_text(raw["speaker"], id, account),
                text=_text(raw["text"], id, account),
                caption=_text(caption, id, account) if caption else None,
                said_at=said_at,
            )
            position += 1


def _session_numbers(name: str, conversation: dict[str, Any], account: Account) -> list[int]:
    numbers = []
    for key in conversation:
        match = _SESSION.fullmatch(key)
        if match and not match[2]:
            numbers.append(int(match[1]))
        elif match and f"session_{match[1]}" not in conversation:
            account.note(_ORPHANS, f"{name} {key}")
    return sorted(numbers)


def _text(value: object, id: str, account: Account) -> str:
    text, mended = storable(value)
    account.note(_MENDED, *[id] * mended)
    return text


def _questions(sample: dict[str, Any], turns: list[Turn], account: Account) -> Iterator[tuple[Question, Gold]]:
    name = str(sample["sample_id"])
    by_number = {_numbers(turn.id): turn for turn in turns}
    now = next((turn.said_at for turn in reversed(turns) if turn.said_at), None)
    for place, row in enumerate(sample["qa"]):
        id = f"{name}/q{place}"
        category = int(row["category"])
        if category not in KINDS:
            raise InputError(f"{id}: a category of 1 to 5 expected, {row['category']!r} found")
        evidence = [] if category == 5 else _evidence(row.get("evidence", []), id, by_number, account)
        answer = None if category == 5 else row["answer"]
        yield (
            Question(id, name, KINDS[category], now, _text(row["question"], id, account)),
            Gold(
                question_id=id,
                answer=None if answer is None else _text(answer, id, account),
                turn_ids=tuple(turn.id for turn in evidence),
                session_ids=tuple(dict.fromkeys(turn.session_id for turn in evidence)),
            ),
        )


def _evidence(raw: list[str] | str, id: str, by_number: dict[tuple[int, int], Turn], account: Account) -> list[Turn]:
    found: dict[str, Turn] = {}
    for string in [raw] if isinstance(raw, str) else raw:
        numbers = [(int(session), int(turn)) for session, turn in _EVIDENCE.findall(string)]
        resolved = [by_number[pair] for pair in numbers if pair in by_number]
        found.update((turn.id, turn) for turn in resolved)
        if not resolved:
            account.note(_DROPPED, f"{id}: {string!r}")
        elif len(resolved) < len(numbers) or [f"D{s}:{t}" for s, t in numbers] != [string]:
            account.note(_REPAIRED, f"{id}: {string!r}")
    return sorted(found.values(), key=lambda turn: turn.position)


def _numbers(turn_id: str) -> tuple[int, int]:
    match = _EVIDENCE.search(turn_id.rpartition("/")[2])
    if not match:
        raise InputError(f"{turn_id}: a turn id D<session>:<turn> expected")
    return int(match[1]), int(match[2])


def _count(turns: list[Turn], asked: list[tuple[Question, Gold]], account: Account) -> None:
    account.count("conversations")
    account.count("sessions", len({turn.session_id for turn in turns}))
    account.count("turns", len(turns))
    account.count("turns with an image caption", sum(turn.caption is not None for turn in turns))
    account.count("questions", len(asked))
    for kind in KINDS.values():
        account.count(f"{kind} questions", sum(question.kind == kind for question, _ in asked))
    account.count("questions with gold evidence", sum(bool(gold.turn_ids) for _, gold in asked))
    account.count("(question, turn) pairs", sum(len(gold.turn_ids) for _, gold in asked))
    goldless = [question.id for question, gold in asked if not gold.turn_ids and question.kind != "adversarial"]
    account.note(_GOLDLESS, *goldless)

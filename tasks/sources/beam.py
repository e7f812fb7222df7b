"""BEAM's folders to chats, probing questions and gold, every irregularity handled and counted."""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from storage.errors import InputError
from storage.records import Gold, Question, Turn
from tasks.sources.ingested import Account, Ingested, Told, refuse_repeats
from tasks.sources.reading import moment, storable, whole, whole_or_literal

SCALES = ("100K", "500K", "1M", "10M")
KINDS = (
    "abstention",
    "contradiction_resolution",
    "event_ordering",
    "information_extraction",
    "instruction_following",
    "knowledge_update",
    "multi_session_reasoning",
    "preference_following",
    "summarization",
    "temporal_reasoning",
)
CHATS = ("chat_trunecated.json", "chat.json")
"""The chat's file, the truncated one first, as the release spells it."""
PROBES = "probing_questions/probing_questions.json"
_ANSWERS = ("answer", "ideal_response", "ideal_answer", "ideal_summary", "expected_compliance")
_MARKER = re.compile(r"\s*->\s*-?>\s*(?:\d+|N/A)\s*,\s*(?:\d+|N/A)\s*\)?\s*$")
_PLAN = re.compile(r"plan-(\d+)")

_TRUNCATED = "chats read from their truncated file"
_LITERAL = "probing questions that are Python literals"
_AGAIN = "message ids found again in their chat"
_MARKED = "messages with a generator's marker removed"
_UNDATED = "sessions without a date that parses"
_BACKWARD = "sessions dated before the one before them"
_AMBIGUOUS = "evidence ids of several messages, dropped"
_UNKNOWN = "evidence ids of no message, dropped"
_GOLDLESS = "questions without gold evidence, abstention aside"
_ANSWERLESS = "questions without a gold answer"
_MENDED = "texts with characters replaced"
_NOTES = (_TRUNCATED, _LITERAL, _AGAIN, _UNDATED, _BACKWARD, _AMBIGUOUS, _UNKNOWN, _GOLDLESS, _ANSWERLESS, _MENDED)


def load(path: Path, benchmark: str = "beam") -> Ingested:
    """Read one scale's folder (`chats/100K`, with a numbered folder a chat), or one chat's folder.

    The truncated chat is read where there is one. A batch is a session; its date is that of its first message that
    has one. Markers such as `->-> 1,3` at the end of a message are removed: they tell how the chat was generated. A
    10M chat is a list of plans, read one after the other. A message id found again in its chat gets `#2`; evidence
    that names such an id is dropped and reported, as is evidence that names no message. Both statements, versions or
    events of two-part evidence are gold turns. A question is asked as of the chat's last date.
    Raises `InputError` for a folder without chats, a broken file, or one that lacks a needed key.
    """
    return Ingested(benchmark, partial(_told, path))


def folders(path: Path) -> list[Path]:
    """The chats' folders in the order of their numbers. Raises `InputError` where there is none."""
    numbered = [folder for folder in path.iterdir() if folder.is_dir() and folder.name.isdigit()]
    found = [path] if (path / PROBES).is_file() else sorted(numbered, key=lambda folder: int(folder.name))
    if not found:
        raise InputError(f"{path}: numbered folders of chats expected, none found; name one scale's folder")
    return found


def files(path: Path) -> list[Path]:
    """The files that `load` reads of a scale's or a chat's folder."""
    return [file for folder in folders(path) for file in (_chat_file(folder), folder / PROBES)]


def _chat_file(folder: Path) -> Path:
    for name in CHATS:
        if (folder / name).is_file():
            return folder / name
    raise InputError(f"{folder}: {' or '.join(CHATS)} expected, neither found")


def _told(path: Path, account: Account) -> Iterator[Told]:
    for label in _NOTES:
        account.note(label)
    for folder in folders(path):
        name = f"{folder.parent.name}-{folder.name}"
        file = _chat_file(folder)
        try:
            turns, named = _turns(name, whole(file), account)
            asked = list(_asked(name, folder / PROBES, turns, named, account))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{folder}: BEAM's keys expected, {type(error).__name__} at {error} found") from error
        account.note(_TRUNCATED, *[name] * (file.name == CHATS[0]))
        refuse_repeats(path, (turn.id for turn in turns), "turn", set())
        _count(turns, asked, account)
        yield Told(turns, asked)


def _batches(chat: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The chat's batches with the names of their sessions: `B2`, or `P3B2` within a plan."""
    for group in chat:
        plans = [(match[1], batches) for key, batches in group.items() if batches and (match := _PLAN.fullmatch(key))]
        if not plans:
            yield f"B{group['batch_number']}", group
        for plan, batches in plans:
            for batch in batches:
                yield f"P{plan}B{batch['batch_number']}", batch


def _turns(name: str, chat: Any, account: Account) -> tuple[list[Turn], dict[str, list[Turn]]]:
    """The chat's turns in order, and message id → the turns that go by it."""
    if not isinstance(chat, list) or not chat:
        raise InputError(f"chat {name}: a non-empty list of batches expected, {type(chat).__name__} found")
    turns: list[Turn] = []
    named: dict[str, list[Turn]] = {}
    last, labels = None, Counter[str]()
    for label, batch in _batches(chat):
        labels[label] += 1
        session = f"{name}/{label}" + (f"#{labels[label]}" if labels[label] > 1 else "")
        messages = [message for group in batch["turns"] for message in group]
        said_at = _date(batch, messages)
        account.note(_UNDATED, *[session] * (said_at is None))
        account.note(_BACKWARD, *[session] * bool(said_at and last and said_at < last))
        last = said_at or last
        for message in messages:
            turn = _turn(name, session, said_at, len(turns), message, named, account)
            turns.append(turn)
    return turns, named


def _date(batch: dict[str, Any], messages: list[dict[str, Any]]) -> datetime | None:
    anchors = [batch.get("time_anchor"), *(message.get("time_anchor") for message in messages)]
    return next((date for anchor in anchors if (date := moment(anchor))), None)


def _turn(
    name: str,
    session: str,
    said_at: datetime | None,
    position: int,
    message: dict[str, Any],
    named: dict[str, list[Turn]],
    account: Account,
) -> Turn:
    raw = str(message["id"]).replace("/", "-")
    same = named.setdefault(raw, [])
    id = f"{name}/{raw}" + (f"#{len(same) + 1}" if same else "")
    account.note(_AGAIN, *[id] * bool(same))
    content, mended = storable(message["content"])
    text = _MARKER.sub("", content)
    account.count(_MARKED, text != content)
    account.note(_MENDED, *[id] * mended)
    turn = Turn(id, name, session, position, storable(message["role"])[0], text, None, said_at)
    same.append(turn)
    return turn


def _asked(
    name: str, file: Path, turns: list[Turn], named: dict[str, list[Turn]], account: Account
) -> Iterator[tuple[Question, Gold]]:
    probes, literal = whole_or_literal(file)
    account.note(_LITERAL, *[name] * literal)
    now = next((turn.said_at for turn in reversed(turns) if turn.said_at), None)
    unknown = sorted(set(probes) - set(KINDS))
    if unknown:
        raise InputError(f"{file}: the types {', '.join(KINDS)} expected, {unknown[0]!r} found")
    for kind in KINDS:
        for place, row in enumerate(probes.get(kind, [])):
            id = f"{name}/{kind}-{place}"
            evidence = _evidence(row.get("source_chat_ids"), id, named, account)
            answer = next((row[key] for key in _ANSWERS if row.get(key)), None)
            account.note(_ANSWERLESS, *[id] * (answer is None))
            account.note(_GOLDLESS, *[id] * (not evidence and kind != "abstention"))
            yield (
                Question(id, name, kind, now, storable(row["question"])[0]),
                Gold(
                    question_id=id,
                    answer=None if answer is None else storable(answer)[0],
                    turn_ids=tuple(turn.id for turn in evidence),
                    session_ids=tuple(dict.fromkeys(turn.session_id for turn in evidence)),
                    rubric=tuple(storable(item)[0] for item in row.get("rubric") or ()),
                    abstention=kind == "abstention",
                ),
            )


def _evidence(raw: Any, id: str, named: dict[str, list[Turn]], account: Account) -> list[Turn]:
    found: dict[str, Turn] = {}
    for atom in _atoms(raw):
        same = named.get(str(atom), [])
        account.note(_UNKNOWN, *[f"{id}: {atom!r}"] * (not same))
        account.note(_AMBIGUOUS, *[f"{id}: {atom!r}"] * (len(same) > 1))
        if len(same) == 1:
            found[same[0].id] = same[0]
    return sorted(found.values(), key=lambda turn: turn.position)


def _atoms(raw: Any) -> Iterator[Any]:
    """Evidence ids, whatever lists and named parts they lie in."""
    if isinstance(raw, dict):
        raw = list(raw.values())
    if isinstance(raw, list):
        for item in raw:
            yield from _atoms(item)
    elif raw is not None:
        yield raw


def _count(turns: list[Turn], asked: list[tuple[Question, Gold]], account: Account) -> None:
    account.count("conversations")
    account.count("sessions", len({turn.session_id for turn in turns}))
    account.count("turns", len(turns))
    account.count("questions", len(asked))
    for kind in KINDS:
        account.count(f"{kind} questions", sum(question.kind == kind for question, _ in asked))
    account.count("questions with gold evidence", sum(bool(gold.turn_ids) for _, gold in asked))
    account.count("(question, turn) pairs", sum(len(gold.turn_ids) for _, gold in asked))
    account.count("rubric items", sum(len(gold.rubric) for _, gold in asked))

"""LongMemEval's JSON to haystacks, questions and gold, every irregularity handled and counted."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from storage.errors import InputError
from storage.records import Gold, Question, Turn
from tasks.sources.ingested import Account, Ingested, Told, refuse_repeats
from tasks.sources.reading import elements, moment, storable

KINDS = (
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
)
PREFERENCE = "single-session-preference"
SYNTHETIC = "synthetic-"
"""How the question ids of a made-up benchmark start, which no name but `synthetic` may read."""
_UNSORTED = "histories that are not in date order"
_REPEATED = "session ids found again in their history"
_EMPTY = "empty sessions dropped"
_UNDATED = "session or question dates that do not parse"
_LATE = "questions asked before their history's last session"
_ABSENT = "answer sessions that are not in the history"
_TURNLESS = "answer sessions without an annotated turn"
_UNANNOTATED = "questions without an annotated turn"
_INTEGERS = "answers that are no text"
_MENDED = "texts with characters replaced"
_NOTES = (_UNANNOTATED, _TURNLESS, _ABSENT, _REPEATED, _EMPTY, _UNSORTED, _LATE, _UNDATED, _INTEGERS, _MENDED)


def load(path: Path, benchmark: str = "longmemeval_s") -> Ingested:
    """Read one LongMemEval file (S, M or oracle, official or cleaned); each question has a haystack of its own.

    A haystack's sessions are put in the order of their dates; equal and unknown ones stay in the file's order. A
    session id found again in its history is a session of its own, `…#2`, since its date or content may differ; gold
    names the first. Empty sessions are dropped. `kind` is the official type; abstention, which the file shows in the
    suffix `_abs` of the id alone, is `Gold.abstention`, so such a question stays within its type. Gold turns are
    those with `has_answer: true`, gold sessions those of `answer_session_ids`. A preference answer is a rubric.
    Raises `InputError` for a file that is not JSON, not UTF-8, has duplicate keys, or lacks a needed key.
    """
    return Ingested(benchmark, partial(_told, path, benchmark == SYNTHETIC.strip("-")))


@dataclass(frozen=True)
class _Session:
    id: str
    raw: str
    said_at: datetime | None
    messages: list[dict[str, Any]]


def _told(path: Path, synthetic: bool, account: Account) -> Iterator[Told]:
    for label in _NOTES:
        account.note(label)
    seen: set[str] = set()
    contents: set[str] = set()
    place = -1
    for place, row in enumerate(elements(path)):
        try:
            haystack = list(_sessions(row, account))
            asked = _asked(row, haystack, account)
            turns = list(_turns(str(row["question_id"]), haystack, account))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            name = row.get("question_id", place) if isinstance(row, dict) else place
            raise InputError(
                f"{path}, question {name}: LongMemEval's keys expected, {type(error).__name__} at {error} found"
            ) from error
        if asked[0].id.startswith(SYNTHETIC) != synthetic:
            raise InputError(
                f"{path}: {'a file made by `suffice synth`' if synthetic else 'LongMemEval'} expected, question "
                f"{asked[0].id} found; run a synthetic file by the protocol `synthetic`, and no other"
            )
        refuse_repeats(path, [asked[0].id], "question", seen)
        told = Told(turns, [asked])
        _count(told, account, contents)
        yield told
    if place < 0:
        raise InputError(f"{path}: a non-empty list of questions expected, an empty one found")


def _sessions(row: dict[str, Any], account: Account) -> Iterator[_Session]:
    """The haystack's sessions that hold something, in time order."""
    name = str(row["question_id"])
    ids, dates, held = row["haystack_session_ids"], row["haystack_dates"], row["haystack_sessions"]
    if not len(ids) == len(dates) == len(held):
        raise InputError(
            f"question {name}: as many session ids ({len(ids)}) as dates ({len(dates)}) "
            f"and sessions ({len(held)}) expected"
        )
    found, times = Counter[str](), []
    for raw, date, messages in zip(map(_name, ids), dates, held, strict=True):
        found[raw] += 1
        again = f"#{found[raw]}" if found[raw] > 1 else ""
        said_at = moment(date)
        account.note(_REPEATED, *[f"{name}/{raw}"] * bool(again))
        account.note(_UNDATED, *[f"{name}/{raw}: {date!r}"] * (said_at is None))
        account.note(_EMPTY, *[f"{name}/{raw}"] * (not messages))
        if messages:
            times.append(_Session(f"{name}/{raw}{again}", raw, said_at, messages))
    known = [session.said_at for session in times if session.said_at]
    account.note(_UNSORTED, *[name] * (known != sorted(known)))
    yield from _in_time_order(times)


def _in_time_order(held: list[_Session]) -> list[_Session]:
    """By date, stable; a session of unknown date stays behind the one that the file has before it."""
    keyed, last = [], datetime.min
    for session in held:
        last = session.said_at or last
        keyed.append((last, session))
    return [session for _, session in sorted(keyed, key=lambda pair: pair[0])]


def _turns(name: str, haystack: list[_Session], account: Account) -> Iterator[Turn]:
    position = 0
    for session in haystack:
        for number, message in enumerate(session.messages, start=1):
            id = f"{session.id}/{number}"
            yield Turn(
                id=id,
                conversation_id=name,
                session_id=session.id,
                position=position,
                speaker=_text(message["role"], id, account),
                text=_text(message["content"], id, account),
                caption=None,
                said_at=session.said_at,
            )
            position += 1


def _asked(row: dict[str, Any], haystack: list[_Session], account: Account) -> tuple[Question, Gold]:
    name, kind = str(row["question_id"]), str(row["question_type"])
    if kind not in KINDS:
        raise InputError(f"question {name}: a type of {', '.join(KINDS)} expected, {kind!r} found")
    asked_at = moment(row["question_date"])
    last = max((session.said_at for session in haystack if session.said_at), default=None)
    answer = _text(row["answer"], name, account)
    abstention = name.endswith("_abs")
    firsts = [session for session in haystack if session.id.endswith(f"/{session.raw}")]
    annotated = {session.id: _annotated(session) for session in firsts}
    wanted = [_name(raw) for raw in row["answer_session_ids"]]
    evidence = [session.id for session in firsts if session.raw in wanted]
    turns = tuple(id for ids in annotated.values() for id in ids)
    account.note(_UNDATED, *[f"{name}: {row['question_date']!r}"] * (asked_at is None))
    account.note(_LATE, *[name] * bool(asked_at and last and asked_at < last))
    account.note(_INTEGERS, *[name] * (not isinstance(row["answer"], str)))
    account.note(_ABSENT, *(f"{name}/{raw}" for raw in wanted if f"{name}/{raw}" not in annotated))
    account.note(_TURNLESS, *(id for id in evidence if not annotated[id]))
    account.note(_UNANNOTATED, *[name] * (not turns))
    return (
        Question(name, name, kind, asked_at, _text(row["question"], name, account)),
        Gold(
            question_id=name,
            answer=answer,
            turn_ids=turns,
            session_ids=tuple(evidence),
            rubric=(answer,) if kind == PREFERENCE and not abstention else (),
            abstention=abstention,
        ),
    )


def _annotated(session: _Session) -> list[str]:
    return [
        f"{session.id}/{number}"
        for number, message in enumerate(session.messages, start=1)
        if message.get("has_answer") is True
    ]


def _name(raw: object) -> str:
    """A session's id as part of a turn's id, in which the last slash stands before the turn."""
    return str(raw).replace("/", "-")


def _text(value: object, id: str, account: Account) -> str:
    text, mended = storable(value)
    account.note(_MENDED, *[id] * mended)
    return text


def _count(told: Told, account: Account, contents: set[str]) -> None:
    question, gold = told.asked[0]
    held = [(membership.session, membership.turns) for membership, _ in told.sessions]
    new = {session: size for session, size in held if session not in contents}
    contents.update(new)
    account.count("conversations")
    account.count("sessions", len(held))
    account.count("distinct sessions", len(new))
    account.count("turns", len(told.turns))
    account.count("distinct turns", sum(new.values()))
    account.count("questions")
    for kind in KINDS:
        account.count(f"{kind} questions", question.kind == kind)
    account.count("abstention questions, each within its type", gold.abstention)
    account.count("questions with an annotated turn", bool(gold.turn_ids))
    account.count("(question, turn) pairs", len(gold.turn_ids))
    account.count("(question, session) pairs", len(gold.session_ids))

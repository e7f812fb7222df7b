"""What does a benchmark of LongMemEval's size look like, made from the real sessions at hand?"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from storage.errors import InputError
from tasks.sources.longmemeval import SYNTHETIC
from tasks.sources.reading import elements, moment

FORMAT = "%Y/%m/%d (%a) %H:%M"
SPREAD = 6
"""A haystack has so many sessions more or fewer than the mean, evenly."""
_BEFORE = timedelta(days=30)
_CHANGED = 12


@dataclass(frozen=True)
class Size:
    """What is to be made. `distinct`: the share of filling sessions whose content no other haystack holds."""

    haystacks: int = 500
    sessions: int = 46
    distinct: float = 0.0
    seed: int = 20261130

    def __post_init__(self) -> None:
        if self.haystacks < 1 or self.sessions < 1 or not 0.0 <= self.distinct <= 1.0:
            raise InputError(
                "synth: at least 1 haystack and 1 session, and a share of distinct sessions in [0, 1] expected"
            )


def synth(data: Path, target: Path, size: Size) -> dict[str, int]:
    """Write a file of LongMemEval's layout with as many haystacks as asked for; returns what it holds.

    `data`: a file of LongMemEval's layout, or a folder of them. Each question of it comes in turn, with its own
    evidence sessions and their dates; the haystack is filled with sessions drawn from all others, without repeats
    where there are enough, dated evenly over the month before the evidence up to the question. A filling session
    that is to be distinct has every twelfth word or so replaced by one from another place in the data. Every id
    starts with `synthetic-`, and no LongMemEval source reads such a file. All draws follow from (seed, haystack).
    Raises `InputError` for data without questions and what reading it raises.
    """
    stock = _stock(data)
    counts = {"questions": 0, "sessions": 0, "turns": 0}
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.part")
    with partial.open("w", encoding="utf-8") as file:
        for row in _rows(stock, size):
            file.write("[\n" if not counts["questions"] else ",\n")
            json.dump(row, file, ensure_ascii=False)
            counts["questions"] += 1
            counts["sessions"] += len(row["haystack_sessions"])
            counts["turns"] += sum(map(len, row["haystack_sessions"]))
        file.write("\n]\n")
    partial.replace(target)
    return counts


@dataclass
class _Stock:
    """The real questions, the distinct real sessions by id, and words to put in the place of others."""

    questions: list[dict[str, Any]] = field(default_factory=list)
    sessions: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)


def _stock(data: Path) -> _Stock:
    if not data.exists():
        raise InputError(f"synth: {data} does not exist; name a file of LongMemEval's layout or a folder of them")
    stock = _Stock()
    for path in sorted(data.glob("*.json")) if data.is_dir() else [data]:
        for row in elements(path):
            try:
                held = dict(zip(row["haystack_session_ids"], row["haystack_sessions"], strict=True))
                stock.questions.append({**row, "own": {id: held[id] for id in row["answer_session_ids"] if id in held}})
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(
                    f"{path}: LongMemEval's keys expected, {type(error).__name__} at {error} found"
                ) from error
            stock.sessions.update({id: turns for id, turns in held.items() if turns})
    if not stock.questions:
        raise InputError(f"synth: questions in LongMemEval's layout expected in {data}, none found")
    stock.words = [word for turns in stock.sessions.values() for turn in turns for word in turn["content"].split()]
    return stock


def _rows(stock: _Stock, size: Size) -> Iterator[dict[str, Any]]:
    names = sorted(stock.sessions)
    for number in range(size.haystacks):
        draw = random.Random(f"{size.seed}/{number}")
        question = stock.questions[number % len(stock.questions)]
        wanted = max(len(question["own"]), size.sessions + draw.randint(-SPREAD, SPREAD))
        others = [name for name in names if name not in question["own"]]
        yield _row(stock, question, number, _drawn(draw, others, wanted - len(question["own"])), size.distinct, draw)


def _drawn(draw: random.Random, names: Sequence[str], count: int) -> list[str]:
    """`count` names, each as often as any other or once more."""
    taken: list[str] = []
    while names and len(taken) < count:
        taken += draw.sample(names, min(len(names), count - len(taken)))
    return taken


def _row(
    stock: _Stock, question: Mapping[str, Any], number: int, fillers: list[str], distinct: float, draw: random.Random
) -> dict[str, Any]:
    dates = dict(zip(question["haystack_session_ids"], question["haystack_dates"], strict=True))
    known = [date for id in question["own"] if (date := moment(dates[id]))]
    asked = moment(question["question_date"]) or max(known)
    first = min([*known, asked]) - _BEFORE
    held = [(dates[id], id, turns) for id, turns in question["own"].items()]
    for place, name in enumerate(fillers):
        minutes = draw.randrange(int((asked - first).total_seconds() // 60))
        turns, id = stock.sessions[name], f"synthetic-{place}-{name}".replace("answer", "filler")
        if draw.random() < distinct:
            turns, id = _changed(turns, stock.words, draw), f"{id}-{number}"
        held.append(((first + timedelta(minutes=minutes)).strftime(FORMAT), id, [_plain(turn) for turn in turns]))
    held.sort(key=lambda item: moment(item[0]) or asked)
    kept = ("question_type", "question", "answer", "question_date")
    return {
        "question_id": f"{SYNTHETIC}{number}-{question['question_id']}",
        **{key: question[key] for key in kept},
        "haystack_dates": [date for date, _, _ in held],
        "haystack_session_ids": [id for _, id, _ in held],
        "haystack_sessions": [turns for _, _, turns in held],
        "answer_session_ids": list(question["own"]),
    }


def _plain(turn: Mapping[str, Any]) -> dict[str, Any]:
    """A turn that is evidence for another question is none for this one."""
    return {"role": turn["role"], "content": turn["content"]}


def _changed(turns: list[dict[str, Any]], words: Sequence[str], draw: random.Random) -> list[dict[str, Any]]:
    made = []
    for turn in turns:
        said = turn["content"].split(" ")
        for place in range(draw.randrange(_CHANGED) % len(said), len(said), _CHANGED):
            said[place] = words[draw.randrange(len(words))]
        made.append({**turn, "content": " ".join(said)})
    return made

"""What of a benchmark's ids and words may be stored in the clear beside a sealed split."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from storage.digests import digest
from storage.records import Gold, Question, Turn

PLAIN = ("locomo",)
"""Benchmarks whose ids say nothing of what is asked. In others an id may: LongMemEval calls the sessions that hold an
answer `answer_…` and ends unanswerable ones in `_abs`; so all their ids are renamed, those without a mark too."""

_DIGITS = 12


def unmarked(
    benchmark: str, turns: Sequence[Turn], questions: Sequence[Question], gold: Sequence[Gold]
) -> tuple[list[Turn], list[Question], list[Gold]]:
    """The same under ids that tell nothing: conversations, sessions and turns are renamed, questions keep theirs.

    A conversation becomes `c-<digest of its id>`, a session `<conversation>/s-<digest>`, a turn
    `<session>/t<place in it>`. Question ids are stored encrypted until an unsealing, so they may keep their marks.
    """
    if benchmark in PLAIN:
        return list(turns), list(questions), list(gold)
    renamed, names, sessions = [], {}, {}
    for (conversation, session), group in groupby(turns, lambda turn: (turn.conversation_id, turn.session_id)):
        to = f"{_name('c', conversation)}/{_name('s', session)}"
        sessions[session] = to
        for place, turn in enumerate(group):
            names[turn.id] = f"{to}/t{place}"
            renamed.append(replace(turn, id=names[turn.id], conversation_id=_name("c", conversation), session_id=to))
    return (
        renamed,
        [replace(question, conversation_id=_name("c", question.conversation_id)) for question in questions],
        [_gold(row, names, sessions) for row in gold],
    )


def conversation_digests(turns: Sequence[Turn]) -> dict[str, str]:
    """Conversation → the address of who said what in it, whatever its ids and dates are."""
    said: dict[str, list[list[str]]] = {}
    for turn in turns:
        said.setdefault(turn.conversation_id, []).append([turn.speaker, turn.text])
    return {conversation: digest(words) for conversation, words in said.items()}


def _gold(row: Gold, turns: Mapping[str, str], sessions: Mapping[str, str]) -> Gold:
    return replace(
        row,
        turn_ids=tuple(turns[id] for id in row.turn_ids),
        session_ids=tuple(sessions[id] for id in row.session_ids),
    )


def _name(letter: str, id: str) -> str:
    return f"{letter}-{digest(id)[:_DIGITS]}"

"""What of a benchmark's ids may be stored, where readers see them: nothing that tells where the evidence is."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from storage.digests import digest
from storage.records import Gold, Question, Turn
from tasks.sources.ingested import Told

PLAIN = ("locomo",)
"""Benchmarks whose ids say nothing of what is asked. In others an id may: LongMemEval calls the sessions that hold an
answer `answer_…` and ends unanswerable ones in `_abs`; so all their ids are renamed, those without a mark too."""

_DIGITS = 12


def unmarked(benchmark: str, told: Told) -> Told:
    """One conversation under ids that tell nothing: it, its sessions and turns are renamed, questions keep theirs.

    A conversation becomes `c-<digest of its id>`, a session `<conversation>/s-<digest>`, a turn
    `<session>/t<place in it>`. Question ids keep their marks: no reader and no prompt is shown them, and a sealed
    split's are stored encrypted.
    """
    if benchmark in PLAIN:
        return told
    conversations = {id: _name("c", id) for id in dict.fromkeys(turn.conversation_id for turn in told.turns)}
    owners = {turn.session_id: turn.conversation_id for turn in told.turns}
    sessions = {id: f"{conversations[owner]}/{_name('s', id)}" for id, owner in owners.items()}
    names: dict[str, str] = {}
    sizes: Counter[str] = Counter()
    turns = []
    for turn in told.turns:
        session = sessions[turn.session_id]
        names[turn.id] = f"{session}/t{sizes[session]}"
        sizes[session] += 1
        turns.append(
            replace(turn, id=names[turn.id], conversation_id=conversations[turn.conversation_id], session_id=session)
        )
    return Told(turns, [_asked(question, gold, names, sessions) for question, gold in told.asked])


def conversation_digests(said: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Conversation → the address of who said what in it, whatever its ids and dates are.

    `said`: conversation id, speaker and text of each turn in order.
    """
    words: dict[str, list[list[str]]] = {}
    for conversation, speaker, text in said:
        words.setdefault(conversation, []).append([speaker, text])
    return {conversation: digest(held) for conversation, held in words.items()}


def spoken(turns: Iterable[Turn]) -> Iterator[tuple[str, str, str]]:
    """The conversation id, the speaker and the text of each turn."""
    return ((turn.conversation_id, turn.speaker, turn.text) for turn in turns)


def _asked(question: Question, gold: Gold, turns: dict[str, str], sessions: dict[str, str]) -> tuple[Question, Gold]:
    return (
        replace(question, conversation_id=_name("c", question.conversation_id)),
        replace(
            gold,
            turn_ids=tuple(turns[id] for id in gold.turn_ids),
            session_ids=tuple(sessions[id] for id in gold.session_ids),
        ),
    )


def _name(letter: str, id: str) -> str:
    return f"{letter}-{digest(id)[:_DIGITS]}"

"""The facts under LoCoMo's `observation` as records."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from storage.records import Record, Turn
from tasks.sources.ingested import Account

_SESSION = re.compile(r"session_0*(\d+)_observation")
_SOURCE = re.compile(r"D:?(\d+):(\d+)")


_COUNT, _SEVERAL = "observations", "observations with several source turns"
_REPAIRED = "observations whose sources were repaired"
_UNPLACED = "observations given to their whole session, as they name no turn"
_ORPHANS = "observations of no session"


def observe(
    sample: Mapping[str, Any], turns: Sequence[Turn], mend: Callable[[object, str], str], account: Account
) -> list[Record]:
    """The facts of one conversation, `session_N_observation: {speaker: [[text, turn id or list of ids], …]}`.

    An id is `conversation/S<session>.o<place in the file>`; records stand in the order of their sessions, then of
    their first source turn. A fact that names no turn of the conversation is given to its whole session and noted,
    so that evidence metrics stay defined. `mend(text, id)` makes a text storable.
    Raises `KeyError`, `TypeError`, `ValueError` or `AttributeError` for another form.
    """
    made, named = [], {turn.id.rpartition("/")[2]: turn for turn in turns}
    for session, key, said in _sessions(sample, turns, account):
        for place, (speaker, text, raw) in enumerate(said):
            id = f"{key}.o{place}"
            sources = _sources(raw, id, named, account)
            if not sources:
                account.note(_UNPLACED, id)
            made.append(_record(id, speaker, mend(text, id), session, sources or session))
    order = {turn.id: turn.position for turn in turns}
    start = {turn.session_id: turn.position for turn in reversed(turns)}
    made.sort(key=lambda record: (start[record.session_id], order[record.source_turn_ids[0]]))
    if sample.get("observation"):
        account.count(_COUNT, len(made))
        account.count(_SEVERAL, sum(len(record.source_turn_ids) > 1 for record in made))
        for label in (_REPAIRED, _UNPLACED, _ORPHANS):
            account.note(label)
    return [replace(record, position=position) for position, record in enumerate(made)]


def _sessions(
    sample: Mapping[str, Any], turns: Sequence[Turn], account: Account
) -> Iterator[tuple[list[Turn], str, list[tuple[str, str, object]]]]:
    """Each session with facts: its turns, its id, and (speaker, text, sources as they stand) of each fact."""
    for name, said in (sample.get("observation") or {}).items():
        match = _SESSION.fullmatch(name)
        key = f"{sample['sample_id']}/{f'S{match[1]}' if match else name}"
        session = [turn for turn in turns if turn.session_id == key]
        if session:
            yield session, key, [(speaker, text, raw) for speaker, rows in said.items() for text, raw in rows]
        else:
            account.note(_ORPHANS, key)


def _sources(raw: Any, id: str, named: Mapping[str, Turn], account: Account) -> list[Turn]:
    """The turns that are named, in time order; notes what is not the plain id of a turn."""
    strings = [raw] if isinstance(raw, str) else [str(one) for one in raw]
    names = dict.fromkeys(f"D{int(session)}:{int(turn)}" for one in strings for session, turn in _SOURCE.findall(one))
    if not named.keys() >= set(strings):
        account.note(_REPAIRED, f"{id}: {raw!r}")
    return sorted((named[name] for name in names if name in named), key=lambda turn: turn.position)


def _record(id: str, speaker: str, text: str, session: Sequence[Turn], sources: Sequence[Turn]) -> Record:
    return Record(
        id=id,
        conversation_id=session[0].conversation_id,
        session_id=session[0].session_id,
        position=0,
        speaker=speaker,
        text=" ".join(text.split()),
        said_at=session[0].said_at,
        source_turn_ids=tuple(turn.id for turn in sources),
    )

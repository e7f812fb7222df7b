"""What did each arm hand over for one question?"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import polars as pl

from reports.results import Arm, Results
from reports.traces import steps_of

SCRIPT_SIZE = 20
PICKS_SHOWN = 60
RETURNED_SHOWN = 20
CODED = ("speakers", "dates", "answers", "statuses", "stops", "views", "cues", "labels")


def scripts_of(questions: pl.DataFrame) -> list[list[int]]:
    """The places of the questions that one script tells of: of one conversation, `SCRIPT_SIZE` at most."""
    by_conversation: dict[str, list[int]] = {}
    for place, conversation in enumerate(questions["conversation_id"]):
        by_conversation.setdefault(conversation, []).append(place)
    return [own[at : at + SCRIPT_SIZE] for own in by_conversation.values() for at in range(0, len(own), SCRIPT_SIZE)]


def question_details(
    results: Results, scripts: Sequence[Sequence[int]], stores: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """What each script tells, texts once and everything else as integers.

    `records[store]` are the columns of the records that its questions name, and a record is its place among them; `x`
    is where it was said: 2.5 is the middle of the third of `sessions`, which are `[id, date]` in order of time.
    `questions[q]` has `gold`, a list of `[turn id, store, place]` (place -1: no record of that very turn), and
    `hits[store]`, a list of `[place, gold position]`. Its other lists have one entry an arm: `picks`, places in
    selection order (an id where the conversation has no such record), null where missing, or `{"n", "hits"}` where
    more than `PICKS_SHOWN` were picked; `answer`, `status`, `stop` and `label` (of sufficiency), -1 where unknown;
    `calls`, -1 where unknown; `steps`, null without a trace, `[view, cue, returned, [place, …]]`: cue -1 is the
    question itself; a record that came back and was not kept is -1 - place, and of those only the first
    `RETURNED_SHOWN` and the ones that hold gold are listed.
    """
    records = results.records.sort("position", maintain_order=True)
    shelved = records.partition_by("store", "conversation_id", as_dict=True)
    cells = results.cells.partition_by("question_id", as_dict=True)
    selections = results.selections.partition_by("question_id", as_dict=True)
    questions = results.questions.to_dicts()
    for own in scripts:
        conversation = questions[own[0]]["conversation_id"]
        frames = [shelved.get((store, conversation), records.clear()) for store in stores]
        sessions = _sessions(frames)
        codes = {name: _Codes() for name in CODED}
        shelves = {s: _Shelf(frame, list(sessions), codes) for s, frame in zip(stores, frames, strict=True)}
        told = {}
        for q in own:
            question = questions[q]
            at = (question["question_id"],)
            rows = _by_arm(cells.get(at)), _by_arm(selections.get(at))
            told[q] = _question(question, results.arms, *rows, shelves, codes)
        yield {
            "sessions": list(sessions.items()),
            "records": [shelf.columns for shelf in shelves.values()],
            **{name: each.values for name, each in codes.items()},
            "questions": told,
        }


def date(at: datetime | None) -> str:
    """As a page shows a time; empty where it is unknown."""
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M")


class _Codes:
    """Values to small integers, in order of first appearance; None is -1."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._known: dict[str, int] = {}

    def __call__(self, value: str | None) -> int:
        if value is None:
            return -1
        if value not in self._known:
            self._known[value] = len(self.values)
            self.values.append(value)
        return self._known[value]


class _Shelf:
    """One store's records of one conversation, each at a place of its own once it is asked for."""

    def __init__(self, rows: pl.DataFrame, sessions: Sequence[str], codes: Mapping[str, _Codes]) -> None:
        self.columns: dict[str, list[Any]] = {"id": [], "x": [], "speaker": [], "date": [], "text": []}
        self._codes = codes
        self._places: dict[str, int] = {}
        self._rows = {row["id"]: row for row in _along(rows, sessions).iter_rows(named=True)}
        self._holding: dict[str, list[str]] = {}
        for record, row in self._rows.items():
            for turn in row["source_turn_ids"] or []:
                self._holding.setdefault(turn, []).append(record)

    def __call__(self, record: str) -> int | str:
        """The record's place; its id where the conversation has no such record."""
        place = self._places.get(record)
        if place is None and record in self._rows:
            place = self._places[record] = len(self._places)
            self._tell(self._rows[record])
        return record if place is None else place

    def holding(self, turn: str) -> Sequence[str]:
        """Ids of the records that were made from a turn."""
        return self._holding.get(turn, ())

    def _tell(self, row: Mapping[str, Any]) -> None:
        own = self.columns
        own["id"].append(row["id"])
        own["x"].append(row["x"])
        own["speaker"].append(self._codes["speakers"](row["speaker"] or ""))
        own["date"].append(self._codes["dates"](date(row["said_at"])))
        own["text"].append(row["text"].removeprefix(f"{row['speaker']}: "))


def _along(rows: pl.DataFrame, sessions: Sequence[str]) -> pl.DataFrame:
    """Records with `x: Float64`: the number of the session and how far into it."""
    session = pl.col("session_id").fill_null("")
    slot = session.cast(pl.Enum(sessions)).to_physical()
    inside = (pl.int_range(pl.len()).over(session) + 0.5) / pl.len().over(session)
    return rows.with_columns(x=(slot + inside).round(2))


def _sessions(frames: Sequence[pl.DataFrame]) -> dict[str, str]:
    """Session → its first date, in the order of the first store that tells; records without one come last, as ``."""
    found: dict[str, str] = {}
    for frame in frames:
        for session, said_at in frame.select("session_id", "said_at").iter_rows():
            if session and not found.get(session):
                found[session] = date(said_at)
    bare = any(frame["session_id"].fill_null("").eq("").any() for frame in frames)
    return {**found, "": ""} if bare else found


def _by_arm(rows: pl.DataFrame | None) -> dict[str, dict[str, Any]]:
    return {} if rows is None else {row["arm"]: row for row in rows.iter_rows(named=True)}


def _question(
    question: Mapping[str, Any],
    arms: Sequence[Arm],
    cells: Mapping[str, Mapping[str, Any]],
    selections: Mapping[str, Mapping[str, Any]],
    shelves: Mapping[str, _Shelf],
    codes: Mapping[str, _Codes],
) -> dict[str, Any]:
    gold = question["gold_turn_ids"] or []
    held = {
        store: [(id, i) for i, turn in enumerate(gold) for id in shelf.holding(turn)]
        for store, shelf in shelves.items()
    }
    own = [cells.get(arm.label, {}) for arm in arms]
    told: dict[str, Any] = {
        "gold": [[turn, *_turn(turn, shelves)] for turn in gold],
        "hits": [[(shelf(record), i) for record, i in held[store]] for store, shelf in shelves.items()],
        "answer": [codes["answers"](cell.get("answer")) for cell in own],
        "status": [codes["statuses"](cell.get("answer_status")) for cell in own],
        "label": [codes["labels"](cell.get("sufficiency")) for cell in own],
        "stop": [codes["stops"](cell.get("stop_reason")) for cell in own],
        "calls": [-1 if cell.get("calls") is None else cell["calls"] for cell in own],
        "picks": [],
        "steps": [],
    }
    for arm in arms:
        shelf, golden, picked = shelves[arm.store], dict(held[arm.store]), selections.get(arm.label)
        told["picks"].append(None if picked is None else _picks(picked["record_ids"] or [], shelf, golden))
        told["steps"].append(_steps(picked or {}, question["text"], shelf, golden, codes))
    return told


def _turn(turn: str, shelves: Mapping[str, _Shelf]) -> tuple[int, int]:
    """Store and place of the record that is this very turn, by its id; place -1 if no store holds it."""
    for number, shelf in enumerate(shelves.values()):
        place = shelf(turn)
        if isinstance(place, int):
            return number, place
    return 0, -1


def _picks(ids: Sequence[str], shelf: _Shelf, golden: Collection[str]) -> list[int | str] | dict[str, Any]:
    if len(ids) <= PICKS_SHOWN:
        return [shelf(record) for record in ids]
    picked = set(ids)
    return {"n": len(ids), "hits": [shelf(record) for record in golden if record in picked]}


def _steps(
    picked: Mapping[str, Any], asked: str, shelf: _Shelf, golden: Collection[str], codes: Mapping[str, _Codes]
) -> list[Any] | None:
    """An arm's steps; None where it has no trace."""
    if not picked.get("trace"):
        return None
    return [
        [
            codes["views"](step["view"]),
            -1 if step["cue"] == asked else codes["cues"](step["cue"]),
            len(step["returned"]),
            _came_back(step, shelf, golden),
        ]
        for step in steps_of(picked["trace"], picked["record_ids"] or [])
    ]


def _came_back(step: Mapping[str, Any], shelf: _Shelf, golden: Collection[str]) -> list[int | str]:
    """Places of what a step returned, the kept ones as they are, the others as -1 - place."""
    kept = set(step["kept"])
    shown: list[int | str] = []
    for rank, record in enumerate(dict.fromkeys([*step["returned"], *step["kept"]])):
        if record in kept:
            shown.append(shelf(record))
        elif rank < RETURNED_SHOWN or record in golden:
            place = shelf(record)
            shown += [-1 - place] if isinstance(place, int) else []
    return shown

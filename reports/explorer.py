"""What did each arm hand over for one question?"""

import base64
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import polars as pl
from markupsafe import Markup

from reports.files import TEMPLATES, templates
from reports.results import Arm, Results
from reports.tables import budget_words
from reports.traces import steps_of

PICKS_SHOWN = 60
RETURNED_SHOWN = 20
NO_GOLD, MISSING, MISS, PARTIAL, COMPLETE = "-?012"
UNSAFE = re.compile("[<>&\u2028\u2029]")


def explorer_page(results: Results) -> str:
    """questions.html: every question and each arm's evidence in one page, which asks no network for more."""
    script = (TEMPLATES / "explorer.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        templates()
        .get_template("questions.html.j2")
        .render(
            title=results.title,
            offline=results.offline,
            script=Markup(script),
            script_digest=digest,
            data=Markup(embedded(explorer_data(results))),
        )
    )


def embedded(data: Any) -> str:
    """JSON that may stand inside a `<script>` element: no character in it can end the element or a line."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", re.sub("[\ud800-\udfff]", "\ufffd", text))


def explorer_data(results: Results) -> dict[str, Any]:
    """The page's data, texts once and everything else as integers.

    A record is its place within its store's conversation. `gold[q]` is a list of `[turn id, store, place]`
    (place -1: no record of that very turn). `hits[store][q]` is a list of `[place, gold position]`.
    `outcome[arm]` has one character a question: `-` no gold, `?` missing, 0 no gold turn, 1 some, 2 all.
    `picks[arm][q]` is a list of places in selection order (an id where the conversation has no such record),
    null where missing, or `{"n", "hits"}` where more than `PICKS_SHOWN` were picked.
    `verdicts[judge][arm][q]` is 1000 x score, or -1 - status. `calls[arm][q]` and `stop[arm][q]` tell how the arm
    ended, -1 where unknown. `steps[arm][q]` are an arm's steps `[view, cue, returned, [place, …]]`, null where it has
    no trace: cue -1 is the question itself; a record that came back and was not kept is -1 - place; of those only the
    first `RETURNED_SHOWN` and the ones that hold gold are listed.
    """
    codes = {name: _Codes() for name in _CODED}
    book = _Book(results.records, codes)
    questions = results.questions
    ids = questions["question_id"].to_list()
    conversations = questions["conversation_id"].to_list()
    gold = questions["gold_turn_ids"].to_list()
    stores = list(dict.fromkeys([*book.stores, *(arm.store for arm in results.arms)]))
    places = {q: i for i, q in enumerate(ids)}
    hits = {s: [book.hits(s, c, g or []) for c, g in zip(conversations, gold, strict=True)] for s in stores}
    kinds = list(dict.fromkeys([*results.kinds, *questions["kind"].to_list()]))
    return {
        "title": results.title,
        "offline": results.offline,
        "kinds": kinds,
        "stores": stores,
        "judges": list(results.judges),
        "arms": [_arm(arm, stores) for arm in results.arms],
        "questions": {
            "id": ids,
            "conversation": [codes["conversations"](c) for c in conversations],
            "kind": [kinds.index(k) for k in questions["kind"]],
            "text": questions["text"].to_list(),
            "asked": [_date(at) for at in questions["asked_at"]],
            "answer": questions["answer"].to_list(),
        },
        "gold": [
            [[turn, *book.turn(stores, c, turn)] for turn in g or []] for c, g in zip(conversations, gold, strict=True)
        ],
        "hits": [hits[s] for s in stores],
        "picks": _picks(results, places, conversations, book, hits),
        "outcome": _outcomes(results, places, gold),
        **_answers(results, places, codes),
        "verdicts": _verdicts(results, places, codes["statuses"]),
        **_ends(results, places, codes["stops"]),
        "steps": _steps(results, places, conversations, book, hits, codes),
        "records": [book.shelf(s, codes["conversations"]) for s in stores],
        **{name: own.values for name, own in codes.items()},
    }


_CODED = ("speakers", "dates", "sessions", "conversations", "answers", "statuses", "stops", "views", "cues")


class _Codes:
    """Values to small integers, in order of first appearance."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._known: dict[str, int] = {}

    def __call__(self, value: str) -> int:
        if value not in self._known:
            self._known[value] = len(self.values)
            self.values.append(value)
        return self._known[value]


class _Book:
    """Records by store and conversation, each at a place of its own in order of position."""

    def __init__(self, records: pl.DataFrame, codes: Mapping[str, _Codes]) -> None:
        self.stores: list[str] = records["store"].unique(maintain_order=True).to_list()
        self._shelves: dict[tuple[str, str], dict[str, list[Any]]] = {}
        self._places: dict[tuple[str, str], dict[str, int]] = {}
        self._sources: dict[tuple[str, str], dict[str, list[int]]] = {}
        for row in records.sort("position", maintain_order=True).iter_rows(named=True):
            at = (row["store"], row["conversation_id"])
            shelf = self._shelves.setdefault(at, {"id": [], "session": [], "speaker": [], "date": [], "text": []})
            place = len(shelf["id"])
            self._places.setdefault(at, {})[row["id"]] = place
            shelf["id"].append(row["id"])
            shelf["session"].append(codes["sessions"](row["session_id"] or ""))
            shelf["speaker"].append(codes["speakers"](row["speaker"] or ""))
            shelf["date"].append(codes["dates"](_date(row["said_at"])))
            shelf["text"].append(row["text"].removeprefix(f"{row['speaker']}: "))
            for source in row["source_turn_ids"] or []:
                self._sources.setdefault(at, {}).setdefault(source, []).append(place)

    def places(self, store: str, conversation: str) -> Mapping[str, int]:
        """Record id → place in the conversation."""
        return self._places.get((store, conversation), {})

    def hits(self, store: str, conversation: str, gold: Sequence[str]) -> list[list[int]]:
        sources = self._sources.get((store, conversation), {})
        return [[place, i] for i, turn in enumerate(gold) for place in sources.get(turn, [])]

    def turn(self, stores: Sequence[str], conversation: str, turn: str) -> tuple[int, int]:
        """Store and place of the record that is this very turn, by its id; place -1 if no store holds it."""
        for number, store in enumerate(stores):
            place = self._places.get((store, conversation), {}).get(turn)
            if place is not None:
                return number, place
        return 0, -1

    def shelf(self, store: str, conversations: _Codes) -> dict[int, dict[str, list[Any]]]:
        return {conversations(c): shelf for (s, c), shelf in self._shelves.items() if s == store}


def _arm(arm: Arm, stores: Sequence[str]) -> dict[str, Any]:
    return {
        "label": arm.label,
        "store": stores.index(arm.store),
        "budget": budget_words(arm),
        "gold": arm.uses_gold,
    }


def _date(at: datetime | None) -> str:
    return "" if at is None else at.strftime("%Y-%m-%d %H:%M")


def _by_arm(results: Results, frame: pl.DataFrame) -> Iterable[tuple[Arm, pl.DataFrame]]:
    parts = {key[0]: part for key, part in frame.partition_by("arm", as_dict=True).items()}
    for arm in results.arms:
        yield arm, parts.get(arm.label, frame.clear())


def _picks(
    results: Results,
    places: Mapping[str, int],
    conversations: Sequence[str],
    book: _Book,
    hits: Mapping[str, list[list[list[int]]]],
) -> list[list[Any]]:
    found = []
    for arm, part in _by_arm(results, results.selections):
        own: list[Any] = [None] * len(conversations)
        for question, records in part.select("question_id", "record_ids").iter_rows():
            q = places[question]
            known = book.places(arm.store, conversations[q])
            picked = [known.get(record, record) for record in records or []]
            own[q] = picked if len(picked) <= PICKS_SHOWN else _count(picked, hits[arm.store][q])
        found.append(own)
    return found


def _count(picked: Sequence[int | str], hits: Sequence[Sequence[int]]) -> dict[str, Any]:
    held = set(picked)
    return {"n": len(picked), "hits": [place for place in dict.fromkeys(h[0] for h in hits) if place in held]}


def _ends(results: Results, places: Mapping[str, int], codes: _Codes) -> dict[str, Any]:
    """How many calls each cell took and why it ended."""
    calls, stops = [], []
    for _, part in _by_arm(results, results.cells):
        own, stop = [-1] * len(places), [-1] * len(places)
        for question, number, why in part.select("question_id", "calls", "stop_reason").iter_rows():
            own[places[question]] = -1 if number is None else number
            stop[places[question]] = -1 if why is None else codes(why)
        calls.append(own)
        stops.append(stop)
    return {"calls": calls, "stop": stops}


def _steps(
    results: Results,
    places: Mapping[str, int],
    conversations: Sequence[str],
    book: _Book,
    hits: Mapping[str, list[list[list[int]]]],
    codes: Mapping[str, _Codes],
) -> list[list[Any]]:
    """Every arm's steps, question by question."""
    if "trace" not in results.selections.columns:
        return [[None] * len(places) for _ in results.arms]
    asked = results.questions["text"].to_list()
    found = []
    for arm, part in _by_arm(results, results.selections):
        own: list[Any] = [None] * len(places)
        for question, trace, ids in part.select("question_id", "trace", "record_ids").iter_rows():
            q = places[question]
            if trace:
                known, gold = book.places(arm.store, conversations[q]), {place for place, _ in hits[arm.store][q]}
                own[q] = [
                    [
                        codes["views"](step["view"]),
                        -1 if step["cue"] == asked[q] else codes["cues"](step["cue"]),
                        len(step["returned"]),
                        _came_back(step, known, gold),
                    ]
                    for step in steps_of(trace, ids or [])
                ]
        found.append(own)
    return found


def _came_back(step: Mapping[str, Any], known: Mapping[str, int], gold: Collection[int]) -> list[int | str]:
    """Places of what a step returned, the kept ones as they are, the others as -1 - place."""
    kept = set(step["kept"])
    shown: list[int | str] = []
    for rank, record in enumerate(dict.fromkeys([*step["returned"], *step["kept"]])):
        at = known.get(record, record)
        if record in kept:
            shown.append(at)
        elif isinstance(at, int) and (rank < RETURNED_SHOWN or at in gold):
            shown.append(-1 - at)
    return shown


def _outcomes(results: Results, places: Mapping[str, int], gold: Sequence[Sequence[str] | None]) -> list[str]:
    found = []
    for _, part in _by_arm(results, results.cells):
        own = [MISSING if turns else NO_GOLD for turns in gold]
        for question, hit, complete in part.select("question_id", "gold_hit", "complete_evidence").iter_rows():
            if complete is not None:
                own[places[question]] = COMPLETE if complete == 1 else PARTIAL if hit else MISS
        found.append("".join(own))
    return found


def _answers(results: Results, places: Mapping[str, int], codes: Mapping[str, _Codes]) -> dict[str, Any]:
    answers, statuses = [], []
    for _, part in _by_arm(results, results.cells):
        own, status = [-1] * len(places), [-1] * len(places)
        for question, text, state in part.select("question_id", "answer", "answer_status").iter_rows():
            q = places[question]
            own[q] = -1 if text is None else codes["answers"](text)
            status[q] = -1 if state is None else codes["statuses"](state)
        answers.append(own)
        statuses.append(status)
    return {"answer": answers, "answer_status": statuses}


def _verdicts(results: Results, places: Mapping[str, int], statuses: _Codes) -> list[list[list[Any]]]:
    found = []
    for judge in results.judges:
        of_judge = []
        for _, part in _by_arm(results, results.verdicts.filter(pl.col("judge") == judge)):
            own: list[Any] = [None] * len(places)
            for question, status, score in part.select("question_id", "status", "score").iter_rows():
                scored = status == "ok" and score is not None
                own[places[question]] = round(1000 * score) if scored else -1 - statuses(status)
            of_judge.append(own)
        found.append(of_judge)
    return found

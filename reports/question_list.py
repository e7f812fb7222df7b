"""What does the list of questions know of each, so that it can be filtered?"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from reports.diagnosis import DIAGNOSES, diagnosed, scored_by
from reports.question_details import date
from reports.results import Arm, Results
from reports.tables import budget_words

NO_GOLD, MISSING, MISS, PARTIAL, COMPLETE = "-?012"


def question_list(results: Results, scripts: Sequence[Sequence[int]]) -> dict[str, Any]:
    """The data of the page itself; `scripts`: the places of the questions that each script beside it tells of.

    `questions.script` has the script of each question. `panel`: whether sufficiency was judged. `outcome[arm]` has one
    character a question: `-` no gold, `?` missing, 0 no gold turn, 1 some, 2 all. `verdicts[judge][arm][q]` is
    1000 x score, or -1 - status, null where none was expected. `diagnosis[judge][arm]` has one character a question,
    the place in `diagnoses`; both are empty where nobody judged sufficiency.
    """
    questions = results.questions
    places = {q: i for i, q in enumerate(questions["question_id"])}
    conversations = list(dict.fromkeys(questions["conversation_id"]))
    kinds = list(dict.fromkeys([*results.kinds, *questions["kind"]]))
    stores = store_names(results)
    statuses = list(dict.fromkeys(results.verdicts["status"]))
    judged = results.cells["sufficiency"].is_not_null().any()
    return {
        "title": results.title,
        "offline": results.offline,
        "kinds": kinds,
        "conversations": conversations,
        "judges": list(results.judges),
        "arms": [_arm(arm, stores) for arm in results.arms],
        "questions": {
            "id": questions["question_id"].to_list(),
            "conversation": [conversations.index(c) for c in questions["conversation_id"]],
            "kind": [kinds.index(k) for k in questions["kind"]],
            "text": questions["text"].to_list(),
            "asked": [date(at) for at in questions["asked_at"]],
            "answer": questions["answer"].to_list(),
            "script": _script_of(scripts, len(places)),
        },
        "outcome": _outcomes(results, places),
        "verdicts": [_verdicts(results, judge, places, statuses) for judge in results.judges],
        "statuses": statuses,
        "panel": judged,
        "diagnoses": list(DIAGNOSES.items()) if judged else [],
        "diagnosis": [_diagnoses(results, judge, places) for judge in results.judges] if judged else [],
    }


def store_names(results: Results) -> list[str]:
    """The stores of the records and of the arms, each at its number."""
    return list(
        dict.fromkeys([*results.records["store"].unique(maintain_order=True), *(a.store for a in results.arms)])
    )


def _arm(arm: Arm, stores: Sequence[str]) -> dict[str, Any]:
    return {
        "label": arm.label,
        "store": stores.index(arm.store),
        "budget": budget_words(arm),
        "gold": arm.uses_gold,
    }


def _script_of(scripts: Sequence[Sequence[int]], size: int) -> list[int]:
    found = [0] * size
    for number, own in enumerate(scripts):
        for q in own:
            found[q] = number
    return found


def _by_arm(results: Results, frame: pl.DataFrame) -> Iterable[pl.DataFrame]:
    parts = {key[0]: part for key, part in frame.partition_by("arm", as_dict=True).items()}
    return (parts.get(arm.label, frame.clear()) for arm in results.arms)


def _outcomes(results: Results, places: Mapping[str, int]) -> list[str]:
    found = []
    for part in _by_arm(results, results.cells):
        own = [MISSING if turns else NO_GOLD for turns in results.questions["gold_turn_ids"].to_list()]
        for question, hit, complete in part.select("question_id", "gold_hit", "complete_evidence").iter_rows():
            if complete is not None:
                own[places[question]] = COMPLETE if complete == 1 else PARTIAL if hit else MISS
        found.append("".join(own))
    return found


def _verdicts(results: Results, judge: str, places: Mapping[str, int], statuses: Sequence[str]) -> list[list[Any]]:
    found = []
    for part in _by_arm(results, results.verdicts.filter(pl.col("judge") == judge)):
        own: list[Any] = [None] * len(places)
        for question, status, score in part.select("question_id", "status", "score").iter_rows():
            scored = status == "ok" and score is not None
            own[places[question]] = round(1000 * score) if scored else -1 - statuses.index(status)
        found.append(own)
    return found


def _diagnoses(results: Results, judge: str, places: Mapping[str, int]) -> list[str]:
    names, found = list(DIAGNOSES), []
    for part in _by_arm(results, diagnosed(scored_by(judge, results.cells, results.verdicts))):
        own = [str(names.index("undecided"))] * len(places)
        for question, name in part.select("question_id", "diagnosis").iter_rows():
            own[places[question]] = str(names.index(name))
        found.append("".join(own))
    return found

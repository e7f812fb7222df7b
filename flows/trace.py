"""How every arm came by its evidence for one question, step by step."""

from typing import Any

import polars as pl

from flows.gate import planned
from flows.protocol import Protocol
from storage.errors import InputError
from storage.lake import Lake
from storage.records import Question
from storage.schemas import SELECTIONS
from tasks.ingest import ingest
from tasks.plan import Plan, StorePlan
from tasks.sealed import Unsealing


def trace(protocol: Protocol, lake: str, question_id: str, unsealing: Unsealing | None = None) -> dict[str, Any]:
    """The question, its gold turns and, arm by arm, the steps: view, cue, how many came back, what was kept.

    A step's `gold` are the gold turns that entered with it. An arm that keeps no trace has one step, `select`.
    Raises `InputError` for an unknown question and where no arm has read it.
    """
    data = protocol.data
    dataset = ingest(lake, data.benchmark, data.path, data.sha256 or None, data.split)
    plan = planned(protocol, lake, dataset, unsealing)
    question = next((question for question in plan.questions() if question.id == question_id), None)
    if question is None:
        some = ", ".join(question.id for question in plan.questions()[:3])
        raise InputError(f"trace: a question of the protocol such as {some} expected, {question_id!r} found")
    gold = plan.gold_of(question.conversation_id)[question_id]
    arms = [arm for store in plan.stores for arm in _arms(plan, store, question, set(gold.turn_ids))]
    if not arms:
        raise InputError(f"trace: evidence for {question_id} expected, none found; run `suffice run` first")
    return {
        "question": question_id,
        "kind": question.kind,
        "text": question.text,
        "answer": gold.answer,
        "gold": list(gold.turn_ids),
        "arms": arms,
    }


def _arms(plan: Plan, store: StorePlan, question: Question, gold: set[str]) -> list[dict[str, Any]]:
    table = Lake(plan.lake).table(SELECTIONS, store.selections(plan.seed))
    names = [str(arm) for arm in plan.arms_of(store)]
    chosen = (pl.col("question_id") == question.id) & pl.col("arm").is_in(names)
    found = {row["arm"]: row for row in table.read(where=chosen).iter_rows(named=True)}
    records = plan.records(store, question.conversation_id)
    sources = {record.id: set(record.source_turn_ids) for record in records}
    return [
        {
            "arm": name,
            "records": len(found[name]["record_ids"]),
            "calls": found[name]["calls"],
            "stop": found[name]["stop_reason"],
            "steps": _steps(found[name], gold, sources),
        }
        for name in names
        if name in found
    ]


def _steps(row: dict[str, Any], gold: set[str], sources: dict[str, set[str]]) -> list[dict[str, Any]]:
    steps = row["trace"] or [{"view": "select", "cue": "", "returned": row["record_ids"], "kept": row["record_ids"]}]
    return [
        {
            "view": step["view"],
            "cue": step["cue"],
            "returned": len(step["returned"]),
            "kept": list(step["kept"]),
            "gold": sorted(gold & set().union(*(sources[id] for id in step["kept"]))),
        }
        for step in steps
    ]

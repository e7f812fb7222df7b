"""How every arm came by its evidence for one question, step by step."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from flows.gate import planned
from flows.protocol import Protocol
from reports.traces import steps_of
from storage.errors import InputError
from storage.records import Question
from tasks.compose import selected
from tasks.ingest import ingest
from tasks.plan import Plan, StorePlan
from tasks.sealed import Unsealing


def trace(protocol: Protocol, lake: str, question_id: str, unsealing: Unsealing | None = None) -> dict[str, Any]:
    """The question, its gold turns with their texts and, arm by arm, the steps: view, cue, what came back and was kept.

    A step's `gold` are the gold turns that entered with it and not before, `passed` those that came back and were left.
    An arm that keeps no trace has one step, `select`; what a trace does not account for is the step `rest`.
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
    arms = [arm for store in plan.stores for arm in _arms(plan, store, question, gold.turn_ids)]
    if not arms:
        raise InputError(f"trace: evidence for {question_id} expected, none found; run `suffice run` first")
    return {
        "question": question_id,
        "kind": question.kind,
        "text": question.text,
        "answer": gold.answer,
        "gold": list(gold.turn_ids),
        "texts": _texts(plan, question, gold.turn_ids),
        "arms": arms,
    }


def _texts(plan: Plan, question: Question, gold: Sequence[str]) -> dict[str, str]:
    """Gold turn → what the first store holds of it."""
    records = plan.records(plan.stores[0], question.conversation_id)
    return {turn: " / ".join(each.text for each in records if turn in each.source_turn_ids) for turn in gold}


def _arms(plan: Plan, store: StorePlan, question: Question, gold: Sequence[str]) -> list[dict[str, Any]]:
    arms = {str(arm): arm for arm in plan.arms_of(store)}
    rows = selected(plan, store, where=pl.col("question_id") == question.id)
    found = {row["arm"]: row for row in rows.iter_rows(named=True)}
    records = plan.records(store, question.conversation_id)
    sources = {record.id: set(record.source_turn_ids) for record in records}
    return [
        {
            "arm": name,
            "records": len(found[name]["record_ids"]),
            "budget": arm.budget,
            "calls": found[name]["calls"],
            "stop": found[name]["stop_reason"],
            "steps": _steps(found[name], gold, sources),
        }
        for name, arm in arms.items()
        if name in found
    ]


def _steps(row: dict[str, Any], gold: Sequence[str], sources: dict[str, set[str]]) -> list[dict[str, Any]]:
    told, seen = [], set[str]()
    for step in steps_of(row["trace"], row["record_ids"]):
        came = [turn for turn in gold if any(turn in sources[id] for id in step["returned"])]
        kept = [turn for turn in gold if any(turn in sources[id] for id in step["kept"])]
        entered = [turn for turn in kept if turn not in seen]
        seen |= set(kept)
        passed = [turn for turn in came if turn not in seen]
        told.append({**step, "gold": entered, "passed": passed})
    return told

"""Each evidence state that has no answer is answered once, whatever arms share it."""

from collections.abc import Iterator, Sequence

import polars as pl

from storage.lake import Lake
from storage.schemas import ANSWERS, STATES
from tasks import specs
from tasks.answerers import ANSWERERS
from tasks.compose import selected
from tasks.outcomes import Answer
from tasks.plan import Conversations, Plan, StorePlan
from tasks.shard import shard

SAVED_TOGETHER = 500


def answer(plan: Plan, store: StorePlan, conversations: Conversations) -> int:
    """Answer one conversation's states that the lake holds no answer of; returns how many. Sees no gold.

    Answers are saved every `SAVED_TOGETHER`, so that a killed run repeats few. Where no reply was had nothing is saved,
    and the next run asks again.
    """
    lake = Lake(plan.lake)
    missing = unanswered(plan, store, conversations)
    if missing.is_empty():
        return 0
    states = lake.table(STATES, store.store).read().join(missing, on=missing.columns, how="semi")
    questions = {question.id: question for question in plan.questions(conversations)}
    records = plan.shown(store, conversations)
    items = [
        (questions[row["question_id"]], [records[id] for id in row["record_ids"]])
        for row in states.iter_rows(named=True)
    ]
    keys = states.select("question_id", "evidence_hash").rows()
    answers = specs.make(ANSWERERS, plan.answerer, "answerer").answer_many(items, plan.asking)
    return _save(plan, keys, answers)


def unanswered(plan: Plan, store: StorePlan, conversations: Conversations | None = None) -> pl.DataFrame:
    """The (question_id, evidence_hash) of the run's selections that have no answer yet."""
    return Lake(plan.lake).table(ANSWERS, plan.answers).missing(selected_states(plan, store, conversations))


def selected_states(plan: Plan, store: StorePlan, conversations: Conversations | None = None) -> pl.DataFrame:
    """The distinct (question_id, evidence_hash) that the run's arms selected from one store."""
    ids = [question.id for question in plan.questions(conversations)]
    states = selected(plan, store, ["question_id", "evidence_hash"], where=pl.col("question_id").is_in(ids))
    return states.unique(maintain_order=True)


def _save(plan: Plan, keys: Sequence[tuple[str, ...]], answers: Iterator[Answer | None]) -> int:
    table, rows, count = Lake(plan.lake).table(ANSWERS, plan.answers), [], 0
    for key, reply in zip(keys, answers, strict=True):
        if reply is None:
            continue
        rows.append(
            {
                "question_id": key[0],
                "evidence_hash": key[1],
                "text": reply.text,
                "status": reply.status,
                "raw": reply.raw,
            }
        )
        if len(rows) == SAVED_TOGETHER:
            count += table.append(rows)
            rows = []
    return count + table.append(rows)


answer_task = shard("answer", answer)

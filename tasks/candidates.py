"""The candidate pools of one conversation's questions, saved once for all readers."""

import numpy as np
import polars as pl

from storage import vectors
from storage.lake import Lake
from storage.schemas import POOLS
from tasks import specs
from tasks.imported.pools import given_pools
from tasks.index import embedded
from tasks.plan import Plan, StorePlan
from tasks.pool import FUSIONS, Lexicon, candidates
from tasks.shard import shard


def build_pools(plan: Plan, store: StorePlan, conversation_id: str) -> int:
    """Pools of the conversation's questions that have none; returns how many were made."""
    lake = Lake(plan.lake)
    table = lake.table(POOLS, store.pool)
    missing = missing_pools(plan, store, conversation_id)
    questions = {question.id: question for question in plan.questions(conversation_id) if question.id in missing}
    ids = list(questions)
    if not ids:
        return 0
    if store.pools:
        return table.append(given_pools(plan, store, conversation_id, missing))
    indexed = vectors.read(lake.vectors, store.index, conversation_id)
    texts = {record.id: record.text for record in plan.records(store, conversation_id)}
    lexicon = Lexicon([texts[id] for id in indexed.ids])
    fusion = specs.make(FUSIONS, store.fusion, "pool.fusion")
    queries = embedded(plan, store, [questions[id].text for id in ids])
    rows = []
    for id, query in zip(ids, queries, strict=True):
        found = candidates(indexed.vectors, query, lexicon.scores(questions[id].text), store.size, fusion)
        rows.append(
            {
                "question_id": id,
                "record_ids": np.asarray(indexed.ids, dtype=object)[found.rows],
                "native": found.native,
                "dense": found.dense,
                "lexical": found.lexical,
            }
        )
    return table.append(rows)


def missing_pools(plan: Plan, store: StorePlan, conversation_id: str | None = None) -> set[str]:
    """The run's questions without a pool, of one conversation or of all."""
    ids = [question.id for question in plan.questions(conversation_id)]
    expected = pl.DataFrame({"question_id": ids}, schema={"question_id": pl.String})
    return set(Lake(plan.lake).table(POOLS, store.pool).missing(expected)["question_id"])


pool_task = shard("pool", build_pools)

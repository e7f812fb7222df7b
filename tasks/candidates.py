"""The candidate pools of the questions of some conversations, saved once for all readers."""

from collections.abc import Collection
from typing import Any

import polars as pl

from storage.lake import Lake
from storage.records import Question
from storage.schemas import POOLS
from tasks import specs
from tasks.index import embedded, haystack
from tasks.plan import Conversations, Plan, StorePlan
from tasks.pool import FUSIONS, Lexicon, candidates
from tasks.shard import shard


def build_pools(plan: Plan, store: StorePlan, conversation_ids: Collection[str]) -> int:
    """Pools of the conversations' questions that have none; returns how many were made.

    A question is searched in its own conversation alone, over every record of it: a pool is exact at every size.
    """
    missing = missing_pools(plan, store, conversation_ids)
    rows = []
    for conversation_id in conversation_ids:
        questions = [question for question in plan.questions(conversation_id) if question.id in missing]
        if questions:
            rows += _pools(plan, store, conversation_id, questions)
    return Lake(plan.lake).table(POOLS, store.pool).append(rows)


def _pools(plan: Plan, store: StorePlan, conversation_id: str, questions: list[Question]) -> list[dict[str, Any]]:
    records = plan.record_frame(store, conversation_id)
    vectors = haystack(plan, store, records)
    lexicon = Lexicon(records["text"].to_list())
    fusion = specs.make(FUSIONS, store.fusion, "pool.fusion")
    queries = embedded(plan, store, [question.text for question in questions])
    ids = records["id"].to_numpy()
    rows = []
    for question, query in zip(questions, queries, strict=True):
        found = candidates(vectors, query, lexicon.scores(question.text), store.size, fusion)
        rows.append(
            {
                "question_id": question.id,
                "record_ids": ids[found.rows],
                "native": found.native,
                "dense": found.dense,
                "lexical": found.lexical,
            }
        )
    return rows


def missing_pools(plan: Plan, store: StorePlan, conversations: Conversations | None = None) -> set[str]:
    """The run's questions without a pool, of one conversation, of some or of all."""
    ids = [question.id for question in plan.questions(conversations)]
    expected = pl.DataFrame({"question_id": ids}, schema={"question_id": pl.String})
    return set(Lake(plan.lake).table(POOLS, store.pool).missing(expected)["question_id"])


pool_task = shard("pool", build_pools)

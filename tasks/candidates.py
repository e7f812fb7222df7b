"""The candidate pools of the questions of some conversations, saved once for all readers."""

from collections.abc import Collection
from typing import Any, NamedTuple

import polars as pl

from storage.errors import InputError
from storage.lake import Lake
from storage.records import Question
from storage.schemas import POOLS
from tasks import specs
from tasks.encoders import ENCODERS
from tasks.imported.pools import given_pools
from tasks.index import embedded, haystack
from tasks.plan import Conversations, Plan, StorePlan
from tasks.pool import FUSIONS, Haystack
from tasks.shard import shard

ENOUGH = 20
"""So many pools in which a part of the score never took part are no accident."""


def build_pools(plan: Plan, store: StorePlan, conversation_ids: Collection[str]) -> int:
    """Pools of the conversations' questions that have none; returns how many were made.

    A question is searched in its own conversation alone, over every record of it: a pool is exact at every size.
    """
    missing = missing_pools(plan, store, conversation_ids)
    rows = []
    for conversation_id in conversation_ids:
        questions = [question for question in plan.questions(conversation_id) if question.id in missing]
        if questions:
            made = given_pools if store.pools else _pools
            rows += made(plan, store, conversation_id, questions)
    return Lake(plan.lake).table(POOLS, store.pool).append(rows)


def _pools(plan: Plan, store: StorePlan, conversation_id: str, questions: list[Question]) -> list[dict[str, Any]]:
    records = plan.record_frame(store, conversation_id)
    vectors = haystack(plan, store, records)
    fusion = specs.make(FUSIONS, store.fusion, "pool.fusion")
    encoder = specs.make(ENCODERS, store.encoder, "encoder")
    searched = Haystack(records["text"].to_list(), vectors, fusion, encoder.encode)
    queries = embedded(plan, store, [question.text for question in questions])
    ids = records["id"].to_numpy()
    rows = []
    for question, query in zip(questions, queries, strict=True):
        found = searched.pool(question.text, query, store.size)
        rows.append(
            {
                "question_id": question.id,
                "record_ids": ids[found.rows],
                "native": found.native,
                "dense": found.dense,
                "lexical": found.lexical,
                "boost": found.boost,
            }
        )
    return rows


def missing_pools(plan: Plan, store: StorePlan, conversations: Conversations | None = None) -> set[str]:
    """The run's questions without a pool, of one conversation, of some or of all."""
    ids = [question.id for question in plan.questions(conversations)]
    expected = pl.DataFrame({"question_id": ids}, schema={"question_id": pl.String})
    return set(Lake(plan.lake).table(POOLS, store.pool).missing(expected)["question_id"])


class Parts(NamedTuple):
    """Of so many pools with candidates, in how many BM25 and in how many entities added to some candidate's score."""

    pools: int
    bm25: int
    entities: int


def parts_of(plan: Plan, store: StorePlan) -> Parts | None:
    """How often each part of the hybrid score took part in the run's pools; None for a fusion without entities."""
    ids = [question.id for question in plan.questions()]
    rows = Lake(plan.lake).table(POOLS, store.pool).read(["lexical", "boost"], where=pl.col("question_id").is_in(ids))
    rows = rows.drop_nulls("boost").filter(pl.col("boost").list.len() > 0)
    if rows.is_empty():
        return None
    used = rows.select((pl.col(name).list.max() > 0).sum() for name in ("lexical", "boost"))
    return Parts(len(rows), *used.row(0))


def refuse_silent_parts(plan: Plan, store: StorePlan) -> None:
    """Raises `InputError` if a part of the hybrid score took part in none of `ENOUGH` pools or more."""
    parts, fusion = parts_of(plan, store), specs.make(FUSIONS, store.fusion, "pool.fusion")
    if parts is None or parts.pools < ENOUGH:
        return
    for name, used, wanted in (("BM25", parts.bm25, True), ("entities", parts.entities, bool(fusion.boost))):
        if wanted and not used:
            raise InputError(
                f"pool of store {store.name}: {name} in some of {parts.pools} pools expected, found in none; "
                f"the hybrid would be another than it says: set pool.fusion to mem0(boost=0) or to minmax"
            )


pool_task = shard("pool", build_pools)

"""The candidate pools of one conversation's questions, saved once for all readers."""

from typing import NamedTuple

import numpy as np
import polars as pl

from storage import vectors
from storage.errors import InputError
from storage.lake import Lake
from storage.schemas import POOLS
from tasks import specs
from tasks.encoders import ENCODERS
from tasks.index import embedded
from tasks.plan import Plan, StorePlan
from tasks.pool import FUSIONS, Haystack
from tasks.shard import shard

ENOUGH = 20
"""So many pools in which a part of the score never took part are no accident."""


def build_pools(plan: Plan, store: StorePlan, conversation_id: str) -> int:
    """Pools of the conversation's questions that have none; returns how many were made."""
    lake = Lake(plan.lake)
    table = lake.table(POOLS, store.pool)
    missing = missing_pools(plan, store, conversation_id)
    questions = {question.id: question for question in plan.questions(conversation_id) if question.id in missing}
    ids = list(questions)
    if not ids:
        return 0
    indexed = vectors.read(lake.vectors, store.index, conversation_id)
    texts = {record.id: record.text for record in plan.records(store, conversation_id)}
    fusion = specs.make(FUSIONS, store.fusion, "pool.fusion")
    embed = specs.make(ENCODERS, store.encoder, "encoder").encode
    haystack = Haystack([texts[id] for id in indexed.ids], indexed.vectors, fusion, embed)
    queries = embedded(plan, store, [questions[id].text for id in ids])
    rows = []
    for id, query in zip(ids, queries, strict=True):
        found = haystack.pool(questions[id].text, query, store.size)
        rows.append(
            {
                "question_id": id,
                "record_ids": np.asarray(indexed.ids, dtype=object)[found.rows],
                "native": found.native,
                "dense": found.dense,
                "lexical": found.lexical,
                "boost": found.boost,
            }
        )
    return table.append(rows)


def missing_pools(plan: Plan, store: StorePlan, conversation_id: str | None = None) -> set[str]:
    """The run's questions without a pool, of one conversation or of all."""
    ids = [question.id for question in plan.questions(conversation_id)]
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

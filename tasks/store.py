"""Conversations to the records of a store, as its writer makes them."""

import polars as pl

from storage.lake import Lake
from storage.records import Turn
from storage.rows import from_frame, to_rows
from storage.schemas import CONVERSATIONS, RECORDS
from tasks import specs
from tasks.encoders.minilm import count_tokens
from tasks.evidence import line
from tasks.plan import Plan, StorePlan
from tasks.shard import shard
from tasks.writers import WRITERS


def write_store(plan: Plan, store: StorePlan) -> int:
    """Write the records of every conversation that the store lacks; returns how many. Tokens are WordPieces."""
    lake = Lake(plan.lake)
    writer = specs.make(WRITERS, store.writer, "writer")
    written = lake.table(RECORDS, store.store).read(["conversation_id"])["conversation_id"].unique()
    turns = lake.table(CONVERSATIONS, plan.dataset).read(where=~pl.col("conversation_id").is_in(written.implode()))
    count = 0
    for (_,), frame in turns.sort("position").group_by("conversation_id", maintain_order=True):
        records = writer.write(from_frame(Turn, frame))
        tokens = count_tokens([line(record) for record in records])
        count += lake.table(RECORDS, store.store).append(to_rows(records, tokens=tokens))
    return count


store_task = shard("store", write_store)

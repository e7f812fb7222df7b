"""Conversations to the records of a store, as its writer makes them."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import polars as pl

from storage.errors import InputError
from storage.lake import Lake
from storage.records import Record, Turn
from storage.rows import from_frame, to_rows
from storage.schemas import CONVERSATIONS, EXTRACTIONS, OBSERVATIONS, RECORDS
from tasks import specs
from tasks.encoders import ENCODERS
from tasks.encoders.minilm import count_tokens
from tasks.evidence import line
from tasks.plan import Plan, StorePlan
from tasks.shard import shard
from tasks.writers import WRITERS
from tasks.writers.conversation import Case, Written


def write_store(plan: Plan, store: StorePlan) -> int:
    """Write the records of every conversation that the store lacks; returns how many. Tokens are WordPieces.

    A conversation is written when it is finished; what a model replied before that is in the ledger.
    Raises `InputError` where the store stays empty, and what the writer raises.
    """
    writer = specs.make(WRITERS, store.writer, "writer")
    todo = cases(plan, unwritten(plan, store))
    if hasattr(writer, "write_all"):
        encoder = specs.make(ENCODERS, store.encoder, "encoder")
        written = writer.write_all(todo, plan.asking, encoder.encode)
        made = sum(_keep(plan, store, one) for one in written)
    else:
        made = sum(_append(plan, store, writer.write(case.turns)) for case in todo)
    if not Lake(plan.lake).table(RECORDS, store.store).holds_any():
        raise InputError(f"store {store.name}: some records expected, its writer made none{_why(plan, store)}")
    return made


def unwritten(plan: Plan, store: StorePlan) -> list[str]:
    """The conversations that the store lacks, in the data's order.

    Where a model is asked for the records, only those that `data.conversations` names, if it names any.
    """
    lake = Lake(plan.lake)
    written = set(lake.table(RECORDS, store.store).read(["conversation_id"])["conversation_id"])
    written |= set(lake.table(EXTRACTIONS, store.store).read(["conversation_id"])["conversation_id"])
    every = lake.table(CONVERSATIONS, plan.dataset).read(["conversation_id"])["conversation_id"]
    wanted = store.conversations if asks(store) else ()
    return [id for id in every.unique(maintain_order=True) if id not in written and (not wanted or id in wanted)]


def asks(store: StorePlan) -> bool:
    """Whether a model is asked for the store's records."""
    return hasattr(specs.make(WRITERS, store.writer, "writer"), "model")


def cases(plan: Plan, conversations: Sequence[str]) -> list[Case]:
    """What a writer is handed of each conversation."""
    lake, among = Lake(plan.lake), pl.col("conversation_id").is_in(list(conversations))
    turns = _by_conversation(from_frame(Turn, _sorted(lake.table(CONVERSATIONS, plan.dataset).read(where=among))))
    kept = _by_conversation(from_frame(Record, _sorted(lake.table(OBSERVATIONS, plan.dataset).read(where=among))))
    return [Case(turns[id], kept.get(id, [])) for id in conversations]


def batches(plan: Plan, store: StorePlan) -> pl.DataFrame:
    """`status, batches, facts, repeated, unplaced`: what came of the batches that a model was asked about."""
    rows = Lake(plan.lake).table(EXTRACTIONS, store.store).read()
    sums = [pl.col(name).sum() for name in ("facts", "repeated", "unplaced")]
    return rows.group_by("status").agg(pl.len().alias("batches"), *sums).sort("status")


def _keep(plan: Plan, store: StorePlan, written: Written) -> int:
    """Records first: a conversation whose account is there is finished."""
    made = _append(plan, store, written.records)
    account = [{"conversation_id": written.conversation_id, **asdict(batch)} for batch in written.batches]
    Lake(plan.lake).table(EXTRACTIONS, store.store).append(account)
    return made


def _append(plan: Plan, store: StorePlan, records: Sequence[Record]) -> int:
    tokens = count_tokens([line(record) for record in records])
    return Lake(plan.lake).table(RECORDS, store.store).append(to_rows(records, tokens=tokens))


def _why(plan: Plan, store: StorePlan) -> str:
    counts = ", ".join(f"{row['batches']} batches {row['status']}" for row in batches(plan, store).to_dicts())
    return f" ({counts}); try another model, prompt or max_tokens" if counts else ""


def _sorted(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.sort("position")


def _by_conversation(rows: Sequence[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.conversation_id, []).append(row)
    return found


store_task = shard("store", write_store)

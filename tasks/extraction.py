"""Whole conversations to the records of a store, as its writer makes them."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any

import polars as pl

from storage import holdings
from storage.digests import digest
from storage.errors import InputError
from storage.lake import Lake
from storage.records import Record, Turn
from storage.rows import from_frame
from storage.schemas import CONVERSATIONS, EXTRACTIONS, HOLDINGS, OBSERVATIONS, RECORDS
from tasks import specs
from tasks.encoders import ENCODERS
from tasks.encoders.minilm import count_tokens
from tasks.plan import Plan, StorePlan
from tasks.writers import WRITERS
from tasks.writers.conversation import Case, Written


def write_conversations(plan: Plan, store: StorePlan) -> int:
    """Write the records of every conversation that the store lacks; returns how many. Tokens are WordPieces.

    A conversation is written when it is finished; what a model replied before that is in the ledger.
    Raises `InputError` where the store stays empty, and what the writer raises.
    """
    writer = specs.make(WRITERS, store.writer, "writer")
    encoder = specs.make(ENCODERS, store.encoder, "encoder")
    written = writer.write_all(cases(plan, unwritten(plan, store)), plan.asking, encoder.encode)
    made = sum(_keep(plan, store, one) for one in written)
    if not Lake(plan.lake).table(RECORDS, store.store).holds_any():
        raise InputError(f"store {store.name}: some records expected, its writer made none{_why(plan, store)}")
    return made


def unwritten(plan: Plan, store: StorePlan) -> list[str]:
    """The conversations that the store lacks, in the data's order.

    Where a model is asked for the records, only those that `data.conversations` names, if it names any.
    """
    lake = Lake(plan.lake)
    written = set(lake.table(HOLDINGS, store.store).read(["conversation_id"])["conversation_id"])
    written |= set(lake.table(EXTRACTIONS, store.store).read(["conversation_id"])["conversation_id"])
    every = lake.table(CONVERSATIONS, plan.dataset).read(["conversation_id"])["conversation_id"]
    wanted = store.conversations if asks(store) else ()
    return [id for id in every.unique(maintain_order=True) if id not in written and (not wanted or id in wanted)]


def is_whole(store: StorePlan) -> bool:
    """Whether the store's writer is handed whole conversations."""
    return hasattr(specs.make(WRITERS, store.writer, "writer"), "write_all")


def asks(store: StorePlan) -> bool:
    """Whether a model is asked for the store's records."""
    return hasattr(specs.make(WRITERS, store.writer, "writer"), "model")


def cases(plan: Plan, conversations: Sequence[str]) -> list[Case]:
    """What a writer is handed of each conversation."""
    lake, among = Lake(plan.lake), pl.col("conversation_id").is_in(list(conversations))
    turns = _by_conversation(from_frame(Turn, holdings.whole_turns(lake, plan.dataset, conversations)))
    observed = lake.table(OBSERVATIONS, plan.dataset).read(where=among).sort("position")
    kept = _by_conversation(from_frame(Record, observed))
    return [Case(turns[id], kept.get(id, [])) for id in conversations]


def batches(plan: Plan, store: StorePlan) -> pl.DataFrame:
    """`status, batches, facts, repeated, unplaced`: what came of the batches that a model was asked about."""
    rows = Lake(plan.lake).table(EXTRACTIONS, store.store).read()
    sums = [pl.col(name).sum() for name in ("facts", "repeated", "unplaced")]
    return rows.group_by("status").agg(pl.len().alias("batches"), *sums).sort("status")


def _keep(plan: Plan, store: StorePlan, written: Written) -> int:
    """Records first, then who holds them: a conversation whose account is there is finished."""
    lake = Lake(plan.lake)
    tokens = count_tokens([record.text for record in written.records])
    counted = list(zip(written.records, tokens, strict=True))
    sessions = [(name, list(rows)) for name, rows in groupby(counted, lambda row: row[0].session_id)]
    made = lake.table(RECORDS, store.store).append([row for _, rows in sessions for row in _rows(rows)])
    lake.table(HOLDINGS, store.store).append(_holdings(plan, written.conversation_id, sessions))
    account = [{"conversation_id": written.conversation_id, **asdict(batch)} for batch in written.batches]
    lake.table(EXTRACTIONS, store.store).append(account)
    return made


def _unit(record: Record) -> str:
    """A session is written once for each conversation that holds it, since its records depend on what was before."""
    return digest([record.conversation_id, record.session_id])


def _rows(rows: Sequence[tuple[Record, int]]) -> list[dict[str, Any]]:
    return [
        {
            "unit": _unit(record),
            "place": place,
            "name": record.id.rpartition("/")[2],
            "speaker": record.speaker,
            "text": record.text,
            "sources": [id.rpartition("/")[2] for id in record.source_turn_ids],
            "tokens": tokens,
        }
        for place, (record, tokens) in enumerate(rows)
    ]


def _holdings(
    plan: Plan, conversation_id: str, sessions: Sequence[tuple[str, Sequence[tuple[Record, int]]]]
) -> list[dict[str, Any]]:
    where = pl.col("conversation_id") == conversation_id
    places = dict(Lake(plan.lake).table(CONVERSATIONS, plan.dataset).read(["session_id", "place"], where=where).rows())
    return [
        {
            "conversation_id": conversation_id,
            "place": places[name],
            "unit": _unit(rows[0][0]),
            "session_id": name,
            "prefix": rows[0][0].id.rpartition("/")[0],
            "position": rows[0][0].position,
            "records": len(rows),
            "said_at": rows[0][0].said_at,
        }
        for name, rows in sessions
    ]


def _why(plan: Plan, store: StorePlan) -> str:
    counts = ", ".join(f"{row['batches']} batches {row['status']}" for row in batches(plan, store).to_dicts())
    return f" ({counts}); try another model, prompt or max_tokens" if counts else ""


def _by_conversation(rows: Sequence[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows:
        found.setdefault(row.conversation_id, []).append(row)
    return found

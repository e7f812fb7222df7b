"""Conversations to the records of a store, as its writer makes them."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import polars as pl

from storage.digests import digest
from storage.lake import Lake
from storage.records import Turn
from storage.schemas import CONVERSATIONS, HOLDINGS, RECORDS, SESSIONS
from tasks import specs
from tasks.encoders.minilm import count_tokens
from tasks.extraction import is_whole, write_conversations
from tasks.plan import Plan, StorePlan
from tasks.shard import shard
from tasks.writers import WRITERS


def write_store(plan: Plan, store: StorePlan) -> int:
    """Write the records of every session, and which of them each conversation holds; returns how many are new.

    A session is written and its tokens (WordPieces) are counted once, however many conversations hold it; a writer
    that puts the date into the text sees it once for each of its dates. Works through one part of the sessions at a
    time; a killed run goes on where it was.
    """
    if is_whole(store):
        return write_conversations(plan, store)
    lake = Lake(plan.lake)
    if lake.table(HOLDINGS, store.store).holds_any():
        return 0
    writer = specs.make(WRITERS, store.writer, "writer")
    conversations = lake.table(CONVERSATIONS, plan.dataset).read().sort("conversation_id", "place")
    dates = conversations["said_at"].to_list() if writer.dated else [None] * len(conversations)
    units = [unit(session, date) for session, date in zip(conversations["session"], dates, strict=True)]
    seen: dict[str, dict[str, datetime | None]] = {}
    for session, name, date in zip(conversations["session"], units, dates, strict=True):
        seen.setdefault(session, {})[name] = date
    table = lake.table(RECORDS, store.store)
    written = set(table.keys())
    made = 0
    for _, part in lake.table(SESSIONS, plan.dataset).by_part():
        rows = [row for name, turns in _wanted(part, seen) if name not in written for row in _rows(writer, name, turns)]
        for row, tokens in zip(rows, count_tokens([row["text"] for row in rows]), strict=True):
            row["tokens"] = tokens
        made += table.append(rows)
    lake.table(HOLDINGS, store.store).append(_holdings(conversations, units, table.keys()).to_arrow())
    return made


def unit(session: str, said_at: datetime | None) -> str:
    """The address of what a writer sees: the session's content, with its date where the writer looks at it."""
    return session if said_at is None else digest([session, said_at.isoformat()])


def _wanted(part: pl.DataFrame, seen: dict[str, dict[str, datetime | None]]) -> Iterator[tuple[str, list[Turn]]]:
    """Each unit of a part's sessions with its turns, whose ids are their names."""
    for (session,), frame in part.group_by("session", maintain_order=True):
        for name, said_at in seen[str(session)].items():
            yield (
                name,
                [
                    Turn(
                        id=row["name"],
                        conversation_id="",
                        session_id=str(session),
                        position=row["place"],
                        speaker=row["speaker"],
                        text=row["text"],
                        caption=row["caption"],
                        said_at=said_at,
                    )
                    for row in frame.iter_rows(named=True)
                ],
            )


def _rows(writer: Any, name: str, turns: list[Turn]) -> Iterator[dict[str, Any]]:
    for place, record in enumerate(writer.write(turns)):
        yield {
            "unit": name,
            "place": place,
            "name": record.id,
            "speaker": record.speaker,
            "text": record.text,
            "sources": record.source_turn_ids,
        }


def _holdings(conversations: pl.DataFrame, units: list[str], written: dict[str, Any]) -> pl.DataFrame:
    """The store's rows of conversations; a session of which the writer made nothing is left out."""
    sizes = [written[name][2] if name in written else 0 for name in units]
    held = conversations.with_columns(
        unit=pl.Series(units, dtype=pl.String), records=pl.Series(sizes, dtype=pl.Int32)
    ).filter(pl.col("records") > 0)
    before = pl.col("records").cum_sum().over("conversation_id") - pl.col("records")
    return held.with_columns(position=before.cast(pl.Int32)).select(HOLDINGS.schema.names)


store_task = shard("store", write_store)

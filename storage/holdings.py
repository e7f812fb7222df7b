"""Which turns and records a conversation holds: those of its sessions, under its own ids and dates."""

from collections.abc import Collection, Iterator

import numpy as np
import polars as pl

from storage.lake import Lake
from storage.schemas import CONVERSATIONS, HOLDINGS, IMPORTED, RECORDS, SESSIONS, TableSpec


def holdings(lake: Lake, store: str, conversation_ids: Collection[str] | None = None) -> pl.DataFrame:
    """The rows of the holdings table of these conversations, or of all, sessions in time order."""
    return _held(lake, HOLDINGS, store, conversation_ids)


def records(lake: Lake, store: str, conversation_ids: Collection[str] | None = None) -> pl.DataFrame:
    """The records that these conversations hold, or that all do, each conversation's in time order.

    `id, conversation_id, session_id, position, speaker, said_at, text, source_turn_ids`, with `tokens` of the text
    and the `unit` by which the record is shared: one that two conversations hold is read once and has two ids.
    """
    held = holdings(lake, store, conversation_ids)
    rows = lake.table(RECORDS, store).lookup(held["unit"].to_list())
    owner, position = _spread(held, "records")
    return (
        owner.drop("unit", "place", "records")
        .hstack(rows)
        .select(
            "conversation_id",
            "session_id",
            "speaker",
            "said_at",
            "text",
            "tokens",
            "unit",
            position,
            id=_id(),
            source_turn_ids=_prefixed(owner["prefix"], rows["sources"]),
        )
    )


def imported(lake: Lake, store: str, conversation_ids: Collection[str] | None = None) -> pl.DataFrame:
    """The records of these conversations, or of all, that another system made, in its conversation's time order.

    The columns of `records` without `unit`, with `source_session_ids`.
    """
    chosen = None if conversation_ids is None else pl.col("conversation_id").is_in(list(conversation_ids))
    return lake.table(IMPORTED, store).read(where=chosen).sort("conversation_id", "position")


def turns(lake: Lake, dataset: str, conversation_ids: Collection[str] | None = None) -> pl.DataFrame:
    """The turns that these conversations hold, or that all do: `id, conversation_id, session_id, speaker`."""
    held = _held(lake, CONVERSATIONS, dataset, conversation_ids)
    rows = lake.table(SESSIONS, dataset).lookup(held["session"].to_list())
    owner, _ = _spread(held, "turns")
    spread = owner.drop("session", "place").hstack(rows)
    return spread.select("conversation_id", "session_id", "speaker", id=_id())


def whole_turns(lake: Lake, dataset: str, conversation_ids: Collection[str]) -> pl.DataFrame:
    """The columns of `Turn` of the turns of these conversations, each conversation's in time order."""
    held = _held(lake, CONVERSATIONS, dataset, conversation_ids)
    rows = lake.table(SESSIONS, dataset).lookup(held["session"].to_list())
    owner, position = _spread(held, "turns")
    spread = owner.drop("session", "place", "position").hstack(rows)
    columns = ["conversation_id", "session_id", "speaker", "text", "caption", "said_at"]
    return spread.select(*columns, position, id=_id())


def said(lake: Lake, dataset: str) -> Iterator[tuple[str, str, str]]:
    """The conversation id, the speaker and the text of every turn, one conversation in memory at a time."""
    ids = lake.table(CONVERSATIONS, dataset).read(["conversation_id"])["conversation_id"].unique().sort()
    for name in ids:
        yield from whole_turns(lake, dataset, [name]).select("conversation_id", "speaker", "text").iter_rows()


def _held(lake: Lake, spec: TableSpec, address: str, conversation_ids: Collection[str] | None) -> pl.DataFrame:
    chosen = None if conversation_ids is None else pl.col("conversation_id").is_in(list(conversation_ids))
    return lake.table(spec, address).read(where=chosen).sort("conversation_id", "place")


def _spread(held: pl.DataFrame, size: str) -> tuple[pl.DataFrame, pl.Series]:
    """Each row once for each thing that its session holds, and the places of these in their conversation."""
    sizes = held[size].to_numpy()
    offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    owner = held[np.repeat(np.arange(len(held)), sizes)]
    return owner, (owner["position"] + pl.Series(offsets.astype(np.int32))).alias("position")


def _id() -> pl.Expr:
    return pl.col("prefix") + "/" + pl.col("name")


def _prefixed(prefix: pl.Series, names: pl.Series) -> pl.Series:
    """The ids of each row's names; a row of no names has none."""
    single = pl.DataFrame({"row": pl.int_range(len(names), eager=True), "prefix": prefix, "name": names})
    ids = single.explode("name").select("row", id=pl.col("prefix") + "/" + pl.col("name"))
    return ids.group_by("row", maintain_order=True).agg(pl.col("id").drop_nulls())["id"]

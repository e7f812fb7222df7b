"""Records to vectors and a searchable index; what is shared is embedded once."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from storage import holdings, vectors
from storage.digests import digest
from storage.lake import Lake
from storage.schemas import EMBEDDINGS, IMPORTED, INDEXES, RECORDS
from storage.tables import KeyedTable
from tasks import specs
from tasks.encoders import ENCODERS, Encoder
from tasks.plan import Plan, StorePlan
from tasks.shard import shard

CHUNK = 512
Chunk = tuple[str, int]
"""A part of the records by its name, or the questions by none, and the first of the texts in it."""


def chunks_to_embed(plan: Plan, store: StorePlan) -> list[Chunk]:
    """The chunks of the run's texts in which one has no kept vector yet; none where vectors are not kept."""
    if not _encoder(store).kept:
        return []
    known = _kept(plan, store).keys()
    names = ("", *(name for name, _ in _parts(plan, store)))
    return [
        (name, start)
        for name in names
        for start, texts in _chunks(_texts(plan, store, name))
        if any(text_address(text) not in known for text in texts)
    ]


def embed_chunk(plan: Plan, store: StorePlan, chunk: Chunk) -> int:
    """Embed what one chunk lacks; returns how many texts."""
    name, start = chunk
    known = _kept(plan, store).keys()
    chosen = _texts(plan, store, name)[start : start + CHUNK]
    missing = {address: text for text in chosen if (address := text_address(text)) not in known}
    made = _encoder(store).encode(list(missing.values()))
    return _kept(plan, store).append(
        [{"text": address, "vector": vector} for address, vector in zip(missing, made, strict=True)]
    )


def build_index(plan: Plan, store: StorePlan) -> int:
    """Write the store's records with their vectors to LanceDB unless that is done; returns the rows written.

    Works through one part of the records at a time. Of two runs that build it at once the first to end counts. Nothing
    is searched where another system made the pools: they need no index.
    """
    lake = Lake(plan.lake)
    done = lake.table(INDEXES, store.index)
    if done.holds_any() or store.pools:
        return 0
    width = embedded(plan, store, [plan.questions()[0].text]).shape[1]
    tag = vectors.new_tag()
    rows = vectors.build(lake.vectors, store.index, _with_vectors(plan, store), width, tag)
    if done.holds_any():
        vectors.drop(lake.vectors, store.index, tag)
        return 0
    done.append([{"index": store.index, "rows": rows, "tag": tag}])
    return rows


def vectors_kept(plan: Plan, store: StorePlan) -> tuple[int, int]:
    """How many of the run's distinct texts have a kept vector, and how many there are; none where none are kept."""
    if not _encoder(store).kept:
        return 0, 0
    names = ("", *(name for name, _ in _parts(plan, store)))
    addresses = {text_address(text) for name in names for text in _texts(plan, store, name)}
    return len(addresses & _kept(plan, store).keys().keys()), len(addresses)


def embedded(plan: Plan, store: StorePlan, texts: Sequence[str]) -> NDArray[np.float32]:
    """(n, d) float32: the vectors of `texts`. Raises `KeyError` for a text whose vector is kept but not made yet."""
    encoder = _encoder(store)
    if not encoder.kept:
        return encoder.encode(list(texts))
    rows = _kept(plan, store).lookup([text_address(text) for text in texts])
    width = len(rows["vector"][0]) if len(rows) else 0
    return np.ascontiguousarray(rows["vector"].explode().to_numpy().reshape(len(rows), width), np.float32)


def haystack(plan: Plan, store: StorePlan, records: pl.DataFrame) -> NDArray[np.float32]:
    """(n, d) float32: the vectors of one conversation's record frame, row by row. There must be a row."""
    if store.pools:
        return embedded(plan, store, records["text"].to_list())
    units = records.unique("session_id", keep="first", maintain_order=True)["unit"].to_list()
    lake = Lake(plan.lake)
    tag = lake.table(INDEXES, store.index).lookup([store.index])["tag"][0]
    return vectors.read(lake.vectors, store.index, units, tag)


def _with_vectors(plan: Plan, store: StorePlan) -> Iterator[tuple[pa.Table, NDArray[np.float32]]]:
    for _, part in _parts(plan, store):
        yield pa.table(part.select("unit", "place", "text").to_arrow()), embedded(plan, store, part["text"].to_list())


def _texts(plan: Plan, store: StorePlan, name: str) -> list[str]:
    """The distinct texts of one part of the records, or of the run's questions."""
    if not name:
        return list(dict.fromkeys(question.text for question in plan.questions()))
    return list(dict.fromkeys(text for _, part in _parts(plan, store, name) for text in part["text"]))


def _chunks(texts: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Where each chunk starts, and its texts."""
    return ((start, texts[start : start + CHUNK]) for start in range(0, len(texts), CHUNK))


def _parts(plan: Plan, store: StorePlan, *names: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """The records that the index holds, part by part, with the part's name."""
    lake = Lake(plan.lake)
    parts = lake.table(IMPORTED if store.pools else RECORDS, store.store).by_part(*names)
    if not store.conversations:
        return parts
    if store.pools:
        return ((name, part.filter(pl.col("conversation_id").is_in(store.conversations))) for name, part in parts)
    units = holdings.holdings(lake, store.store, store.conversations)["unit"].unique()
    chosen = ((name, part.filter(pl.col("unit").is_in(units.implode()))) for name, part in parts)
    return ((name, part) for name, part in chosen if len(part))


def _encoder(store: StorePlan) -> Encoder:
    encoder: Encoder = specs.make(ENCODERS, store.encoder, "encoder")
    return encoder


def _kept(plan: Plan, store: StorePlan) -> KeyedTable:
    return Lake(plan.lake).table(EMBEDDINGS, store.encoding)


def text_address(text: str) -> str:
    """The key of a text's vector."""
    return digest(text)


embed_task = shard("embed", embed_chunk)
index_task = shard("index", build_index)

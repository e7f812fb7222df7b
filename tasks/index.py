"""Records to vectors and a searchable index; every text is embedded once."""

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from storage import vectors
from storage.digests import digest
from storage.lake import Lake
from storage.schemas import EMBEDDINGS, IMPORTED, INDEXES, RECORDS
from tasks import specs
from tasks.encoders import ENCODERS
from tasks.plan import Plan, StorePlan
from tasks.shard import shard

CHUNK = 256


def texts_to_embed(plan: Plan, store: StorePlan) -> list[str]:
    """Every distinct text of the indexed records and the run's questions, shortest first."""
    texts = {question.text for question in plan.questions()}
    texts |= set(_indexed(plan, store, ["text"])["text"])
    return sorted(texts, key=lambda text: (len(text), text))


def chunks_to_embed(plan: Plan, store: StorePlan) -> list[int]:
    """The chunks of `texts_to_embed` in which a text has no vector yet."""
    addresses = [text_address(text) for text in texts_to_embed(plan, store)]
    missing = set(missing_vectors(plan, store, addresses))
    return sorted({i // CHUNK for i, address in enumerate(addresses) if address in missing})


def embed_chunk(plan: Plan, store: StorePlan, chunk: int) -> int:
    """Embed what one chunk lacks; returns how many texts."""
    texts = {text_address(text): text for text in texts_to_embed(plan, store)[chunk * CHUNK : (chunk + 1) * CHUNK]}
    missing = missing_vectors(plan, store, list(texts))
    if not missing:
        return 0
    encoder = specs.make(ENCODERS, store.encoder, "encoder")
    made = encoder.encode([texts[address] for address in missing])
    rows = [{"text": address, "vector": vector} for address, vector in zip(missing, made, strict=True)]
    return Lake(plan.lake).table(EMBEDDINGS, store.encoding).append(rows)


def build_index(plan: Plan, store: StorePlan) -> int:
    """Write the store's records with their vectors to LanceDB unless that is done; returns the rows written.

    Nothing is searched where another system made the pools: they need no index.
    """
    lake = Lake(plan.lake)
    done = lake.table(INDEXES, store.index)
    if done.holds_any() or store.pools:
        return 0
    columns = ["id", "conversation_id", "session_id", "position", "text"]
    records = _indexed(plan, store, columns).sort("conversation_id", "position")
    made = embedded(plan, store, records["text"].to_list())
    vectors.build(lake.vectors, store.index, pa.table(records.to_arrow()), made)
    done.append([{"index": store.index, "rows": len(records), "tag": vectors.TAG}])
    return len(records)


def embedded(plan: Plan, store: StorePlan, texts: list[str]) -> NDArray[np.float32]:
    """(n, d) float32: the cached vectors of `texts`. Raises `KeyError` for a text that has none."""
    addresses = [text_address(text) for text in texts]
    rows = Lake(plan.lake).table(EMBEDDINGS, store.encoding).read(where=pl.col("text").is_in(list(set(addresses))))
    place = {address: row for row, address in enumerate(rows["text"])}
    width = len(rows["vector"][0]) if len(rows) else 0
    matrix = rows["vector"].explode().to_numpy().reshape(len(rows), width)
    return np.ascontiguousarray(matrix[[place[address] for address in addresses]], np.float32)


def haystack(plan: Plan, store: StorePlan, records: pl.DataFrame) -> NDArray[np.float32]:
    """(n, d) float32: the vectors of one conversation's record frame, row by row. There must be a row."""
    if store.pools:
        return embedded(plan, store, records["text"].to_list())
    return vectors.read(Lake(plan.lake).vectors, store.index, records["conversation_id"][0]).vectors


def _indexed(plan: Plan, store: StorePlan, columns: list[str]) -> pl.DataFrame:
    """The records that the index holds."""
    chosen = pl.col("conversation_id").is_in(store.conversations) if store.conversations else None
    table = IMPORTED if store.pools else RECORDS
    return Lake(plan.lake).table(table, store.store).read(columns, where=chosen)


def text_address(text: str) -> str:
    """The key of a text's vector."""
    return digest(text)


def missing_vectors(plan: Plan, store: StorePlan, addresses: list[str]) -> list[str]:
    """Those of `addresses` (of texts) whose vector is not cached."""
    table = Lake(plan.lake).table(EMBEDDINGS, store.encoding)
    return table.missing(pl.DataFrame({"text": addresses}, schema={"text": pl.String}))["text"].to_list()


embed_task = shard("embed", embed_chunk)
index_task = shard("index", build_index)

"""The pinned store of records with vectors and full text, in LanceDB."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storage.places import is_remote, object_store_options

TAG = "built"


@dataclass(frozen=True)
class IndexedRecords:
    """One conversation's rows: `ids` in time order and their `vectors`, (n, d) float32."""

    ids: tuple[str, ...]
    vectors: NDArray[np.float32]


def build(folder: Path, index: str, records: pa.Table, vectors: NDArray[np.float32]) -> int:
    """Write records (`id, conversation_id, session_id, position, text`) with vectors; returns the version.

    Builds a bitmap on the conversation and a full-text index, then tags the version: a build that was
    killed has no tag, and is written over by the next one. Raises `ValueError` if the lengths differ.
    """
    from lancedb.index import FTS, Bitmap

    if len(vectors) != records.num_rows:
        raise ValueError(f"vectors ({len(vectors)}) must match records ({records.num_rows})")
    width = vectors.shape[1]
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1), pa.float32()), width)
    table = _connect(folder).create_table(_name(index), records.append_column("vector", column), mode="overwrite")
    table.create_index("conversation_id", config=Bitmap())
    table.create_index("text", config=FTS(with_position=False))
    tags = table.tags
    if TAG in tags.list():
        tags.delete(TAG)
    tags.create(TAG, table.version)
    return int(table.version)


def read(folder: Path, index: str, conversation_id: str) -> IndexedRecords:
    """One conversation's rows at the tagged version, in time order."""
    table = _connect(folder).open_table(_name(index))
    table.checkout(TAG)
    quoted = conversation_id.replace("'", "''")
    query = table.search().where(f"conversation_id = '{quoted}'").select(["id", "position", "vector"])
    rows = query.to_arrow().sort_by("position")
    vectors = rows["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return IndexedRecords(
        ids=tuple(rows["id"].to_pylist()),
        vectors=np.ascontiguousarray(vectors.reshape(rows.num_rows, -1) if rows.num_rows else vectors.reshape(0, 0)),
    )


def _connect(folder: Path) -> Any:
    import lancedb  # takes seconds to import, and a run with nothing to do needs none of it

    return lancedb.connect(str(folder), storage_options=object_store_options() if is_remote(folder) else None)


def opens(folder: Path, index: str) -> bool:
    """Whether a finished index is there and can be opened at its tag."""
    try:
        _connect(folder).open_table(_name(index)).checkout(TAG)
    except (ValueError, OSError, RuntimeError):
        return False
    return True


def folder_name(index: str) -> str:
    """The folder in which LanceDB keeps an index."""
    return f"{_name(index)}.lance"


def _name(index: str) -> str:
    return f"index-{index[:16]}"

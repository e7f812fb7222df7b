"""The pinned store of records with their vectors, in LanceDB."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storage.places import is_remote, object_store_options

TAG = "built"


def build(folder: Path, index: str, parts: Iterable[tuple[pa.Table, NDArray[np.float32]]], width: int) -> int:
    """Write records (`unit, place, text`) with their vectors of `width`, part after part; returns how many.

    One row for each record of each unit, however many conversations hold it. Builds a B-tree on the unit, then tags
    the version: a build that was killed has no tag, and the next one begins anew. Memory holds a part.
    Raises `ValueError` if the lengths of a part differ.
    """
    from lancedb.index import BTree

    schema = pa.schema(
        [("unit", pa.string()), ("place", pa.int32()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), width))]
    )
    database = _connect(folder)
    database.drop_table(_name(index), ignore_missing=True)
    table = database.create_table(_name(index), pa.RecordBatchReader.from_batches(schema, _batches(schema, parts)))
    table.create_index("unit", config=BTree())
    table.tags.create(TAG, table.version)
    return int(table.count_rows())


def read(folder: Path, index: str, units: Sequence[str]) -> NDArray[np.float32]:
    """(n, d) float32: the vectors of the units' records at the tagged version, in the order of `units` and places.

    A unit that is named twice has its rows twice. This is a look-up by key, so a search of these rows is exact.
    """
    table = _connect(folder).open_table(_name(index))
    table.checkout(TAG)
    wanted = list(dict.fromkeys(units))
    quoted = ", ".join("'" + name.replace("'", "''") + "'" for name in wanted)
    query = table.search().where(f"unit IN ({quoted})").select(["unit", "place", "vector"])
    rows = query.to_arrow()
    vectors = rows["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    vectors = vectors.reshape(rows.num_rows, -1) if rows.num_rows else vectors.reshape(0, 0)
    number = {name: place for place, name in enumerate(wanted)}
    owners = np.array([number[name] for name in rows["unit"].to_pylist()], np.int64)
    order = np.lexsort((rows["place"].to_numpy(), owners))
    ends = np.searchsorted(owners[order], np.arange(len(wanted) + 1))
    held = [order[ends[number[name]] : ends[number[name] + 1]] for name in units]
    return np.ascontiguousarray(vectors[np.concatenate(held)] if held else vectors)


def _batches(schema: pa.Schema, parts: Iterable[tuple[pa.Table, NDArray[np.float32]]]) -> Iterator[pa.RecordBatch]:
    for records, vectors in parts:
        if len(vectors) != records.num_rows:
            raise ValueError(f"vectors ({len(vectors)}) must match records ({records.num_rows})")
        flat = pa.array(np.ascontiguousarray(vectors).reshape(-1), pa.float32())
        column = pa.FixedSizeListArray.from_arrays(flat, vectors.shape[1])
        yield from records.append_column("vector", column).cast(schema).combine_chunks().to_batches()


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

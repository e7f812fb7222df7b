"""The pinned store of records with their vectors, in LanceDB."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from storage.digests import short
from storage.errors import InputError, unwritable
from storage.places import is_remote, object_store_options
from storage.schemas import INDEXES

TAG = "built"
Parts = Iterable[tuple[pa.Table, NDArray[np.float32]]]


def new_tag() -> str:
    """A tag of one build alone: two runs may build one index at once, and each reads one that was finished."""
    return f"{TAG}-{uuid4().hex[:8]}"


def build(folder: Path, index: str, parts: Parts, width: int, tag: str = TAG) -> int:
    """Write records (`unit, place, text`) with their vectors of `width`, part after part; returns how many.

    One row for each record of each unit, however many conversations hold it. Builds a B-tree on the unit, then tags
    the version: a build that was killed has no tag, and is never read. Memory holds a part. Raises what `parts` does,
    `ValueError` if the lengths of a part differ, and `InputError` where the disk is full or may not be written.
    """
    schema = pa.schema(
        [("unit", pa.string()), ("place", pa.int32()), ("text", pa.string()), ("vector", pa.list_(pa.float32(), width))]
    )
    failed: list[Exception] = []
    try:
        return _build(folder, _name(index, tag), schema, _heard(_batches(schema, parts), failed), tag)
    except (OSError, RuntimeError) as error:
        raise (failed or [_unwritten(folder, error)])[0] from error


def _build(folder: Path, name: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch], tag: str) -> int:
    from lancedb.index import BTree

    database = _connect(folder)
    database.drop_table(name, ignore_missing=True)
    table = database.create_table(name, pa.RecordBatchReader.from_batches(schema, batches))
    table.create_index("unit", config=BTree())
    table.tags.create(tag, table.version)
    return int(table.count_rows())


def _heard(batches: Iterator[pa.RecordBatch], failed: list[Exception]) -> Iterator[pa.RecordBatch]:
    """The batches; what they raise is kept, since LanceDB tells of it in its own words."""
    try:
        yield from batches
    except Exception as error:
        failed.append(error)
        raise


def _unwritten(folder: Path, error: Exception) -> Exception:
    """What to tell of a build that failed. LanceDB does not see that a disk cut a file off until it reads it again."""
    if told := unwritable(folder, error):
        return told
    if is_remote(folder) or "LanceError(IO)" not in str(error):
        return error
    return InputError(
        f"{folder}: an index written whole expected, {_cause(error)} found; see that the disk has room, and takes "
        "files of that size, and run again"
    )


def drop(folder: Path, index: str, tag: str) -> None:
    """Delete one build."""
    _connect(folder).drop_table(_name(index, tag), ignore_missing=True)


def read(folder: Path, index: str, units: Sequence[str], tag: str = TAG) -> NDArray[np.float32]:
    """(n, d) float32: the vectors of the units' records at the tagged version, in the order of `units` and places.

    A unit that is named twice has its rows twice. This is a look-up by key, so a search of these rows is exact.
    Raises `InputError` for an index that is lost or cannot be read.
    """
    wanted = list(dict.fromkeys(units))
    quoted = ", ".join("'" + name.replace("'", "''") + "'" for name in wanted)
    try:
        table = _connect(folder).open_table(_name(index, tag))
        table.checkout(tag)
        rows = table.search().where(f"unit IN ({quoted})").select(["unit", "place", "vector"]).to_arrow()
    except (ValueError, OSError, RuntimeError) as error:
        raise InputError(
            f"{folder / folder_name(index, tag)}: a readable index expected, {_cause(error)} found; "
            f"delete {folder.parent / INDEXES.name / short(index)} and run again"
        ) from error
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


def opens(folder: Path, index: str, tag: str = TAG) -> bool:
    """Whether a finished index is there and can be opened at its tag."""
    with suppress(ValueError, OSError, RuntimeError):
        _connect(folder).open_table(_name(index, tag)).checkout(tag)
        return True
    return False


def folder_name(index: str, tag: str = TAG) -> str:
    """The folder in which LanceDB keeps a build of an index."""
    return f"{_name(index, tag)}.lance"


def _name(index: str, tag: str) -> str:
    return f"index-{index[:16]}{tag.removeprefix(TAG)}"


def _cause(error: Exception) -> str:
    """LanceDB's own words in one line, without the places in its source."""
    return re.sub(r"^lance error: (LanceError\(IO\): )?|, /\S+\.rs:\d+:\d+", "", str(error).splitlines()[0])

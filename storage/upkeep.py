"""Is everything in a lake whole, and what did killed writers leave behind?"""

import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from storage import vectors
from storage.lake import Lake
from storage.places import is_remote, read_whole, remove
from storage.schemas import INDEXES, TABLES, TableSpec
from storage.tables import KeyedTable, table_of


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong in a lake: where, what, and what to do."""

    path: str
    problem: str
    remedy: str


@dataclass(frozen=True)
class Checked:
    """How many part files, rows and indexes were looked at, and what was found wrong."""

    parts: int
    rows: int
    indexes: int
    findings: tuple[Finding, ...]


_AGAIN = "delete this file and run again"


def verify(lake: Lake) -> Checked:
    """Read every part file of every table: its name against its content, its columns, its keys; and every index."""
    parts, rows, findings = 0, 0, []
    for table in _tables(lake):
        for part in table.parts():
            try:
                count, problem = _part(part, table.spec)
            except FileNotFoundError:  # a run hands it over (`Lake.hand_over`)
                continue
            parts, rows = parts + 1, rows + count
            findings += [Finding(str(part), problem, _AGAIN)] if problem else []
    built = _built(lake)
    findings += [
        Finding(
            str(lake.vectors / vectors.folder_name(index, tag)),
            "an index that opens expected, none found",
            f"delete {lake.table(INDEXES, index).folder} and run again",
        )
        for index, tag in built
        if not vectors.opens(lake.vectors, index, tag)
    ]
    findings += [
        Finding(str(path), "unfinished: being written, or left by a killed writer", "`suffice lake clean`")
        for path in leftovers(lake)
    ]
    return Checked(parts, rows, len(built), tuple(findings))


def clean(lake: Lake, older: float) -> list[Path]:
    """Delete what killed writers left, if it is `older` than this many seconds; returns what was deleted.

    A file that a running process is still writing is younger than its own write takes; an index is as young as the
    youngest file in it.
    """
    removed = [path for path in leftovers(lake) if time.time() - _written(path) >= older]
    for path in removed:
        remove(path)
    return removed


def leftovers(lake: Lake) -> list[Path]:
    """Temporary files whose writer never renamed them, and indexes that were never finished.

    An object store shows no unfinished object, so there only indexes are looked for.
    """
    walked = () if is_remote(lake.root) else os.walk(lake.root)
    temporary = [Path(folder) / name for folder, _, names in walked for name in names if name.startswith(".part-")]
    indexes = sorted(lake.vectors.glob("index-*")) if lake.vectors.exists() else []
    finished = {vectors.folder_name(index, tag) for index, tag in _built(lake)}  # after: one may end meanwhile
    return sorted(temporary) + [path for path in indexes if path.name not in finished]


def _written(path: Path) -> float:
    """When the youngest file of it was written; of what is in motion at this moment, now."""
    try:
        return max(each.stat().st_mtime for each in (path, *path.rglob("*")))
    except FileNotFoundError:
        return time.time()


def _tables(lake: Lake) -> Iterator[KeyedTable]:
    for spec in TABLES.values():
        folder = lake.root / spec.name
        for scope in sorted(folder.iterdir()) if folder.exists() else ():
            yield KeyedTable(scope, spec)


def _built(lake: Lake) -> list[tuple[str, str]]:
    """The indexes that the lake says are finished, each with the tag of its build."""
    folder = lake.root / INDEXES.name
    tables = [KeyedTable(scope, INDEXES) for scope in (sorted(folder.iterdir()) if folder.exists() else ())]
    return [built for table in tables for part in table.parts() for built in _indexes(part)]


def _indexes(part: Path) -> list[tuple[str, str]]:
    try:
        data = read_whole(part)
    except FileNotFoundError:
        return []
    if _damage(part, data):
        return []  # the check of the part says so
    return [(row["index"], row["tag"]) for row in table_of(data).to_pylist()]


def _damage(part: Path, data: bytes) -> str | None:
    """How a part's content differs from what its name says."""
    named = part.name.removeprefix("part-").removesuffix(".parquet")
    found = hashlib.sha256(data).hexdigest()[: len(named)]
    return None if found == named else f"content with the digest {named} expected, {found} found"


def _part(part: Path, spec: TableSpec) -> tuple[int, str | None]:
    """How many rows a part holds, and what is wrong with it."""
    data = read_whole(part)
    if problem := _damage(part, data):
        return 0, problem
    try:
        table = table_of(data)
    except (pa.ArrowException, OSError) as error:
        return 0, f"a readable Parquet part expected, {str(error).splitlines()[0]} found"
    if not table.schema.equals(spec.schema):
        return table.num_rows, f"the columns of {spec.name} expected, {', '.join(table.schema.names)} found"
    keys = table.select(list(spec.key))
    if any(pc.any(pc.is_null(column)).as_py() for column in keys.columns):
        return table.num_rows, "a key in every row expected, one without found"
    distinct = keys.group_by(list(spec.key)).aggregate([]).num_rows
    if distinct < table.num_rows:
        return table.num_rows, f"{table.num_rows} different keys expected, {distinct} found"
    return table.num_rows, None

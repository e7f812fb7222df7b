"""Parquet tables whose rows have keys and whose part files are written whole or not at all."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from storage.errors import InputError
from storage.places import is_remote, read_whole, write_whole
from storage.schemas import TableSpec

_KEYS: dict[Path, tuple[frozenset[Path], dict[str, tuple[Path, int, int]]]] = {}
_REMEMBERED_PARTS = 384


@lru_cache(maxsize=_REMEMBERED_PARTS)
def _frame(part: Path) -> pl.DataFrame:
    """A part's rows. Parts are never changed, so the last ones that were read are remembered."""
    return pl.read_parquet(str(part), glob=False)


class CorruptPart(InputError):
    """A part file that cannot be read; `path` names it."""

    def __init__(self, path: Path, cause: str) -> None:
        self.path = path
        super().__init__(f"{path}: a readable Parquet part expected, {cause} found; delete this file and run again")


class KeyedTable:
    """An append-only set of content-named Parquet parts in one folder.

    Appending the same rows twice gives the same file. Rows with equal keys are one row: the one whose
    part file comes first by name, so that readers agree whatever the order of writing.
    """

    def __init__(self, folder: Path, spec: TableSpec) -> None:
        self.folder = folder
        self.spec = spec

    def append(self, rows: Sequence[Mapping[str, Any]] | pa.Table) -> int:
        """Write rows as one part; returns their number. Nothing is written for no rows."""
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), schema=self.spec.schema)
        if table.num_rows:
            data = _parquet_bytes(table.cast(self.spec.schema))
            name = f"part-{hashlib.sha256(data).hexdigest()[:32]}.parquet"
            write_whole(self.folder / name, data)
        return int(table.num_rows)

    def read(
        self,
        columns: Iterable[str] | None = None,
        *,
        where: pl.Expr | None = None,
        distinct: bool = True,
        parts: Sequence[Path] | None = None,
    ) -> pl.DataFrame:
        """Rows as a frame, duplicates resolved; an empty frame of the right types where nothing is written.

        `where` filters on key columns or others alike; `parts` reads some of `self.parts()` alone. Raises
        `CorruptPart` for an unreadable part.
        """
        wanted = list(columns) if columns is not None else self.spec.schema.names
        parts = self.parts() if parts is None else parts
        if not parts:
            return self._empty().select(wanted)
        needed = [name for name in self.spec.schema.names if name in wanted or name in self.spec.key]
        try:
            frame = pl.scan_parquet([str(part) for part in parts], glob=False)
            frame = frame.filter(where) if where is not None else frame
            rows = frame.select(needed).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._named(error) from error
        if distinct and len(parts) > 1:
            rows = rows.unique(subset=list(self.spec.key), keep="first", maintain_order=True)
        return rows.select(wanted)

    def missing(self, expected: pl.DataFrame) -> pl.DataFrame:
        """The rows of `expected` (its columns are key columns) that the table does not hold."""
        present = self.read(expected.columns)
        return expected.join(present.unique(), on=expected.columns, how="anti")

    def keys(self) -> dict[str, tuple[Path, int, int]]:
        """First key column → the part, the first row and the number of rows that hold it, from every part.

        Rows of one such key lie together in a part. Parts are never changed, so what was read of one is remembered.
        Raises `CorruptPart` for an unreadable part.
        """
        parts = frozenset(self.parts())
        seen, found = _KEYS.get(self.folder, (frozenset(), {}))
        if seen != parts:
            found = dict(found) if seen < parts else {}
            for part in parts - seen if found else parts:
                for key, start, size in self._runs(part):
                    if key not in found or part.name < found[key][0].name:
                        found[key] = (part, start, size)
            _KEYS[self.folder] = (parts, found)
        return found

    def lookup(self, keys: Sequence[str]) -> pl.DataFrame:
        """The rows of these values of the first key column, in the order of `keys`; no part without one is read.

        Raises `KeyError` for a key that the table does not hold and `CorruptPart` for an unreadable part.
        """
        held = self.keys()
        slices = [self._part(part).slice(start, size) for part, start, size in (held[key] for key in keys)]
        return pl.concat(slices) if slices else self._empty()

    def by_part(self, *names: str) -> Iterator[tuple[str, pl.DataFrame]]:
        """The name and the rows of each part, or of those named; each first key where `keys` finds it alone."""
        held = self.keys()
        column = self.spec.key[0]
        for part in [self.folder / name for name in names] or self.parts():
            frame = self._part(part)
            others = [key for key in frame[column].unique() if held[key][0] != part]
            yield part.name, frame.filter(~pl.col(column).is_in(others)) if others else frame

    def _runs(self, part: Path) -> list[tuple[str, int, int]]:
        try:
            column = pl.read_parquet(str(part), columns=[self.spec.key[0]], glob=False).to_series()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._named(error) from error
        runs = column.rle().struct.unnest()
        starts = runs["len"].cum_sum() - runs["len"]
        return list(zip(runs["value"], starts, runs["len"], strict=True))

    def _part(self, part: Path) -> pl.DataFrame:
        try:
            return _frame(part)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._named(error) from error

    def holds_any(self) -> bool:
        """Whether anything has been written."""
        return bool(self.parts())

    def parts(self) -> list[Path]:
        """The part files in the order that resolves duplicates."""
        with suppress(FileNotFoundError):  # another run hands the folder over (`Lake.hand_over`)
            return sorted(self.folder.glob("part-*.parquet"))
        return []

    def _empty(self) -> pl.DataFrame:
        frame = pl.from_arrow(self.spec.schema.empty_table())
        if not isinstance(frame, pl.DataFrame):
            raise TypeError(f"{self.spec.name}: a table schema expected")
        return frame

    def _named(self, error: Exception) -> Exception:
        """The unreadable part behind `error`, or `error` itself: all can be read, or the store does not answer."""
        for part in self.parts():
            try:
                data = read_whole(part)
            except OSError as cause:
                return error if is_remote(part) else CorruptPart(part, str(cause).splitlines()[0])
            try:
                table_of(data)
            except (pa.ArrowException, OSError) as cause:
                return CorruptPart(part, str(cause).splitlines()[0])
        return error


def table_of(data: bytes, **options: Any) -> pa.Table:
    """The rows of a Parquet file's bytes. Raises `pa.ArrowException`, or `OSError`, for bytes that are none.

    No thread of Arrow's is handed a Python file: one that lets go of it late aborts the process as it ends.
    """
    return pq.read_table(pa.BufferReader(data), use_threads=False, **options)


def _parquet_bytes(table: pa.Table) -> bytes:
    buffer = BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    return buffer.getvalue()

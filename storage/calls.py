"""The ledger of paid model calls: durable the moment a reply arrives, shared by all processes of a lake.

Each process appends to a segment of its own, one JSON line a call, synced before `append` returns. A segment
whose process has ended is folded into the keyed Parquet table `calls`. An object store cannot append: there, what
is appended together is a part of the table at once.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO
from uuid import uuid4

import polars as pl

from storage.digests import canonical
from storage.errors import InputError
from storage.lake import Lake
from storage.places import is_remote
from storage.schemas import CALLS

Row = dict[str, Any]
SPENT = ("purpose", "model", "attempts", "prompt_tokens", "completion_tokens", "cost", "answered_at")


class Ledger:
    """The calls of one lake. Safe for the threads of a process and for processes that share the lake."""

    def __init__(self, lake: Lake) -> None:
        self._table = lake.table(CALLS, "ledger")
        self._remote = is_remote(lake.root)
        self._segments = lake.root / CALLS.name / "segments"
        self._lock = threading.RLock()
        self._syncing = threading.Lock()
        self._unsent: list[Row] = []
        self._wrote: list[Row] = []
        self._answered: dict[str, Row] = {}
        self._folded: set[Path] = set()
        self._read_to: dict[Path, int] = {}
        self._own: tuple[Path, TextIO] | None = None
        with suppress(FileNotFoundError):
            self.fold()

    def find(self, requests: Iterable[str]) -> dict[str, Row]:
        """Request digest → its row, of those the endpoint has replied to, by whatever process.

        Where two processes asked the same, the earlier reply counts. Raises `InputError` for a broken segment.
        """
        with self._lock:
            self._refresh()
            return {request: self._answered[request] for request in requests if request in self._answered}

    def append(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Keep rows (columns of `CALLS`); they are on the disk when this returns."""
        self.write(rows)
        self.sync()

    def write(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Give rows to the system: they outlive this process from now on, and the machine from `sync` on."""
        with self._lock:
            self._wrote += ({name: row[name] for name in SPENT} for row in rows)
            if self._remote:
                self._unsent += map(dict, rows)
                return
            _, file = self._own = self._own or self._begun()
            file.write("".join(_line(row) for row in rows))
            file.flush()
            self._take(map(dict, rows))

    def sync(self) -> None:
        """Have all that was written on the disk. Others may write meanwhile."""
        with self._syncing:
            with self._lock:
                own, (rows, self._unsent) = self._own, (self._unsent, [])
            if self._remote:
                try:
                    self._table.append(_distinct(rows))
                except BaseException:
                    with self._lock:  # paid for: what is kept next takes them along
                        self._unsent += rows
                    raise
            elif own:
                os.fsync(own[1].fileno())

    def rows(self) -> pl.DataFrame:
        """All calls of all processes, the failed ones too, oldest first."""
        with self._lock:
            rows: list[Row] = []
            for path in self._paths():
                with suppress(FileNotFoundError):
                    rows += _lines(path, 0)[0]
            folded = self._table.read(distinct=False)
            return (
                pl.concat([folded, pl.DataFrame(rows, folded.schema)])
                .sort("answered_at", "request", maintain_order=True)
                .unique(["request", "status"], keep="first", maintain_order=True)
            )

    def wrote(self) -> pl.DataFrame:
        """The columns `SPENT` of the calls that were kept through this object, in that order."""
        types = pl.DataFrame(CALLS.schema.empty_table()).select(SPENT).schema
        with self._lock:
            return pl.DataFrame(self._wrote, types)

    def fold(self, *, own: bool = False) -> int:
        """Move the segments of ended processes (`own`: and of this one) into the table; returns the rows moved.

        Killed midway, it is done again to the same effect. A segment that is being written stays.
        """
        with self._syncing, self._lock:
            if own and self._own:
                self._own[1].close()
                self._own = None
            moved = 0
            for path in self._paths():
                with suppress(FileNotFoundError, BlockingIOError), path.open("r+", encoding="utf-8") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    rows, _ = _lines(path, 0)
                    moved += self._table.append(_distinct(rows))
                    path.unlink()
            return moved

    def _begun(self) -> tuple[Path, TextIO]:
        """A new segment, locked while this process lives; one that was folded before it was locked is left."""
        self._segments.mkdir(parents=True, exist_ok=True)
        path = self._segments / f"{os.getpid()}-{uuid4().hex[:12]}.jsonl"
        file = path.open("a", encoding="utf-8")
        fcntl.flock(file, fcntl.LOCK_EX)
        if not os.fstat(file.fileno()).st_nlink:
            file.close()
            return self._begun()
        folder = os.open(self._segments, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        return path, file

    def _refresh(self) -> None:
        """Take in what others have written. Segments before parts: a row that is folded meanwhile is seen twice."""
        for path in self._paths():
            if self._own and path == self._own[0]:
                continue
            with suppress(FileNotFoundError):
                if path.stat().st_size > self._read_to.get(path, 0):
                    rows, self._read_to[path] = _lines(path, self._read_to.get(path, 0))
                    self._take(rows)
        if new := set(self._table.parts()) - self._folded:
            self._take(self._table.read(distinct=False, parts=sorted(new)).iter_rows(named=True))
            self._folded |= new

    def _take(self, rows: Iterable[Row]) -> None:
        for row in rows:
            if row["finish_reason"] is not None:
                held = self._answered.get(row["request"])
                if held is None or row["answered_at"] < held["answered_at"]:
                    self._answered[row["request"]] = row

    def _paths(self) -> list[Path]:
        return [] if self._remote else sorted(self._segments.glob("*.jsonl"))


def _distinct(rows: Iterable[Row]) -> list[Row]:
    """The earliest row of each key, as a part holds them."""
    kept: dict[tuple[str, str], Row] = {}
    for row in sorted(rows, key=lambda row: row["answered_at"]):
        kept.setdefault((row["request"], row["status"]), row)
    return list(kept.values())


def _line(row: Mapping[str, Any]) -> str:
    return canonical({**row, "answered_at": row["answered_at"].isoformat()}).decode() + "\n"


def _lines(path: Path, start: int) -> tuple[list[Row], int]:
    """The rows of whole lines from byte `start`, and where they end. A line without its end was never kept."""
    with path.open("rb") as file:
        file.seek(start)
        data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    return list(_parsed(path, whole)), start + len(whole)


def _parsed(path: Path, data: bytes) -> Iterator[Row]:
    try:
        for line in data.splitlines():
            row = json.loads(line)
            yield row | {"answered_at": datetime.fromisoformat(row["answered_at"])}
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: one call a line expected, {type(error).__name__} found; move this file away"
        ) from error

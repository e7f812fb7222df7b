"""Where a lake keeps its files."""

import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from storage.digests import digest, short
from storage.errors import InputError
from storage.places import is_remote, place, read_whole, remove, write_whole
from storage.schemas import TableSpec
from storage.tables import KeyedTable

SCHEMA_VERSION = 2
_ROOM = 1 << 20  # bytes without which the server's database, which lies in the lake, fails too


class Lake:
    """A folder, or a place in an object store, of keyed Parquet tables, LanceDB indexes and reports.

    `table(spec, scope)` is one table within one content address; what differs in any input lies elsewhere.
    """

    def __init__(self, root: str | Path) -> None:
        self.root = place(root)

    @classmethod
    def open(cls, root: str | Path, *, new: bool = True) -> "Lake":
        """The lake at `root`: to write to, and made where there is none, or, if not `new`, one that is there, to read.

        Raises `InputError` if that cannot be had, or if it is a lake of another schema version.
        """
        lake = cls(root)
        marker = lake.root / "lake.json"
        try:
            if new and not marker.exists():
                write_whole(marker, json.dumps({"schema": SCHEMA_VERSION}).encode())
            found = json.loads(read_whole(marker)).get("schema") if new or marker.exists() else None
        except InputError:
            raise
        except Exception as error:  # an object store's client has errors of its own for an endpoint or a key
            raise InputError(
                f"lake {lake.root}: cannot be opened ({error}); name a writable folder or bucket with --lake"
            ) from error
        if found is None and not new:
            raise InputError(f"lake {lake.root}: a lake expected, none found; name one with --lake, a run makes one")
        if found != SCHEMA_VERSION:
            raise InputError(
                f"lake {lake.root}: schema version {SCHEMA_VERSION} expected, {found} found; use a new --lake"
            )
        if new and not is_remote(lake.root) and not os.access(lake.root, os.W_OK):
            raise InputError(f"lake {lake.root}: not writable; name a writable folder with --lake")
        return lake

    def table(self, spec: TableSpec, scope: str) -> KeyedTable:
        """The part of a table that belongs to one content address (`scope`, a digest)."""
        return KeyedTable(self.root / spec.name / short(scope), spec)

    def scopes(self, spec: TableSpec) -> list[str]:
        """The scopes that a table has parts of, as the first digits of their addresses."""
        return sorted(path.name for path in (self.root / spec.name).glob("*") if path.is_dir())

    def hand_over(self, spec: TableSpec, scope: str, to: str) -> None:
        """Give the part of a table that was written under one address another, which was not known before.

        Where the other holds rows already they are the same, since addresses are of content, and these are dropped.
        """
        written, target = self.table(spec, scope), self.table(spec, to)
        if not is_remote(self.root) and written.holds_any() and not target.holds_any():
            with suppress(OSError):  # another run hands over the same at this moment
                written.folder.rename(target.folder)
        for part in written.parts():
            with suppress(FileNotFoundError):  # it has written what it deletes
                if not (target.folder / part.name).exists():
                    write_whole(target.folder / part.name, read_whole(part))
                remove(part)
        if not is_remote(self.root):
            with suppress(OSError):  # gone, or another run writes into it
                written.folder.rmdir()

    def is_full(self) -> bool:
        """Whether the disk of a lake that is a folder has hardly any room left."""
        return not is_remote(self.root) and shutil.disk_usage(self.root).free < _ROOM

    @property
    def vectors(self) -> Path:
        """The folder of the LanceDB indexes."""
        return self.root / "vectors"

    @property
    def reports(self) -> Path:
        """The folder of the written reports, one folder a run."""
        return self.root / "reports"

    @property
    def sealed(self) -> Path:
        """The folder of the sealed splits."""
        return self.root / "sealed"

    @property
    def freezes(self) -> Path:
        """The folder of the manifests."""
        return self.root / "freezes"

    @property
    def ledger(self) -> Path:
        """The file of what was sealed, frozen, unsealed and reported."""
        return self.root / "ledger.jsonl"

    @property
    def prefect(self) -> Path:
        """The home of the embedded Prefect server's database: in the lake, or the user's home where that is remote."""
        if is_remote(self.root):
            return Path.home() / ".suffice" / short(digest(str(self.root)))
        return self.root / ".prefect"

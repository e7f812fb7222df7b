"""What was sealed, frozen, unsealed and reported, in order, so that nothing can be taken back unseen."""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storage.digests import canonical, digest, short
from storage.errors import InputError
from storage.places import contents, create, is_remote, read_whole, write_whole

START = "0" * 64
"""What the first line says it follows."""


@dataclass(frozen=True)
class Line:
    """One line. `previous` is the hash of the line before it; `hash` covers everything else of the line.

    `at` is UTC, ISO 8601. `clock` is True where the clock stood behind the line before: it was set back.
    """

    number: int
    kind: str
    at: str
    clock_behind: bool
    facts: Mapping[str, Any]
    previous: str
    hash: str

    @classmethod
    def make(
        cls, number: int, kind: str, at: str, clock_behind: bool, facts: Mapping[str, Any], previous: str
    ) -> "Line":
        """A line with the hash of its content."""
        said: dict[str, Any] = {
            "number": number,
            "kind": kind,
            "at": at,
            "clock_behind": clock_behind,
            "facts": dict(facts),
            "previous": previous,
        }
        return cls(**{**said, "hash": digest(said)})

    def genuine(self) -> bool:
        """Whether the hash fits the content."""
        return self == Line.make(self.number, self.kind, self.at, self.clock_behind, self.facts, self.previous)


class BrokenLedger(InputError):
    """A chain that does not hold; `problems` names every line that was touched."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        self.problems = problems
        super().__init__(
            f"ledger {path}: an unbroken chain expected, {problems[0]} found; "
            "bring back the file as it was, `suffice ledger` lists every break"
        )


class Ledger:
    """A hash-chained, append-only file of JSON lines, with a note of its length and last hash beside it.

    In an object store each line is an object `ledger/00000012.json`, made only where none of its number is there: of
    two writers one finds the number taken, reads again and appends the next.

    The chain shows a line that was edited, deleted from the middle or moved; the note shows a shortened end.
    Whoever rewrites every line and the note leaves no trace here: what a manifest says of its ledger, kept by
    somebody else, is the witness then.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._note = path.with_suffix(".head.json")
        self._objects = path.with_suffix("") if is_remote(path) else None

    def append(self, kind: str, facts: Mapping[str, Any]) -> Line:
        """Add one line and return it. Raises `BrokenLedger` where the chain does not hold; then nothing is added."""
        with self.locked() as lines:
            return self.append_locked(lines, kind, facts)

    @contextmanager
    def locked(self) -> Iterator[list[Line]]:
        """All lines, while no other process or thread can append (in an object store others can).

        Raises `BrokenLedger`.
        """
        if self._objects is not None:
            yield self.lines()
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield self.lines()

    def append_locked(self, lines: list[Line], kind: str, facts: Mapping[str, Any], once: str = "") -> Line:
        """Add one line to `lines` and to the file; the caller is inside `locked`.

        `once`: a fact that one line of this kind may have. Raises `InputError` if another writer of an object store
        added a line with it meanwhile.
        """
        line = _next(lines, kind, facts)
        while not self._put(line):
            lines[:] = self.lines()
            if line.number >= len(lines):
                raise BrokenLedger(self.path, [f"line {line.number} neither there nor free"])
            if lines[line.number] == line:  # the store had it, and its word of that was lost
                break
            for other in lines[line.number :]:
                if once and other.kind == kind and other.facts.get(once) == facts[once]:
                    raise InputError(
                        f"{kind}: no other {kind} of {facts[once]} meanwhile expected, ledger line {other.number} "
                        "found; that one holds"
                    )
            line = _next(lines, kind, facts)
        else:
            lines.append(line)
        write_whole(self._note, canonical({"lines": len(lines), "hash": lines[-1].hash}))
        return line

    def _put(self, line: Line) -> bool:
        """Write a line; False if an object store has one of its number already."""
        if self._objects is not None:
            return create(self._objects / f"{line.number:08}.json", canonical(vars(line)))
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, canonical(vars(line)) + b"\n")
            os.fsync(handle)
        finally:
            os.close(handle)
        return True

    def lines(self, kind: str | None = None) -> list[Line]:
        """The lines in order, of one kind or all. Raises `BrokenLedger`."""
        problems = self.problems()
        if problems:
            raise BrokenLedger(self.path, problems)
        return [line for line in self.readable() if kind in (None, line.kind)]

    def readable(self) -> list[Line]:
        """The lines that can be read, whether the chain holds or not."""
        return [line for line in self._read() if isinstance(line, Line)]

    def problems(self) -> list[str]:
        """Every break of the chain, by line; empty where it holds."""
        found, previous, expected = [], START, 0
        note = self._noted()  # before the lines: what others append meanwhile then counts as ahead of its note
        lines = self._read()
        present = {line.number for line in lines if isinstance(line, Line)}
        for place, line in enumerate(lines):
            if isinstance(line, str):
                found.append(f"line {place} unreadable ({line})")
                expected += 1
                continue
            if not line.genuine():
                found.append(f"line {line.number} edited: its hash is not that of its content")
            elif line.number != expected:
                found += _out_of_place(line.number, expected, present)
            elif line.previous != previous:
                found.append(f"line {line.number - 1} replaced: line {line.number} follows another one")
            previous, expected = line.hash, line.number + 1
        return found + self._at_the_end(lines, note)

    def _noted(self) -> bytes | None:
        try:
            return read_whole(self._note)
        except FileNotFoundError:
            return None

    def _at_the_end(self, lines: list[Line | str], note: bytes | None) -> list[str]:
        if note is None:
            return ["the note of the last line missing"] if len(lines) > 1 else []
        try:
            noted_as = json.loads(note)
            count, last = int(noted_as["lines"]), str(noted_as["hash"])
        except (ValueError, KeyError, TypeError):
            return ["the note of the last line unreadable"]
        if count < 1:  # it is written after a line
            return ["the note of the last line edited"]
        if count > len(lines):
            return [f"lines {len(lines)} to {count - 1} missing at the end"]
        noted = lines[count - 1]
        touched = isinstance(noted, Line) and noted.hash != last
        # A process killed between a line and its note leaves the note one behind, never more; in an object store the
        # notes of several writers may arrive in another order than their lines.
        behind = self._objects is None and len(lines) > count + 1
        return [f"line {count - 1} replaced: the note has another hash"] if touched or behind else []

    def _read(self) -> list["Line | str"]:
        """Each line, or what is wrong with it."""
        if self._objects is not None:
            return [_parsed(row) for row in contents(self._objects, ".json")]
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return []
        return [_parsed(row) for row in text.split(b"\n") if row]


def freezes_before(lines: list[Line], manifest: str) -> int:
    """How many freezes stand before that of `manifest` (its digest). Raises `ValueError` if it has no line."""
    frozen = [line.facts.get("manifest") for line in lines if line.kind == "freeze"]
    return frozen.index(manifest)


def looks(lines: list[Line], seal: str) -> list[str]:
    """The distinct unsealings of one sealed split, oldest first; processes that share a look are one."""
    opened = [line for line in lines if line.kind == "unsealing" and line.facts.get("seal") == seal]
    return list(dict.fromkeys(str(line.facts.get("look") or line.hash) for line in opened))


def shown(line: Line) -> str:
    """One line as people read it."""
    facts = ", ".join(f"{name} {_brief(str(value))}" for name, value in line.facts.items() if value not in (None, ""))
    behind = " (clock set back)" if line.clock_behind else ""
    return f"{line.number:>3}  {line.at[:19]}Z{behind}  {line.kind}: {facts}"


def _next(lines: list[Line], kind: str, facts: Mapping[str, Any]) -> Line:
    """The line that follows now."""
    now = datetime.now(UTC).isoformat(timespec="microseconds")
    behind = bool(lines) and now < lines[-1].at
    return Line.make(len(lines), kind, now, behind, facts, lines[-1].hash if lines else START)


def _brief(text: str) -> str:
    return short(text) if len(text) == len(START) else text


def _out_of_place(number: int, expected: int, present: set[int]) -> list[str]:
    gone = [f"line {missing} deleted" for missing in range(expected, number) if missing not in present]
    return gone or [f"line {number} reordered: line {expected} belongs in its place"]


def _parsed(row: bytes) -> "Line | str":
    try:
        return Line(**json.loads(row))
    except (ValueError, TypeError) as error:
        return type(error).__name__

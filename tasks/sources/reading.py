"""Untrusted files to values: strict JSON whole or element by element, literals without eval, dates, storable text."""

import ast
import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from storage.errors import InputError

_BLOCK = 1 << 20
_SPACE = " \t\r\n"
_WEEKDAY = re.compile(r"\s*\([^)]*\)")
_FORMATS = (
    "%I:%M %p on %d %B, %Y",  # LoCoMo: 1:56 pm on 8 May, 2023
    "%Y/%m/%d %H:%M",  # LongMemEval without its weekday: 2023/05/30 (Tue) 23:40
    "%Y/%m/%d",
    "%B-%d-%Y",  # BEAM: March-15-2024
    "%B %d, %Y",
)


def moment(value: object) -> datetime | None:
    """The local time that a benchmark's date names, in any format seen in them or ISO 8601; None for all else.

    A weekday in brackets is passed over, an offset from UTC dropped: times are those of the speakers' clocks. A date
    without a time of day is its midnight. There is no default and no "now".
    """
    text = _WEEKDAY.sub("", value).strip() if isinstance(value, str) else ""
    for form in _FORMATS:
        try:
            return datetime.strptime(text, form)
        except ValueError:
            continue
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        return None


def storable(value: object) -> tuple[str, bool]:
    """Text that Parquet and JSON can hold, and whether it differs: lone surrogates become U+FFFD, NUL is removed."""
    text = str(value)
    mended = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "")
    return mended, mended != text


def whole(path: Path) -> Any:
    """The value of a JSON file. Raises `InputError` if it is not UTF-8, not complete, or repeats a key in an object."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_no_duplicates)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: UTF-8 expected, byte {error.start} is not; download the file again") from error
    except json.JSONDecodeError as error:
        raise _broken(path, error.pos, error.msg) from error
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


def whole_or_literal(path: Path) -> tuple[Any, bool]:
    """The value of a file that holds JSON, or Python's literals as some releases do, and whether it was the latter.

    A literal is parsed as data and never run. Raises `InputError` for a file that is neither.
    """
    try:
        return whole(path), False
    except InputError as error:
        try:
            return ast.literal_eval(path.read_text(encoding="utf-8-sig").strip()), True
        except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError):
            raise error from None


def elements(path: Path) -> Iterator[Any]:
    """The objects of a JSON file's list, one at a time, however large the file; a lone object is its only element.

    Raises what `whole` raises, and for a file of anything else.
    """
    window = _Window(path)
    if window.head() == "{":
        yield whole(path)
        return
    window.skip("[")
    while window.head() != "]":
        yield window.value()
        if window.head() != "]":
            window.skip(",")
            window.expect("{")
    window.skip("]")
    window.expect("")


class _Window:
    """What is in memory of a JSON file: from the first character not read yet to the end of the last block."""

    def __init__(self, path: Path) -> None:
        self._path, self._blocks = path, _blocks(path)
        self._text, self._gone = "", 0
        self._decoder = json.JSONDecoder(object_pairs_hook=_no_duplicates)

    def head(self) -> str:
        """The next character that is no white space; empty at the end of the file."""
        self._drop(len(self._text) - len(self._text.lstrip(_SPACE)))
        while not self._text and self._more(1):
            self._drop(len(self._text) - len(self._text.lstrip(_SPACE)))
        return self._text[:1]

    def expect(self, head: str) -> None:
        """Raise `InputError` unless this comes next."""
        if self.head() != head:
            raise self._broken(0, f"{head or 'the end'!r} expected, {self.head() or 'the end'!r} found")

    def skip(self, head: str) -> None:
        """Pass over one character, which must be this one."""
        self.expect(head)
        self._drop(1)

    def value(self) -> Any:
        """The object that comes next. What is waited for doubles, so that decoding again stays linear."""
        self.expect("{")
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text)
            except json.JSONDecodeError as error:
                if not self._more(len(self._text)):
                    raise self._broken(error.pos, error.msg) from error
            except ValueError as error:
                raise InputError(f"{self._path}: {error}") from error
            else:
                self._drop(end)
                return value

    def _more(self, size: int) -> bool:
        """Read at least `size` more characters where there are as many; whether there were any."""
        taken, count = [self._text], 0
        while count < size and (block := next(self._blocks, "")):
            taken.append(block)
            count += len(block)
        self._text = "".join(taken)
        return count > 0

    def _drop(self, count: int) -> None:
        self._gone += count
        self._text = self._text[count:]

    def _broken(self, at: int, cause: str) -> InputError:
        return _broken(self._path, self._gone + at, cause)


def _blocks(path: Path) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    at = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            try:
                text = decoder.decode(block)
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{path}: UTF-8 expected, a byte near {at + error.start} is not; download the file again"
                ) from error
            at += len(block)
            if text:
                yield text
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: UTF-8 expected, its last character is cut; download the file again") from error


def _broken(path: Path, position: int, cause: str) -> InputError:
    return InputError(
        f"{path}: complete JSON expected, broken at character {position} ({cause}); download the file again"
    )


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        repeated = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"each key once expected, {repeated!r} found twice in one object; mend the file")
    return made

"""The one exception a user can mend: bad input, said in one line; and which failures of a disk are such."""

import errno
import re
from pathlib import Path
from typing import Any

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)
_REFUSED = "lacked the necessary privileges"  # LanceDB's words for an object store's 403


class InputError(ValueError):
    """What was expected, what was found, what to do; the command prints it and exits with code 2.

    Subclasses may take what arguments they like: one that a worker of a cluster sends to the run arrives as it was.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args, vars(self))


def _again(kind: type[InputError], args: tuple[Any, ...], facts: dict[str, Any]) -> InputError:
    error = kind.__new__(kind, *args)
    vars(error).update(facts)
    return error


def unwritable(place: str | Path, error: Exception) -> InputError | None:
    """What to tell of a disk that is full or may not be written; None for any other failure.

    LanceDB tells of the system's errors by their number in a text, an object store's client by their class alone.
    """
    told = re.search(r"\(os error (\d+)\)", str(error))
    number = error.errno if isinstance(error, OSError) else int(told[1]) if told else None
    if number in _FULL:
        return full(place)
    if number in _CLOSED or isinstance(error, PermissionError) or _REFUSED in str(error):
        return InputError(f"{place}: a place that can be written expected, a closed one found; mend it or use another")
    return None


def full(place: str | Path) -> InputError:
    """What to tell of a disk that is full."""
    return InputError(f"{place}: room to write expected, the disk is full; free some and run again to go on")

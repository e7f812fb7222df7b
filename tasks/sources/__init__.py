"""Where benchmarks come from: one module a format, each returning the same shape."""

from collections.abc import Callable
from pathlib import Path

from storage.errors import InputError
from tasks.sources import locomo
from tasks.sources.ingested import Ingested

SOURCES: dict[str, Callable[[Path], Ingested]] = {
    "locomo": locomo.load,
}
BUNDLED: dict[str, Path] = {
    "sample": Path(__file__).parent / "sample" / "conversations.json",
}


def locate(benchmark: str, data: str) -> Path:
    """The file that `data` names: a bundled name, a file, or a folder that holds the benchmark's file.

    Raises `InputError` for an unknown benchmark, an empty path, or a path with nothing there.
    """
    if benchmark not in SOURCES:
        raise InputError(f"data.benchmark: one of {', '.join(SOURCES)} expected, {benchmark!r} found")
    if data in BUNDLED:
        return BUNDLED[data]
    if not data:
        raise InputError(
            f"data: a path to the {benchmark} data expected, none given; "
            f"name it with --data PATH, or download it with `suffice fetch {benchmark}`"
        )
    path = Path(data).expanduser()
    if path.is_dir():
        path = path / locomo.FILE_NAME
    if not path.is_file():
        raise InputError(f"data: {path} does not exist; name {locomo.FILE_NAME} or its folder with --data PATH")
    return path

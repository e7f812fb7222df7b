"""Where benchmarks come from: one module a format, each returning the same shape."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from storage.digests import file_digest, tree_digest
from storage.errors import InputError
from tasks.sources import beam, locomo, longmemeval
from tasks.sources.ingested import Ingested


@dataclass(frozen=True)
class Source:
    """One benchmark: how it is read, and the names that its file (or folder) goes by within a folder."""

    load: Callable[[Path], Ingested]
    names: tuple[str, ...]
    folder: bool = False


def _longmemeval(name: str, *names: str) -> Source:
    return Source(partial(longmemeval.load, benchmark=name), names)


def _beam(name: str, scale: str) -> Source:
    return Source(partial(beam.load, benchmark=name), (scale, f"chats/{scale}"), folder=True)


SOURCES: dict[str, Source] = {
    "locomo": Source(locomo.load, (locomo.FILE_NAME,)),
    "longmemeval_s": _longmemeval("longmemeval_s", "longmemeval_s_cleaned.json", "longmemeval_s.json", "longmemeval_s"),
    "longmemeval_m": _longmemeval("longmemeval_m", "longmemeval_m_cleaned.json", "longmemeval_m.json", "longmemeval_m"),
    "longmemeval_oracle": _longmemeval("longmemeval_oracle", "longmemeval_oracle.json", "longmemeval_oracle"),
    "synthetic": _longmemeval("synthetic", "synthetic.json"),
    **{f"beam_{scale.lower()}": _beam(f"beam_{scale.lower()}", scale) for scale in beam.SCALES},
}
BUNDLED: dict[str, Path] = {
    "sample": Path(__file__).parent / "sample" / "conversations.json",
}
BUNDLED_WORDS = "a bundled sample"  # what stands where a benchmark's name would promise the benchmark itself


def locate(benchmark: str, data: str) -> Path:
    """What `data` names: a bundled name, the benchmark's own file or folder, or a folder that holds it.

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
    source, path = SOURCES[benchmark], Path(data).expanduser()
    inside = [path / name for name in source.names if (path / name).exists()]
    if inside:
        return inside[0]
    if not path.exists():
        raise InputError(f"data: {path} does not exist; name {source.names[0]} or its folder with --data PATH")
    # A folder of chats goes by its scale's name, and one chat lies in it: no scale is taken for another.
    own = path.is_dir() and source.names[0] in (path.name, path.absolute().parent.name)
    if not (own if source.folder else path.is_file()):
        raise InputError(f"data: {source.names[0]} or its folder expected, {path} found; name it with --data")
    return path


def content_digest(benchmark: str, path: Path) -> str:
    """SHA-256 of the benchmark's file, or of the names and digests of all files that its folder is read from."""
    if not SOURCES[benchmark].folder:
        return file_digest(path)
    return tree_digest((str(file.relative_to(path)), file) for file in beam.files(path))

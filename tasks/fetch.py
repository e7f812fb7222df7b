"""Benchmarks from their public homes, checked, resumed where a download broke."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from storage.digests import file_digest
from storage.errors import InputError
from tasks.sources.beam import CHATS, PROBES
from tasks.sources.reading import whole_or_literal

_BLOCK = 1 << 16
_TRIES = 5


@dataclass(frozen=True)
class File:
    """One file of a benchmark: its name, and what is published of it; `optional`: its absence is no mistake."""

    name: str
    sha256: str | None = None
    bytes: int | None = None
    optional: bool = False


@dataclass(frozen=True)
class Home:
    """Where one benchmark is public: `url` stands before each file's name; `folder` is what holds many of them."""

    url: str
    licence: str
    files: tuple[File, ...]
    folder: str = ""


_LONGMEMEVAL = (
    "https://huggingface.co/datasets/xiaowu0162/longmemeval-cleaned/resolve/98d7416c24c778c2fee6e6f3006e7a073259d48f/"
)
_BEAM = "https://raw.githubusercontent.com/mohammadtavakoli78/BEAM/5a64c992ba05b489b891221b7bcb6b763493dde5/chats/"


def _longmemeval(name: str, sha256: str, bytes: int) -> Home:
    return Home(_LONGMEMEVAL, "MIT", (File(name, sha256, bytes),))


def _beam(scale: str, chats: int) -> Home:
    files = [
        File(f"{scale}/{number}/{name}", optional=name == CHATS[0])
        for number in range(1, chats + 1)
        for name in (*CHATS, PROBES)
    ]
    return Home(_BEAM, "CC BY-SA 4.0", tuple(files), scale)


HOMES: dict[str, Home] = {
    "locomo": Home(
        "https://raw.githubusercontent.com/snap-research/locomo/main/data/",
        "CC BY-NC 4.0",
        (File("locomo10.json", "79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4", 2_805_274),),
    ),
    "longmemeval_s": _longmemeval(
        "longmemeval_s_cleaned.json", "d6f21ea9d60a0d56f34a05b609c79c88a451d2ae03597821ea3d5a9678c3a442", 277_383_467
    ),
    "longmemeval_m": _longmemeval(
        "longmemeval_m_cleaned.json", "9d79e5524794a2e6900a3aa9cb7d9152c5a3e8319c9a87c25494ba1eacee495f", 2_737_100_077
    ),
    "longmemeval_oracle": _longmemeval(
        "longmemeval_oracle.json", "821a2034d219ab45846873dd14c14f12cfe7776e73527a483f9dac095d38620c", 15_388_478
    ),
    "beam_100k": _beam("100K", 20),
    "beam_500k": _beam("500K", 35),
    "beam_1m": _beam("1M", 35),
    "beam_10m": _beam("10M", 10),
}
"""Revisions are pinned. BEAM publishes no digests: its files are pinned by their commit and checked to be whole."""


def fetch(benchmark: str, folder: Path, url: str | None, say: Callable[[str], None] | None) -> Path:
    """Download one benchmark to `folder` and return its path; a whole, checked file there is left as it is.

    A broken download is kept beside it and gone on with. Raises `InputError` for an unknown benchmark, a place
    that cannot be reached, or a file whose digest is not the published one (the download is then removed).
    """
    if benchmark not in HOMES:
        raise InputError(f"fetch: one of {', '.join(HOMES)} expected, {benchmark!r} found")
    home, say = HOMES[benchmark], say or (lambda _: None)
    size = sum(file.bytes or 0 for file in home.files)
    say(f"{benchmark} ({home.licence}{f', {size / 1e6:,.0f} MB' if size else ''}) from {url or home.url}")
    for file in home.files:
        one = len(home.files) == 1
        _fetch(url if url and one else (url or home.url) + file.name, folder / file.name, file, say)
    return folder / (home.folder or home.files[0].name)


def _fetch(url: str, target: Path, file: File, say: Callable[[str], None]) -> None:
    if target.is_file() and (file.sha256 is None or file_digest(target) == file.sha256):
        say(f"{target} is there already")
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.part")
    if not _download(url, partial, say, optional=file.optional):
        return
    found = file_digest(partial)
    if file.sha256 is None:
        whole_or_literal(partial)
    elif found != file.sha256:
        partial.unlink()
        raise InputError(f"{url}: SHA-256 {file.sha256} expected, {found} found; nothing was kept")
    partial.replace(target)


def _download(url: str, partial: Path, say: Callable[[str], None], *, optional: bool) -> bool:
    """Whether the file is there; only an optional one may not be."""
    for _ in range(_TRIES):
        try:
            _go_on(url, partial)
            return True
        except httpx.HTTPStatusError as error:
            if optional and error.response.status_code == httpx.codes.NOT_FOUND:
                return False
            raise InputError(
                f"{url}: the file expected, status {error.response.status_code} found; name another place with --url"
            ) from error
        except httpx.HTTPError as error:
            cause = error
            say(f"broken after {partial.stat().st_size if partial.exists() else 0:,} bytes ({type(error).__name__})")
    raise InputError(f"{url}: not reached in {_TRIES} tries ({type(cause).__name__}); run again to go on") from cause


def _go_on(url: str, partial: Path) -> None:
    """Ask for what is missing; start anew where the server does not serve ranges."""
    have = partial.stat().st_size if partial.exists() else 0
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={have}-"} if have else {})}
    with httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=60.0) as reply:
        if reply.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            return
        reply.raise_for_status()
        resumed = reply.status_code == httpx.codes.PARTIAL_CONTENT
        with partial.open("ab" if resumed else "wb") as file:
            for block in reply.iter_raw(_BLOCK):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())

"""Benchmarks from their public homes, checked, resumed where a download broke."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import httpx

from storage.digests import file_digest
from storage.errors import InputError

_BLOCK = 1 << 16
_TRIES = 5


@dataclass(frozen=True)
class Home:
    """Where one benchmark's file is public."""

    url: str
    file: str
    sha256: str
    licence: str


HOMES: dict[str, Home] = {
    "locomo": Home(
        url="https://raw.githubusercontent.com/snap-research/locomo/main/data/locomo10.json",
        file="locomo10.json",
        sha256="79fa87e90f04081343b8c8debecb80a9a6842b76a7aa537dc9fdf651ea698ff4",
        licence="CC BY-NC 4.0",
    ),
}


def fetch(benchmark: str, folder: Path, url: str | None, say: Callable[[str], None] | None) -> Path:
    """Download one benchmark to `folder` and return its path; a whole, checked file there is left as it is.

    A broken download is kept beside it and gone on with. Raises `InputError` for an unknown benchmark, a place
    that cannot be reached, or a file whose digest is not the published one (the download is then removed).
    """
    if benchmark not in HOMES:
        raise InputError(f"fetch: one of {', '.join(HOMES)} expected, {benchmark!r} found")
    home = HOMES[benchmark]
    target = folder / home.file
    say = say or (lambda _: None)
    if target.is_file() and file_digest(target) == home.sha256:
        say(f"{target} is there already")
        return target
    folder.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.part")
    say(f"{benchmark} ({home.licence}) from {url or home.url}")
    _download(url or home.url, partial, say)
    found = file_digest(partial)
    if found != home.sha256:
        partial.unlink()
        raise InputError(f"{url or home.url}: SHA-256 {home.sha256} expected, {found} found; nothing was kept")
    partial.replace(target)
    return target


def _download(url: str, partial: Path, say: Callable[[str], None]) -> None:
    for _ in range(_TRIES):
        try:
            _go_on(url, partial)
            return
        except httpx.HTTPStatusError as error:
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

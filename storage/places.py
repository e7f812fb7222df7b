"""What a lake's address means: a folder, or a place in an object store with a folder's interface."""

import os
from pathlib import Path
from typing import cast

from storage.errors import InputError


def place(address: str | Path) -> Path:
    """The folder of `address`, or for an URI (`s3://bucket/lake`) an object store's place that reads like one.

    Credentials, region and `AWS_ENDPOINT_URL` come from the environment. Listings are never cached, since other
    processes write too. Raises `InputError` for an URI whose package is not installed or whose scheme is unknown.
    """
    text = str(address)
    if "://" not in text:
        return Path(text)
    try:
        from upath import UPath  # only needed for object stores, like the package of their scheme

        return cast(Path, UPath(text.rstrip("/"), use_listings_cache=False))
    except (ImportError, ValueError) as error:
        raise InputError(
            f"lake {text}: {error}; `pip install 'suffice[s3]'` brings what s3:// needs, other schemes need their own"
        ) from error


def spelled(address: str | Path) -> str:
    """One spelling for each place, so that it can name what is kept in memory for it."""
    text = str(address)
    return text.rstrip("/") if "://" in text else str(Path(text).resolve())


def is_remote(path: Path) -> bool:
    """Whether a place lies in an object store."""
    return "://" in str(path)


def create(path: Path, data: bytes) -> bool:
    """Make an object with one conditional put (`If-None-Match: *`); False, with nothing written, if it is there."""
    try:
        path.fs.pipe_file(path.path, data, mode="create")  # type: ignore[attr-defined]
    except FileExistsError:
        return False
    return True


def contents(folder: Path, suffix: str) -> list[bytes]:
    """The objects right under a place of an object store whose names end so, in the order of their names."""
    files = folder.fs  # type: ignore[attr-defined]
    try:
        names = sorted(name for name in files.ls(folder.path, detail=False) if name.endswith(suffix))  # type: ignore[attr-defined]
    except FileNotFoundError:
        return []
    found = files.cat(names) if names else {}
    return [found[name] for name in names]


def object_store_options() -> dict[str, str]:
    """What LanceDB must be told beside the environment: a loopback endpoint may speak plain HTTP."""
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    return {"allow_http": "true"} if plain else {}

"""What a lake's address means (a folder, or a place in an object store) and how its files are read and written."""

import os
import shutil
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import cast

from storage.errors import InputError, unwritable

_ATTEMPTS = 3


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


def read_whole(path: Path) -> bytes:
    """A file's or an object's bytes as they stood at one moment, though others may replace it meanwhile.

    An object is asked for in one request: read by ranges, one that is replaced between two of them fails.
    Raises `FileNotFoundError`.
    """
    return path.fs.cat_file(path.path) if is_remote(path) else path.read_bytes()  # type: ignore[attr-defined]


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that others see all of it or nothing: a hidden temporary file, fsync, rename.

    An object store shows an object only when all of it has arrived. A folder that another run moves away meanwhile
    (`Lake.hand_over`) is made again. Raises `InputError` where the disk is full or the place may not be written.
    """
    for attempt in range(_ATTEMPTS):
        try:
            path.write_bytes(data) if is_remote(path) else _write_whole(path, data)
            return
        except FileNotFoundError:
            if attempt == _ATTEMPTS - 1:
                raise
        except OSError as error:
            raise unwritable(path, error) or error from error


def _write_whole(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".part-{token_hex(8)}"
    try:
        with temporary.open("xb") as file:  # readable by whom the umask lets: a lake may be a team's
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def remove(path: Path) -> None:
    """Delete a file, or a folder with all that it holds; what another process deletes of it meanwhile is gone too."""
    with suppress(FileNotFoundError):
        if is_remote(path):
            path.fs.rm(path.path, recursive=True)  # type: ignore[attr-defined]
        elif path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def create(path: Path, data: bytes) -> bool:
    """Make an object with one conditional put (`If-None-Match: *`); False, with nothing written, if it is there.

    Raises `InputError` where the place may not be written.
    """
    try:
        path.fs.pipe_file(path.path, data, mode="create")  # type: ignore[attr-defined]
    except FileExistsError:
        return False
    except OSError as error:
        raise unwritable(path, error) or error from error
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

"""Content addresses: canonical JSON to SHA-256."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path


def digest(value: object) -> str:
    """SHA-256 of `value`'s canonical JSON, 64 hex digits.

    Canonical: sorted keys, no white space, UTF-8, floats by their shortest round-trip form.
    Raises `TypeError` for values that JSON cannot hold and `ValueError` for NaN or infinities.
    """
    return hashlib.sha256(canonical(value)).hexdigest()


def canonical(value: object) -> bytes:
    """The bytes that `digest` hashes. Lone surrogates are escaped, so any Python text has an address."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", errors="backslashreplace")


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def tree_digest(files: Iterable[tuple[str, Path]]) -> str:
    """One address for many named files: the digest of their sorted (name, file digest) pairs."""
    return digest(sorted((name, file_digest(path)) for name, path in files))


def short(address: str) -> str:
    """The first 16 hex digits, as shown to people."""
    return address[:16]

"""What a freeze fixed, in a file of its own."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from storage.digests import canonical, digest
from storage.errors import InputError
from storage.places import read_whole, write_whole

FORMAT = 1

FIELDS = (
    "data",
    "splits",
    "arms",
    "models",
    "prompts",
    "answerer",
    "judges",
    "sufficiency",
    "statistics",
    "failure policy",
    "denominators",
    "primary comparison",
    "comparisons",
    "protocol",
    "versions",
    "source tree",
    "metrics",
    "stores",
    "indexes",
    "pools",
    "selections",
)
"""What a manifest fixes, in the order in which differences are looked for: the cause before what follows from it."""


@dataclass(frozen=True)
class Manifest:
    """`fields`: the values of `FIELDS`, each a text, number, digest or table of such.

    `notes` say how it came about and are compared with nothing: `name, frozen_at, commit, diff` (the digest of
    uncommitted changes, None for a clean tree), `vouched` (models taken as versioned on the protocol's word), `ledger`
    (its lines and last hash at that moment), `signer` (the Ed25519 public key of who must sign it, in hex, or None).
    `signature` is an Ed25519 signature of the digest in hex, or None.
    """

    fields: Mapping[str, Any]
    notes: Mapping[str, Any]
    signature: str | None = field(default=None, compare=False)

    @property
    def digest(self) -> str:
        """The address of everything but the signature."""
        return digest({"format": FORMAT, "fields": dict(self.fields), "notes": dict(self.notes)})


@dataclass(frozen=True)
class Difference:
    """The first field that differs; `frozen` and `present` are None where one side lacks it."""

    field: str
    frozen: Any
    present: Any

    def __str__(self) -> str:
        return f"{self.field}: {_brief(self.frozen)} frozen, {_brief(self.present)} present"


class FrozenDiffers(InputError):
    """What is about to run is not what was frozen; `difference` has the field with both values."""

    def __init__(self, difference: Difference) -> None:
        self.difference = difference
        super().__init__(
            f"freeze: {difference}; bring it back, or run the open split and freeze anew with "
            "`suffice freeze PROTOCOL` (the ledger counts every freeze)"
        )


def write(path: Path, manifest: Manifest) -> None:
    """Write a manifest whole. Raises `InputError` if the file exists: a manifest is written once."""
    if path.exists():
        raise InputError(f"freeze: a new file expected for the manifest, {path} found; manifests are written once")
    said = {
        "format": FORMAT,
        "digest": manifest.digest,
        "fields": dict(manifest.fields),
        "notes": dict(manifest.notes),
        "signature": manifest.signature,
    }
    write_whole(path, json.dumps(said, indent=1, sort_keys=True, ensure_ascii=False).encode() + b"\n")


def read(path: Path) -> Manifest:
    """The manifest in a file. Raises `InputError` if there is none, or if it was edited."""
    try:
        said = json.loads(read_whole(path))
        manifest = Manifest(dict(said["fields"]), dict(said["notes"]), said["signature"])
        stated = said["digest"]
    except OSError as error:
        raise InputError(f"freeze: a manifest expected at {path}, {error.strerror} found") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"freeze: a manifest of `suffice freeze` expected, {path} is none") from error
    if manifest.digest != stated:
        raise InputError(
            f"freeze: manifest {path} was edited: digest {str(stated)[:16]} stated, {manifest.digest[:16]} found; "
            "use the file as it was written, or freeze anew"
        )
    return manifest


def first_difference(frozen: Mapping[str, Any], present: Mapping[str, Any]) -> Difference | None:
    """The first field in which two sets of fields differ, None if none does."""
    return next(all_differences(frozen, present), None)


def all_differences(frozen: Mapping[str, Any], present: Mapping[str, Any]) -> Iterator[Difference]:
    """Every field in which two sets of fields differ, in the order of `FIELDS` and by name within one."""
    for name in [*FIELDS, *sorted({*frozen, *present} - set(FIELDS))]:
        yield from _differences(name, frozen.get(name), present.get(name))


def _differences(name: str, frozen: Any, present: Any) -> Iterator[Difference]:
    if isinstance(frozen, dict) and isinstance(present, dict):
        for key in sorted({*frozen, *present}):
            yield from _differences(f"{name}.{key}", frozen.get(key), present.get(key))
    elif canonical(frozen) != canonical(present):
        yield Difference(name, frozen, present)


def _brief(value: Any) -> str:
    """A value in one line; a digest by its first 16 digits."""
    if value is None:
        return "nothing"
    text = value if isinstance(value, str) else canonical(value).decode()
    if len(text) == 64 and set(text) <= set("0123456789abcdef"):
        return text[:16]
    return text if len(text) <= 120 else f"{text[:100]}… ({len(text)} characters)"

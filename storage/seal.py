"""How a split's questions and gold are kept so that what sealed them cannot read them."""

import base64
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from storage import manifest as manifests
from storage.digests import canonical, digest, short
from storage.errors import InputError
from storage.lake import Lake
from storage.ledger import Ledger, Line
from storage.places import is_remote, read_whole, remove, spelled, write_whole
from storage.schemas import GOLD, QUESTIONS, TableSpec
from storage.signature import check_signer
from storage.tables import table_of

TABLES: dict[str, TableSpec] = {"questions": QUESTIONS, "gold": GOLD}
BLOCK = 1 << 16
"""Sealed content is padded to a multiple of this many bytes, so that a file's size tells rows only roughly."""
_KEPT: dict[tuple[str, str, str, str], "Opened"] = {}
_KEPT_MOST = 4
_PAYLOAD = pa.schema([pa.field("payload", pa.large_binary(), nullable=False)])


@dataclass(frozen=True)
class Seal:
    """What anybody may know of a sealed split.

    `version`: SHA-256 of the raw file. `rule`: which questions are sealed. `dataset`, `gold`: addresses of the turns
    with the open questions, and of the open gold. `conversations`: the digest of every conversation's words.
    `keys`: table → its data key, wrapped to `recipient` (age), base64. `files`: table → SHA-256 of the sealed file.
    `facts`: counts of what is in the clear.
    """

    benchmark: str
    version: str
    rule: str
    recipient: str
    dataset: str
    gold: str
    conversations: tuple[str, ...]
    keys: Mapping[str, str]
    files: Mapping[str, str]
    facts: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The address of all of it, and so of the sealed files too."""
        return digest(asdict(self))

    def folder(self, lake: Lake) -> Path:
        """Where its files lie."""
        return lake.sealed / f"{self.benchmark}-{short(digest([self.benchmark, dict(self.files)]))}"


@dataclass(frozen=True)
class Opened:
    """A sealed split in memory: frames of `QUESTIONS` and `GOLD`. `look` is the ledger line that opened it."""

    questions: pl.DataFrame
    gold: pl.DataFrame
    look: str


def seal(lake: Lake, public: Mapping[str, Any], tables: Mapping[str, pa.Table], recipient: str) -> Seal:
    """Encrypt `tables` (those of `TABLES`) to an age recipient, note it in the ledger and return the seal.

    `public` has the other fields of `Seal`. Each file has a random data key that is kept wrapped alone: what runs
    here cannot decrypt again. Raises `InputError` for a recipient that is none or a benchmark sealed here already.
    """
    version = str(public["version"])
    made = {
        name: _encrypted(table, _bound(public["benchmark"], version, name), recipient) for name, table in tables.items()
    }
    sealed = Seal(
        **public,
        recipient=recipient,
        keys={name: wrapped for name, (wrapped, _) in made.items()},
        files={name: _sha256(data) for name, (_, data) in made.items()},
    )
    folder, ledger = sealed.folder(lake), Ledger(lake.ledger)
    with ledger.locked() as lines:
        _refuse_second(lake, sealed.benchmark)
        for name, (_, data) in made.items():
            write_whole(folder / f"{name}.parquet.encrypted", data)
        write_whole(folder / "seal.json", canonical(asdict(sealed)))
        facts = {"seal": sealed.id, "benchmark": sealed.benchmark, "version": version, "rule": sealed.rule}
        try:
            ledger.append_locked(lines, "seal", facts, once="benchmark")
        except InputError:
            remove(folder)
            raise
    return sealed


def seals(lake: Lake, benchmark: str | None) -> list[Seal]:
    """The seals of a benchmark (of all if None) in a lake, each known to the ledger.

    Raises `InputError` for a seal that was edited, brought in from elsewhere, or taken away: the ledger names it.
    """
    found = [_read(path) for path in sorted(lake.sealed.glob("*/seal.json"))]
    noted = {str(line.facts["seal"]): line for line in Ledger(lake.ledger).lines("seal")}
    for each in found:
        if each.id not in noted:
            raise InputError(
                f"sealed split of {each.benchmark}: a seal that the ledger names expected, {short(each.id)} found; "
                "it was edited or comes from elsewhere; bring back the seal as it was"
            )
    for id, line in noted.items():
        if benchmark in (None, line.facts["benchmark"]) and id not in {each.id for each in found}:
            raise InputError(
                f"sealed split of {line.facts['benchmark']}: seal {short(id)} of ledger line {line.number} expected, "
                "none found; bring its folder back: the data cannot be read in the clear where it was sealed"
            )
    return [each for each in found if benchmark in (None, each.benchmark)]


def unseal(lake: Lake, seal_id: str, present: Mapping[str, Any], manifest: Path, identity: Path, look: str) -> Opened:
    """The sealed split, decrypted in memory, if everything that is about to run equals what was frozen.

    `present`: the values of `storage.manifest.FIELDS` now. `look`: empty for a new unsealing, or the ledger line of
    the run that this process works for. The ledger gets a line before anything is returned, one a process and look.
    Raises `InputError`, with nothing written: an unbroken ledger that knows the freeze, a manifest without the first
    difference, an identity that fits and files as they were sealed are needed.
    """
    frozen = manifests.read(manifest)
    check_signer(frozen.digest, frozen.signature, frozen.notes.get("signer"))
    lines = Ledger(lake.ledger).lines()
    if frozen.digest not in {line.facts.get("manifest") for line in lines if line.kind == "freeze"}:
        raise InputError(
            f"freeze: a manifest of this lake's ledger expected, {short(frozen.digest)} found, which no line names; "
            "freeze in this lake with `suffice freeze PROTOCOL`"
        )
    _check_past(frozen, lines)
    difference = manifests.first_difference(frozen.fields, present)
    if difference:
        raise manifests.FrozenDiffers(difference)
    if look and look not in {line.hash for line in lines if line.kind == "unsealing"}:
        raise InputError(f"unsealing: a line of the ledger expected, {short(look)} found, which it does not have")
    return _opened(lake, seal_id, frozen.digest, identity, look)


def _check_past(frozen: manifests.Manifest, lines: list[Line]) -> None:
    """The ledger still holds the very lines that stood there at the freeze."""
    known = frozen.notes["ledger"]
    if known["lines"] and (len(lines) < known["lines"] or lines[known["lines"] - 1].hash != known["hash"]):
        raise InputError(
            f"freeze: the ledger's first {known['lines']} lines as they were at the freeze expected, others found; "
            "the ledger was rewritten: bring it back as it was"
        )


def _opened(lake: Lake, seal_id: str, manifest: str, identity: Path, look: str) -> Opened:
    """Decrypt, then note the look. What a process has opened it keeps for the look's other shards, and for no other."""
    known = (spelled(lake.root), seal_id, manifest, look)
    if look and known in _KEPT:
        return _KEPT[known]
    sealed = next((each for each in map(_read, lake.sealed.glob("*/seal.json")) if each.id == seal_id), None)
    if sealed is None:
        raise InputError(f"sealed split: seal {short(seal_id)} expected in {lake.root}, none found")
    seals(lake, sealed.benchmark)
    keyring = identities(identity)
    frames = {name: _decrypted(lake, sealed, name, keyring) for name in TABLES}
    facts = {"manifest": manifest, "seal": seal_id, "benchmark": sealed.benchmark, "look": look or None}
    line = Ledger(lake.ledger).append("unsealing", facts)
    opened = Opened(frames["questions"], frames["gold"], look or line.hash)
    if len(_KEPT) >= _KEPT_MOST:
        _KEPT.pop(next(iter(_KEPT)))
    _KEPT[(*known[:3], opened.look)] = opened
    return opened


def new_identity(path: Path, lake: Lake) -> str:
    """Write a fresh age identity to `path`, readable by its owner alone; returns its recipient.

    Raises `InputError` for a file that exists and for a place inside the lake, where it would open what it lies beside.
    """
    from pyrage import x25519

    if not is_remote(lake.root) and path.resolve().is_relative_to(lake.root.resolve()):
        raise InputError(f"--identity-out: a place outside the lake expected, {path} found; a key is kept elsewhere")
    made = x25519.Identity.generate()
    recipient = str(made.to_public())
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InputError(f"--identity-out: a new file expected, {path} cannot be made ({error.strerror})") from error
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(f"# public key: {recipient}\n{made}\n")
    return recipient


def identities(path: Path) -> list[Any]:
    """The age identities of a file. Raises `InputError`, which never quotes the file."""
    from pyrage import IdentityError, x25519

    try:
        rows = [row.strip() for row in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--identity: a readable age identity file expected at {path}, none found") from error
    try:
        found = [x25519.Identity.from_str(row) for row in rows if row and not row.startswith("#")]
    except IdentityError as error:
        raise InputError(f"--identity: lines AGE-SECRET-KEY-1… expected in {path}, another found") from error
    if not found:
        raise InputError(f"--identity: a line AGE-SECRET-KEY-1… expected in {path}, none found")
    return found


def _bound(benchmark: str, version: str, table: str) -> bytes:
    """What a file is bound to: it decrypts as this table of this split and version and as nothing else."""
    return canonical({"suffice": 1, "benchmark": benchmark, "split": "sealed", "version": version, "table": table})


def _encrypted(table: pa.Table, bound: bytes, recipient: str) -> tuple[str, bytes]:
    """The wrapped data key, and Parquet whose footer and one padded cell are encrypted (AES-256-GCM).

    The table is a cell as a whole, because the blocks of separate columns would tell their lengths.
    """
    import pyrage
    from pyarrow.parquet.encryption import create_encryption_properties

    try:
        to = pyrage.x25519.Recipient.from_str(recipient)
    except pyrage.RecipientError as error:
        raise InputError(f"--recipient: an age public key age1… expected, {recipient!r} found") from error
    inner = BytesIO()
    pq.write_table(table, inner, compression="zstd")
    content = inner.tell().to_bytes(8, "big") + inner.getvalue()
    content += bytes(-len(content) % BLOCK)
    key, outer = secrets.token_bytes(32), BytesIO()
    properties = create_encryption_properties(key, aad_prefix=bound, store_aad_prefix=False)
    padded = pa.table({"payload": pa.array([content], pa.large_binary())}, schema=_PAYLOAD)
    pq.write_table(
        padded,
        outer,
        compression="none",
        use_dictionary=False,
        write_statistics=False,
        encryption_properties=properties,
    )
    return base64.b64encode(pyrage.encrypt(key, [to])).decode("ascii"), outer.getvalue()


def _decrypted(lake: Lake, sealed: Seal, name: str, keyring: list[Any]) -> pl.DataFrame:
    import pyrage
    from pyarrow.parquet.encryption import create_decryption_properties

    path = sealed.folder(lake) / f"{name}.parquet.encrypted"
    where = f"sealed {name} of {sealed.benchmark}"
    data = read_whole(path) if path.is_file() else b""
    if _sha256(data) != sealed.files[name]:
        raise InputError(f"{where}: the file as it was sealed expected at {path}, another or none found; bring it back")
    try:
        key = pyrage.decrypt(base64.b64decode(sealed.keys[name]), keyring)
    except (pyrage.DecryptError, ValueError) as error:
        raise InputError(
            f"{where}: the identity of {sealed.recipient[:12]}… expected, another found; "
            "name the file of the right one with --identity"
        ) from error
    try:
        properties = create_decryption_properties(key, aad_prefix=_bound(sealed.benchmark, sealed.version, name))
        content = table_of(data, decryption_properties=properties)["payload"][0].as_py()
        table = table_of(content[8 : 8 + int.from_bytes(content[:8], "big")])
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(
            f"{where}: a file that decrypts expected, one that was changed, or of another split or version, found"
        ) from error
    frame = pl.from_arrow(table.cast(TABLES[name].schema))
    if not isinstance(frame, pl.DataFrame):
        raise TypeError(f"{name}: a table expected")
    return frame


def _refuse_second(lake: Lake, benchmark: str) -> None:
    there = seals(lake, benchmark)
    if there:
        raise InputError(
            f"seal: {benchmark} not yet sealed in {lake.root} expected, sealed by {there[0].rule} found; "
            "a split is sealed once; use another --lake for another split"
        )


def _read(path: Path) -> Seal:
    try:
        said = json.loads(read_whole(path))
        return Seal(**{**said, "conversations": tuple(said["conversations"])})
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path}: a seal of `suffice seal` expected, unreadable; bring it back as it was") from error


def _sha256(data: bytes) -> str:

    return hashlib.sha256(data).hexdigest()

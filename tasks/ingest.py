"""A benchmark's file to the tables of turns, questions and gold."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage import seal
from storage.digests import digest
from storage.errors import InputError
from storage.lake import Lake
from storage.records import Turn
from storage.rows import from_frame, to_rows
from storage.schemas import CONVERSATIONS, DATASETS, GOLD, QUESTIONS
from tasks.marks import conversation_digests
from tasks.provenance import code
from tasks.sealed import OPEN
from tasks.shard import shard
from tasks.sources import SOURCES, content_digest, locate
from tasks.sources.ingested import Ingested


@dataclass(frozen=True)
class Dataset:
    """The addresses of an ingested benchmark, its ingest report, and how many rows were new.

    `seal`: the address of the lake's sealed split of the benchmark; then the other addresses are of what is open.
    """

    dataset: str
    gold: str
    facts: dict[str, Any]
    new: int
    seal: str = ""


def ingest(lake: str, benchmark: str, path: str, sha256: str | None = None, split: str = OPEN) -> Dataset:
    """Read the file unless the lake holds this very file already, or a seal of the benchmark.

    `path` as `tasks.sources.locate` takes it. Where the benchmark is sealed in this lake the file is not read, and
    need not be there. Raises `InputError` if `sha256` is given and the file has another, if a sealed split is asked
    for where there is none, if the file is another edition of what is sealed, and what the source raises.
    """
    sealed = seal.seals(Lake(lake), benchmark)
    if sealed:
        return _sealed(lake, sealed[0], benchmark, path, sha256)
    if split != OPEN:
        raise InputError(
            f"data.split: a sealed split of {benchmark} expected in {lake}, none found; nothing was read; "
            f"make it with `suffice seal {benchmark} --data PATH --lake {lake}`"
        )
    path = str(locate(benchmark, path))
    found = content_digest(benchmark, Path(path))
    _check(path, found, sha256)
    source = digest({"benchmark": benchmark, "file": found, "code": code("tasks.sources", "tasks.ingest")})
    known = Lake(lake).table(DATASETS, source).read()
    if len(known):
        row = known.row(0, named=True)
        return Dataset(row["dataset"], row["gold"], json.loads(row["facts"]), 0)
    return _read(lake, benchmark, path, source)


def _read(lake: str, benchmark: str, path: str, source: str) -> Dataset:
    read = SOURCES[benchmark].load(Path(path))
    _refuse_edition(Lake(lake), path, read)
    new = write(lake, read)
    facts = {**read.facts, "file": Path(path).name}
    row = {
        "source": source,
        "benchmark": benchmark,
        "dataset": read.addresses.dataset,
        "gold": read.addresses.gold,
        "facts": json.dumps(facts),
    }
    Lake(lake).table(DATASETS, source).append([row])
    return Dataset(read.addresses.dataset, read.addresses.gold, facts, new)


def write(lake: str, read: Ingested) -> int:
    """Write turns, questions and gold in the clear; returns how many rows of turns and questions."""
    place = Lake(lake)
    new = place.table(CONVERSATIONS, read.addresses.dataset).append(to_rows(read.turns))
    new += place.table(QUESTIONS, read.addresses.dataset).append(
        to_rows(read.questions, place=range(len(read.questions)))
    )
    place.table(GOLD, read.addresses.gold).append(to_rows(read.gold))
    return new


def refuse_readable(lake: Lake, benchmark: str, words: set[str]) -> None:
    """Raises `InputError` if the lake already holds one of these conversations with its questions in the clear."""
    for source in lake.scopes(DATASETS):
        for row in lake.table(DATASETS, source).read().iter_rows(named=True):
            table = lake.table(CONVERSATIONS, row["dataset"])
            turns = from_frame(Turn, table.read().sort("conversation_id", "position"))
            if words & set(conversation_digests(turns).values()):
                raise InputError(
                    f"seal: a lake that has not seen {benchmark} expected, {lake.root} holds its questions in the "
                    "clear; seal it in a new --lake"
                )


def _refuse_edition(lake: Lake, path: str, read: Ingested) -> None:
    """A file of another benchmark's name that holds conversations of a sealed one is that benchmark."""
    held = {words for sealed in seal.seals(lake, None) for words in sealed.conversations}
    if held & set(conversation_digests(read.turns).values()):
        raise InputError(
            f"{path}: conversations that are not sealed in this lake expected, some that are found; "
            "run the sealed benchmark, or use another --lake"
        )


def _sealed(lake: str, sealed: seal.Seal, benchmark: str, path: str, sha256: str | None) -> Dataset:
    """What is open of a sealed benchmark; a file that is named all the same must be the one that was sealed."""
    if not Lake(lake).table(CONVERSATIONS, sealed.dataset).holds_any():
        raise InputError(f"lake {lake}: sealing {benchmark} was interrupted; seal it again in a new --lake")
    if path:
        _check_same(sealed, locate(benchmark, path))
    _check(f"sealed {benchmark}", sealed.version, sha256)
    return Dataset(sealed.dataset, sealed.gold, dict(sealed.facts), 0, sealed.id)


def _check_same(sealed: seal.Seal, path: Path) -> None:
    found = content_digest(sealed.benchmark, path)
    if found != sealed.version:
        raise InputError(
            f"{path}: {sealed.benchmark} is sealed in this lake from a file of SHA-256 {sealed.version[:16]}, "
            f"{found[:16]} found; leave out --data, or use another --lake for other data"
        )


def _check(path: str, found: str, sha256: str | None) -> None:
    if sha256 and found != sha256:
        raise InputError(
            f"{path}: SHA-256 {sha256} expected, {found} found; download it again, "
            f'or accept another edition with --set data.sha256=""'
        )


ingest_task = shard("ingest", ingest)

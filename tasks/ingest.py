"""A benchmark's file to the tables of turns, questions and gold."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.digests import digest, file_digest
from storage.errors import InputError
from storage.lake import Lake
from storage.rows import to_rows
from storage.schemas import CONVERSATIONS, DATASETS, GOLD, OBSERVATIONS, QUESTIONS
from tasks.provenance import code
from tasks.shard import shard
from tasks.sources import SOURCES


@dataclass(frozen=True)
class Dataset:
    """The addresses of an ingested benchmark, its ingest report, and how many rows were new."""

    dataset: str
    gold: str
    facts: dict[str, Any]
    new: int


def ingest(lake: str, benchmark: str, path: str, sha256: str | None = None) -> Dataset:
    """Read the file unless the lake holds this very file already.

    Raises `InputError` if `sha256` is given and the file has another, and what the source raises.
    """
    found = file_digest(Path(path))
    if sha256 and found != sha256:
        raise InputError(
            f"{path}: SHA-256 {sha256} expected, {found} found; download it again, "
            f'or accept another edition with --set data.sha256=""'
        )
    source = digest({"benchmark": benchmark, "file": found, "code": code("tasks.sources", "tasks.ingest")})
    table = Lake(lake).table(DATASETS, source)
    known = table.read()
    if len(known):
        row = known.row(0, named=True)
        return Dataset(row["dataset"], row["gold"], json.loads(row["facts"]), 0)
    return _read(lake, benchmark, path, source)


def _read(lake: str, benchmark: str, path: str, source: str) -> Dataset:
    read = SOURCES[benchmark](Path(path))
    place = Lake(lake)
    new = place.table(CONVERSATIONS, read.dataset).append(to_rows(read.turns))
    new += place.table(QUESTIONS, read.dataset).append(to_rows(read.questions, place=range(len(read.questions))))
    place.table(OBSERVATIONS, read.dataset).append(to_rows(read.observations))
    place.table(GOLD, read.gold_digest).append(to_rows(read.gold))
    facts = {**read.facts, "file": Path(path).name}
    row = {
        "source": source,
        "benchmark": benchmark,
        "dataset": read.dataset,
        "gold": read.gold_digest,
        "facts": json.dumps(facts),
    }
    place.table(DATASETS, source).append([row])
    return Dataset(read.dataset, read.gold_digest, facts, new)


ingest_task = shard("ingest", ingest)

"""A benchmark's file to the tables of sessions, conversations, questions and gold."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.digests import digest
from storage.errors import InputError
from storage.lake import Lake
from storage.records import Gold, Membership, Question, Record, Turn
from storage.rows import to_rows
from storage.schemas import CONVERSATIONS, DATASETS, GOLD, OBSERVATIONS, QUESTIONS, SESSIONS
from tasks.provenance import code
from tasks.shard import shard
from tasks.sources import SOURCES, content_digest
from tasks.sources.ingested import Account, Addresses

BLOCK_TURNS = 1024
"""Sessions are written in parts of about so many turns; what follows works through one part at a time."""


@dataclass(frozen=True)
class Dataset:
    """The addresses of an ingested benchmark, its ingest report, and how many rows were new."""

    dataset: str
    gold: str
    facts: dict[str, Any]
    new: int


def ingest(lake: str, benchmark: str, path: str, sha256: str | None = None) -> Dataset:
    """Read the file unless the lake holds this very file already.

    A session that several conversations hold is written once, and each of them by its address; conversations are
    read one at a time, so that memory holds no more than the addresses and the questions.
    Raises `InputError` if `sha256` is given and the file has another, and what the source raises.
    """
    found = content_digest(benchmark, Path(path))
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
    place, account, addresses = Lake(lake), Account(), Addresses(benchmark)
    contents = _Contents(place, source)
    memberships: list[Membership] = []
    asked: list[tuple[Question, Gold]] = []
    observed: list[Record] = []
    for told in SOURCES[benchmark].load(Path(path)).read(account):
        for membership, turns in told.sessions:
            contents.add(membership.session, turns)
        held = [membership for membership, _ in told.sessions]
        addresses.add(held, told.asked, told.observed)
        observed += told.observed
        memberships += held
        asked += told.asked
    new = contents.finish(addresses.dataset)
    place.table(CONVERSATIONS, addresses.dataset).append(to_rows(memberships))
    questions = [question for question, _ in asked]
    new += place.table(QUESTIONS, addresses.dataset).append(to_rows(questions, place=range(len(questions))))
    place.table(OBSERVATIONS, addresses.dataset).append(to_rows(observed))
    place.table(GOLD, addresses.gold).append(to_rows(gold for _, gold in asked))
    facts = {**account.facts, "file": Path(path).name}
    row = {
        "source": source,
        "benchmark": benchmark,
        "dataset": addresses.dataset,
        "gold": addresses.gold,
        "facts": json.dumps(facts),
    }
    place.table(DATASETS, source).append([row])
    return Dataset(addresses.dataset, addresses.gold, facts, new)


class _Contents:
    """Writes each session's content once, in parts, under the source's address until the dataset's is known."""

    def __init__(self, lake: Lake, source: str) -> None:
        self._lake, self._source = lake, source
        self._seen: set[str] = set()
        self._rows: list[dict[str, Any]] = []
        self._written = 0

    def add(self, session: str, turns: Sequence[Turn]) -> None:
        """One more session, unless its content has been seen."""
        if session in self._seen:
            return
        self._seen.add(session)
        self._rows += [
            {
                "session": session,
                "place": place,
                "name": turn.id.rpartition("/")[2],
                "speaker": turn.speaker,
                "text": turn.text,
                "caption": turn.caption,
            }
            for place, turn in enumerate(turns)
        ]
        if len(self._rows) >= BLOCK_TURNS:
            self._flush()

    def finish(self, dataset: str) -> int:
        """Write what is left and hand all of it to the dataset; returns the turns written."""
        self._flush()
        self._lake.hand_over(SESSIONS, self._source, dataset)
        return self._written

    def _flush(self) -> None:
        self._written += self._lake.table(SESSIONS, self._source).append(self._rows)
        self._rows = []


ingest_task = shard("ingest", ingest)

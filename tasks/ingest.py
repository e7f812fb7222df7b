"""A benchmark's file to the tables of sessions, conversations, questions and gold."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage import seal
from storage.digests import digest
from storage.errors import InputError
from storage.holdings import said
from storage.lake import Lake
from storage.records import Gold, Membership, Question, Record, Turn
from storage.rows import to_rows
from storage.schemas import CONVERSATIONS, DATASETS, GOLD, OBSERVATIONS, QUESTIONS, SESSIONS
from tasks.marks import conversation_digests, spoken, unmarked
from tasks.provenance import code
from tasks.sealed import OPEN
from tasks.shard import shard
from tasks.sources import SOURCES, content_digest, locate
from tasks.sources.ingested import Account, Addresses, Told

BLOCK_TURNS = 1024
"""Sessions are written in parts of about so many turns; what follows works through one part at a time."""


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
    need not be there. A session that several conversations hold is written once, and each of them by its address;
    conversations are read one at a time, so that memory holds no more than the addresses and the questions.
    Raises `InputError` if `sha256` is given and the file has another, if a sealed split is asked for where there is
    none, if the file is another edition of what is sealed, and what the source raises.
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
    account = Account()
    told = (unmarked(benchmark, each) for each in SOURCES[benchmark].load(Path(path)).read(account))
    addresses, new = write(lake, benchmark, _of_no_seal(Lake(lake), path, told), source)
    facts = {**account.facts, "file": Path(path).name}
    row = {
        "source": source,
        "benchmark": benchmark,
        "dataset": addresses.dataset,
        "gold": addresses.gold,
        "facts": json.dumps(facts),
    }
    Lake(lake).table(DATASETS, source).append([row])
    return Dataset(addresses.dataset, addresses.gold, facts, new)


def write(lake: str, benchmark: str, told: Iterable[Told], source: str) -> tuple[Addresses, int]:
    """Write conversations with what was observed in them, questions and gold in the clear.

    Returns the addresses, and how many turns and questions are new.
    `source`: the address under which sessions lie until the dataset's is known. Questions are written last.
    """
    place, addresses = Lake(lake), Addresses(benchmark)
    contents = _Contents(place, source)
    memberships: list[Membership] = []
    asked: list[tuple[Question, Gold]] = []
    observed: list[Record] = []
    for each in told:
        for membership, turns in each.sessions:
            contents.add(membership.session, turns)
        held = [membership for membership, _ in each.sessions]
        addresses.add(held, each.asked, each.observed)
        observed += each.observed
        memberships += held
        asked += each.asked
    new = contents.finish(addresses.dataset)
    place.table(CONVERSATIONS, addresses.dataset).append(to_rows(memberships))
    questions = [question for question, _ in asked]
    new += place.table(QUESTIONS, addresses.dataset).append(to_rows(questions, place=range(len(questions))))
    place.table(OBSERVATIONS, addresses.dataset).append(to_rows(observed))
    place.table(GOLD, addresses.gold).append(to_rows(gold for _, gold in asked))
    return addresses, new


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


def refuse_readable(lake: Lake, benchmark: str, words: set[str]) -> None:
    """Raises `InputError` if the lake already holds one of these conversations with its questions in the clear."""
    for source in lake.scopes(DATASETS):
        for row in lake.table(DATASETS, source).read().iter_rows(named=True):
            if words & set(conversation_digests(said(lake, row["dataset"])).values()):
                raise InputError(
                    f"seal: a lake that has not seen {benchmark} expected, {lake.root} holds its questions in the "
                    "clear; seal it in a new --lake"
                )


def _of_no_seal(lake: Lake, path: str, told: Iterable[Told]) -> Iterator[Told]:
    """A file of another benchmark's name that holds conversations of a sealed one is that benchmark."""
    held = {words for sealed in seal.seals(lake, None) for words in sealed.conversations}
    for each in told:
        if held and held & set(conversation_digests(spoken(each.turns)).values()):
            raise InputError(
                f"{path}: conversations that are not sealed in this lake expected, some that are found; "
                "run the sealed benchmark, or use another --lake"
            )
        yield each


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

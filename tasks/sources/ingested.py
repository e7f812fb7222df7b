"""What every source returns: conversations with what is asked of them, and an account of the irregular."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from itertools import groupby
from typing import Any

from storage.digests import canonical, digest
from storage.errors import InputError
from storage.records import Gold, Membership, Question, Record, Turn


@dataclass(frozen=True)
class Told:
    """One conversation in time order, with the questions asked of it and the gold of each.

    `observed`: the facts that the file comes with, as records in time order.
    """

    turns: Sequence[Turn]
    asked: Sequence[tuple[Question, Gold]]
    observed: Sequence[Record] = ()

    @cached_property
    def sessions(self) -> list[tuple[Membership, list[Turn]]]:
        """Each session as its membership and its turns in order. Raises what `sessions` raises."""
        return list(sessions(self.turns))


class Account:
    """What a source counts and notes while it reads."""

    def __init__(self) -> None:
        self._facts: dict[str, Any] = {}

    def count(self, label: str, by: int = 1) -> None:
        """Add to a number."""
        self._facts[label] = self._facts.get(label, 0) + by

    def note(self, label: str, *what: str) -> None:
        """Add to a list of irregular things; with nothing to add, have the list all the same."""
        self._facts.setdefault(label, []).extend(what)

    @property
    def facts(self) -> dict[str, Any]:
        """Label → count, then label → list of irregular things that were repaired, dropped or ignored."""
        return dict(sorted(self._facts.items(), key=lambda fact: isinstance(fact[1], list)))


@dataclass(frozen=True)
class Ingested:
    """One benchmark file: `read` yields its conversations one at a time and fills the account on the way.

    The properties read all of it into memory.
    """

    benchmark: str
    read: Callable[[Account], Iterable[Told]]

    @cached_property
    def _read(self) -> tuple[list[Told], Account]:
        account = Account()
        return list(self.read(account)), account

    @property
    def told(self) -> list[Told]:
        """Every conversation."""
        return self._read[0]

    @property
    def turns(self) -> list[Turn]:
        """Every turn, conversation after conversation."""
        return [turn for told in self.told for turn in told.turns]

    @property
    def observations(self) -> list[Record]:
        """Every fact that the file comes with, conversation after conversation."""
        return [record for told in self.told for record in told.observed]

    @property
    def questions(self) -> list[Question]:
        """Every question in the benchmark's order."""
        return [question for told in self.told for question, _ in told.asked]

    @property
    def gold(self) -> list[Gold]:
        """The gold of every question, aligned with `questions`."""
        return [gold for told in self.told for _, gold in told.asked]

    @property
    def facts(self) -> dict[str, Any]:
        """What was counted and noted."""
        return self._read[1].facts

    @cached_property
    def addresses(self) -> "Addresses":
        """The addresses of all of it."""
        made = Addresses(self.benchmark)
        for told in self.told:
            made.add([membership for membership, _ in told.sessions], told.asked, told.observed)
        return made


class Addresses:
    """The addresses of a benchmark, from its conversations as they pass.

    `dataset` is of what readers and answerers see. Gold is no part of it: a corrected label keeps the answers.
    """

    def __init__(self, benchmark: str) -> None:
        self._seen, self._gold = sha256(canonical(benchmark)), sha256()

    def add(
        self, memberships: Iterable[Membership], asked: Iterable[tuple[Question, Gold]], observed: Iterable[Record] = ()
    ) -> None:
        """One more conversation."""
        self._seen.update(
            canonical(
                [[m.conversation_id, m.session, m.session_id, m.prefix, _iso(m.said_at)] for m in memberships],
            )
        )
        for record in observed:
            self._seen.update(canonical([record.id, record.speaker, record.text, record.source_turn_ids]))
        for question, gold in asked:
            said = [question.id, question.conversation_id, question.kind, _iso(question.asked_at), question.text]
            self._seen.update(canonical(said))
            row = [gold.question_id, gold.answer, gold.turn_ids, gold.session_ids, gold.rubric, gold.abstention]
            self._gold.update(canonical(row))

    @property
    def dataset(self) -> str:
        """The address of conversations and questions."""
        return self._seen.hexdigest()

    @property
    def gold(self) -> str:
        """The address of what metrics and judges compare with."""
        return digest({"dataset": self.dataset, "gold": self._gold.hexdigest()})


def sessions(turns: Sequence[Turn]) -> Iterator[tuple[Membership, list[Turn]]]:
    """One conversation's sessions, each as its membership and its turns in order.

    An id is `prefix/name`: what follows its last slash names the turn within the session's content, what stands
    before it says where the session lies. The content's address is of names, speakers, texts and captions alone.
    Raises `ValueError` if a session's turns differ in prefix or date.
    """
    position = 0
    for place, (session_id, group) in enumerate(groupby(turns, lambda turn: turn.session_id)):
        held = list(group)
        prefixes, dates = {turn.id.rpartition("/")[0] for turn in held}, {turn.said_at for turn in held}
        if len(prefixes) != 1 or len(dates) != 1:
            raise ValueError(f"{session_id}: one prefix of ids and one date expected, {prefixes} and {dates} found")
        content = [[turn.id.rpartition("/")[2], turn.speaker, turn.text, turn.caption] for turn in held]
        yield (
            Membership(
                conversation_id=held[0].conversation_id,
                place=place,
                session=digest(content),
                session_id=session_id,
                prefix=prefixes.pop(),
                position=position,
                turns=len(held),
                said_at=dates.pop(),
            ),
            held,
        )
        position += len(held)


def refuse_repeats(path: object, ids: Iterable[str], what: str, seen: set[str]) -> None:
    """Add `ids` to those seen. Raises `InputError` for one that was seen before."""
    for id in ids:
        if id in seen:
            raise InputError(f"{path}: unique {what} ids expected, {id} found twice")
        seen.add(id)


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()

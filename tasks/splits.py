"""Which questions of a benchmark a split rule seals."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from storage.digests import file_digest, short
from storage.errors import InputError
from storage.records import Question
from tasks import specs


class Rule(Protocol):
    """A rule chooses from questions and says what it is, without naming what it chose."""

    def sealed(self, questions: Sequence[Question]) -> set[str]:
        """The ids of the questions to seal."""
        ...


@dataclass(frozen=True)
class Whole:
    """Every question."""

    title: ClassVar[str] = "the whole benchmark"

    def sealed(self, questions: Sequence[Question]) -> set[str]:
        """All ids."""
        return {question.id for question in questions}


@dataclass(frozen=True)
class Conversations:
    """All questions of some conversations; `ids`: their ids, with commas between."""

    title: ClassVar[str] = "all questions of some conversations"

    ids: str = ""

    def sealed(self, questions: Sequence[Question]) -> set[str]:
        """Raises `InputError` for a conversation that no question is about."""
        wanted = {id.strip() for id in self.ids.split(",") if id.strip()}
        known = {question.conversation_id for question in questions}
        for id in sorted(wanted - known):
            raise InputError(f"--split: a conversation of the benchmark such as {min(known)} expected, {id!r} found")
        return {question.id for question in questions if question.conversation_id in wanted}


@dataclass(frozen=True)
class Fraction:
    """A share of the questions of each kind, drawn at random by `seed`; one at least of a kind that has two.

    What is drawn depends on the ids of that kind and the seed, not on the order of the file or on other kinds.
    """

    title: ClassVar[str] = "a share of each kind"

    share: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise ValueError(f"share: a number between 0 and 1 expected, {self.share} found; the rule whole seals all")

    def sealed(self, questions: Sequence[Question]) -> set[str]:
        """The drawn ids."""
        chosen: set[str] = set()
        for kind in {question.kind for question in questions}:
            ids = sorted(question.id for question in questions if question.kind == kind)
            number = int.from_bytes(hashlib.sha256(kind.encode()).digest()[:8], "big")
            order = np.random.default_rng([self.seed, number]).permutation(len(ids))
            size = min(max(round(self.share * len(ids)), 1), len(ids) - 1) if len(ids) > 1 else 0
            chosen.update(ids[place] for place in order[:size])
        return chosen


@dataclass(frozen=True)
class Ids:
    """The questions that a text file names, one id a line."""

    title: ClassVar[str] = "the questions named in a file"

    file: str = ""

    def sealed(self, questions: Sequence[Question]) -> set[str]:
        """Raises `InputError` for a file that cannot be read and for an id that no question has."""
        try:
            rows = Path(self.file).expanduser().read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"--split: a file of question ids expected, {self.file!r} cannot be read") from error
        wanted, known = {row.strip() for row in rows if row.strip()}, {question.id for question in questions}
        for id in sorted(wanted - known):
            raise InputError(f"--split: ids of questions such as {min(known)} expected in {self.file}, {id!r} found")
        return wanted


RULES: dict[str, type[Any]] = {
    "whole": Whole,
    "conversations": Conversations,
    "fraction": Fraction,
    "ids": Ids,
}


def chosen(text: str, questions: Sequence[Question]) -> tuple[str, set[str]]:
    """The rule that `text` prints (`fraction(share=0.3, seed=7)`) as a seal states it, and the ids it seals.

    A file of ids is stated by its digest. Raises `InputError` for an unknown rule and for one that seals nothing.
    """
    rule = specs.make(RULES, text, "--split")
    ids = rule.sealed(questions)
    if not ids:
        raise InputError(f"--split: a rule that seals some question expected, {text!r} seals none")
    return _stated(rule), ids


def _stated(rule: Any) -> str:
    """The rule with all its parameters, defaults too."""
    name = next(name for name, kind in RULES.items() if isinstance(rule, kind))
    given = specs.parameters(rule)
    if isinstance(rule, Ids):
        given = {"sha256": short(file_digest(Path(rule.file).expanduser()))}
    return f"{name}({', '.join(f'{key}={value}' for key, value in given.items())})" if given else name

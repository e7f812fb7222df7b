"""Which of the records that came back deserve a place in the evidence?"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from readers.types import Note

_WORD = re.compile(r"[a-z0-9]{3,}")
_NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")
_MONTHS = frozenset(
    re.findall(r"\w+", "January February March April May June July August September October November December")
)


@dataclass(frozen=True, slots=True)
class Worth:
    """What one candidate is worth, each in [0, 1]."""

    relevance: float
    coverage: float
    novelty: float
    bridge: float
    score: float


@dataclass(frozen=True)
class Router:
    """Candidates by relevance, missing coverage, novelty and bridge; four tiers fill the places of a round.

    The tiers: the `keep` best scores from .05; `keep` more by relevance from .10; by score those from .22, or with
    a bridge from .30 and a relevance from .10; by relevance those from .08. `hard` caps their sum. Ties go to the
    record returned first.
    Source: the BFR release (LYF199903/BFR-An-Agent-Memory-Framework-for-Evidence-Reconstruction), whose ties go to
    the id, and whose bridge also rewards a list of words of cause and stress, left out here.
    """

    keep: int = 8
    hard: int = 20
    relevance: float = 0.40
    coverage: float = 0.25
    novelty: float = 0.10
    bridge: float = 0.25

    def retain(
        self, question: str, missing: Sequence[str], evidence: Iterable[Note], candidates: Sequence[Note]
    ) -> list[Note]:
        """The candidates that are kept, in the order in which the tiers admit them."""
        worth = self.worth(question, missing, evidence, candidates)
        taken: dict[int, None] = {}
        for rank, admits, quota in self._tiers():
            free = [place for place in range(len(worth)) if place not in taken and admits(worth[place])]
            free.sort(key=lambda place: -rank(worth[place]))
            taken |= dict.fromkeys(free[: min(quota, self.hard - len(taken))])
        return [candidates[place] for place in taken]

    def worth(
        self, question: str, missing: Sequence[str], evidence: Iterable[Note], candidates: Sequence[Note]
    ) -> list[Worth]:
        """Each candidate's worth.

        relevance = |Q ∩ M| / |Q|, Q and M the forms of the question's and the record's words, plus .08 for each of
        the question's first 12 words of four letters or more that holds, or is held by, such a word of the record.
        coverage = |R ∩ M| / |R|, R the forms of the first four missing requirements. novelty = 1 − |M ∩ E| / |M|, E
        those of the evidence. bridge = .2 for each name and .3 for each month that the evidence lacks. score =
        the weighted sum, at least .35 from a relevance of .25.
        Deviations: the release takes 12 arbitrary forms, and 20 arbitrary records of the evidence cut to 300
        characters, in the order of a hashed set; here the first 12 words count, and all of the evidence.
        """
        scene = _Scene.of(question, missing, evidence)
        return [self._worth(scene, read_note(note)) for note in candidates]

    def _worth(self, scene: "_Scene", record: "NoteText") -> Worth:
        near = sum(word in record.long or not parts.isdisjoint(record.forms) for word, parts in scene.parts)
        relevance = min(1.0, share(scene.asked, record.forms) + 0.08 * near)
        coverage = share(scene.wanted, record.forms)
        novelty = 1.0 - share(record.forms, scene.held)
        new = record.names - scene.names
        bridge = min(1.0, 0.2 * len(new) + 0.3 * len(new & _MONTHS))
        score = self.relevance * relevance + self.coverage * coverage + self.novelty * novelty + self.bridge * bridge
        return Worth(relevance, coverage, novelty, bridge, max(score, 0.35) if relevance >= 0.25 else score)

    def _tiers(self) -> tuple[tuple[Callable[[Worth], float], Callable[[Worth], bool], int], ...]:
        def by_score(worth: Worth) -> float:
            return worth.score

        def by_relevance(worth: Worth) -> float:
            return worth.relevance

        def strong(worth: Worth) -> bool:
            return worth.score >= 0.22 or (worth.bridge >= 0.30 and worth.relevance >= 0.10)

        return (
            (by_score, lambda worth: worth.score >= 0.05, self.keep),
            (by_relevance, lambda worth: worth.relevance >= 0.10, self.keep),
            (by_score, strong, self.hard),
            (by_relevance, lambda worth: worth.relevance >= 0.08, self.hard),
        )


def words(text: str) -> list[str]:
    """The distinct lower-case words of three letters or digits and more, in order of appearance."""
    return list(dict.fromkeys(_WORD.findall(text.lower())))


def share(wanted: frozenset[str], held: frozenset[str]) -> float:
    """The share of `wanted` that is held; 0 where nothing is wanted."""
    return len(wanted & held) / len(wanted) if wanted else 0.0


def forms(said: Iterable[str]) -> frozenset[str]:
    """Words with their crude stems: without -ing (and with -e), -ed, -d, -s, and without two or three first letters."""
    found = set[str]()
    for word in said:
        found.add(word)
        if word.endswith("ing") and len(word) > 5:
            found |= {word[:-3], word[:-3] + "e"}
        if word.endswith("ed") and len(word) > 4:
            found |= {word[:-2], word[:-1]}
        if word.endswith("s") and len(word) > 4:
            found.add(word[:-1])
        if len(word) >= 6:
            found |= {word[2:], word[3:]}
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Scene:
    """What candidates are held against: forms of the question, of what is missing and of the evidence, its `names`.

    `parts`: the question's words that may match by part, each with its parts.
    """

    asked: frozenset[str]
    parts: tuple[tuple[str, frozenset[str]], ...]
    wanted: frozenset[str]
    held: frozenset[str]
    names: frozenset[str]

    @classmethod
    def of(cls, question: str, missing: Sequence[str], evidence: Iterable[Note]) -> "_Scene":
        known = [read_note(note) for note in evidence]
        said = words(question)
        return cls(
            asked=forms(said),
            parts=tuple((word, _parts(word)) for word in [word for word in said if len(word) >= 4][:12]),
            wanted=forms(words(" ".join(missing[:4]))),
            held=frozenset[str]().union(*(text.forms for text in known)),
            names=frozenset[str]().union(*(text.names for text in known)),
        )


@dataclass(frozen=True, slots=True)
class NoteText:
    """A record's distinct `words`, their `forms`, the `long` forms (four letters) as one string, its `names`."""

    words: frozenset[str]
    forms: frozenset[str]
    long: str
    names: frozenset[str]


def read_note(note: Note) -> NoteText:
    """The words of a record and of its speaker."""
    return _text(note.text, note.speaker)


# Every question of a conversation meets the same records.
@lru_cache(maxsize=1024)
def _text(text: str, speaker: str) -> NoteText:
    text = f"{text} {speaker}"
    said = frozenset(words(text))
    found = forms(said)
    long = " ".join(form for form in found if len(form) >= 4)
    return NoteText(said, found, long, frozenset(_NAME.findall(text)))


def _parts(word: str) -> frozenset[str]:
    """The parts of a word that are four letters or longer."""
    return frozenset(word[start:end] for start in range(len(word)) for end in range(start + 4, len(word) + 1))

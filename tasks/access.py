"""What a reader may read beyond its pool: views over one conversation, counted and bounded."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from readers.types import Asked, Budget, Note, OverBudget

Embed = Callable[[Sequence[str]], NDArray[np.float32]]
_TOKEN = re.compile(r"[a-z0-9]{2,}")
_DAY = 86_400.0


class Library:
    """One conversation's records in time order, with the statistics that its views need, made when first used."""

    def __init__(self, notes: Sequence[Note], embed: Embed) -> None:
        self.notes = tuple(notes)
        self.embed = embed
        self.places = {note.id: place for place, note in enumerate(self.notes)}
        self.tokens = np.array([note.tokens for note in self.notes], np.int32)
        self._named: dict[str, list[int]] = {}

    @cached_property
    def postings(self) -> dict[str, tuple[NDArray[np.intp], NDArray[np.float64]]]:
        """Token → places and 1 + ln(1 + tf) of the records that hold it in text or speaker."""
        found: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for place, note in enumerate(self.notes):
            for token, count in Counter(_TOKEN.findall(f"{note.text} {note.speaker}".lower())).items():
                found[token].append((place, 1.0 + math.log1p(count)))
        columns = {token: zip(*held, strict=True) for token, held in found.items()}
        return {token: (np.array(next(own), np.intp), np.array(next(own))) for token, own in columns.items()}

    @cached_property
    def lowered(self) -> list[tuple[str, str]]:
        """Each record's text and speaker in lower case."""
        return [(note.text.lower(), note.speaker.lower()) for note in self.notes]

    @cached_property
    def sessions(self) -> dict[int, list[int]]:
        """Session → places in time order."""
        found: dict[int, list[int]] = defaultdict(list)
        for place, note in enumerate(self.notes):
            found[note.session].append(place)
        return dict(found)

    def by_words(self, cue: str) -> list[int]:
        """Places of the records that share a token with `cue`, by the sum of (1 + ln(1 + tf)) ln(1 + N / (1 + df))."""
        scores = np.zeros(len(self.notes))
        for token in dict.fromkeys(_TOKEN.findall(cue.lower())):
            if token in self.postings:
                places, frequencies = self.postings[token]
                scores[places] += frequencies * math.log1p(len(self.notes) / (1 + len(places)))
        found = np.flatnonzero(scores)
        best_first: list[int] = found[np.argsort(-scores[found], kind="stable")].tolist()
        return best_first

    def by_name(self, name: str) -> list[int]:
        """Places of the records that hold `name`, by how often, two more where its bearer speaks."""
        wanted = name.lower()
        if wanted not in self._named:
            scores = [text.count(wanted) + 2 * (speaker == wanted) for text, speaker in self.lowered]
            found = (place for place, score in enumerate(scores) if score)
            self._named[wanted] = sorted(found, key=lambda place: -scores[place])
        return self._named[wanted]

    def by_session(self, anchor: str) -> list[int]:
        """Places of the anchor's session in time order; none for an unknown anchor."""
        if anchor not in self.places:
            return []
        return self.sessions[self.notes[self.places[anchor]].session]

    def by_time(self, anchor: float, days: float) -> list[int]:
        """Places within `days` of `anchor` (seconds since the epoch), nearest first."""
        gaps = {place: abs(note.time - anchor) for place, note in enumerate(self.notes)}
        return sorted((place for place in gaps if gaps[place] <= days * _DAY), key=lambda place: (gaps[place], place))


class QuestionAccess:
    """One question's reads of a `Library`. The views' formulas are those of the BFR release; ties go to the older.

    `calls` counts the views asked for. A call beyond `budget.calls` raises `OverBudget` and is not counted.
    """

    def __init__(self, library: Library, budget: Budget) -> None:
        self._library = library
        self._limit = budget.calls
        self._found: dict[str, list[int]] = {}
        self.calls = 0

    @property
    def asked(self) -> Asked | None:
        """What a model was asked; None where there is no model to ask."""
        return None

    def ask(self, prompt: str, **variables: str) -> str:
        """Raises `ValueError`: there is no model to ask. See `tasks.model_access`."""
        raise ValueError(f"prompt {prompt}: a reader with a model expected")

    def first_tokens(self, prompt: str, each: Sequence[Mapping[str, str]]) -> list[dict[str, float]]:
        """Raises `ValueError` as `ask` does."""
        raise ValueError(f"prompt {prompt}: a reader with a model expected")

    def rerank(self, question: str, texts: Sequence[str], dialect: str) -> NDArray[np.float64]:
        """Raises `ValueError` as `ask` does."""
        raise ValueError("rerank: a reader with a model expected")

    def everything(self) -> tuple[tuple[str, ...], NDArray[np.int32]]:
        """All record ids in time order and their token counts."""
        return tuple(self._library.places), self._library.tokens

    def notes(self, ids: Sequence[str]) -> tuple[Note, ...]:
        """The records of `ids`, in that order. Raises `KeyError` for an id of another conversation."""
        return tuple(self._library.notes[self._library.places[id]] for id in ids)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) unit vectors by the store's encoder."""
        return self._library.embed(texts)

    def ranked(self, ids: Sequence[str], most: int, without: Collection[str]) -> tuple[Note, ...]:
        """The next records of a ranking that the reader holds. Raises `KeyError` for another conversation's id."""
        return self._view([self._library.places[id] for id in ids], most, without)

    def text(self, cue: str, most: int, without: Collection[str]) -> tuple[Note, ...]:
        """Records that share words with `cue`."""
        if cue not in self._found:
            self._found[cue] = self._library.by_words(cue)
        return self._view(self._found[cue], most, without)

    def entity(self, name: str, most: int, without: Collection[str]) -> tuple[Note, ...]:
        """Records that hold `name`, its bearer's own first at equal counts."""
        return self._view(self._library.by_name(name), most, without)

    def session(self, anchor: str, most: int, without: Collection[str]) -> tuple[Note, ...]:
        """Records of the anchor's session in time order."""
        return self._view(self._library.by_session(anchor), most, without)

    def time(self, anchor: float, days: float, most: int, without: Collection[str]) -> tuple[Note, ...]:
        """Records near a time, nearest first."""
        return self._view(self._library.by_time(anchor, days), most, without)

    def _view(self, places: Iterable[int], most: int, without: Collection[str]) -> tuple[Note, ...]:
        if self._limit is not None and self.calls >= self._limit:
            raise OverBudget("retrieval calls", self._limit)
        self.calls += 1
        notes = (self._library.notes[place] for place in places)
        return tuple(islice((note for note in notes if note.id not in without), max(most, 0)))

"""What a record says: its words, its sentences and its dates, each found once."""

import re
from dataclasses import dataclass
from datetime import date
from functools import cached_property

from storage.records import Record
from tasks.answerers.dates import Mention, day, mentions, month
from tasks.text import STOP_WORDS, stem, terms

READ_CHARACTERS = 20_000
"""How much of a text is read."""
CACHED_RECORDS = 1 << 14

LIGHT = STOP_WORDS | frozenset(
    re.findall(
        r"\S+",
        """
        i'm i've i'd i'll it's that's there's let's can't don't didn't im us am yeah yes yep yup nope okay ok
        hey hi hello wow woah whoa oh oops haha lol thanks thank congrats please sure well btw ya
        really definitely actually pretty totally absolutely exactly super much always even still ever never
        lately recently finally gonna wanna gotta got get getting going go went make made makes lot lots bit
        kinda way one thing things something like know think guess feel felt love loved talk check later
        cool awesome great good nice glad happy sorry
        """,
    )
)
"""Words that fill a chat: no answer begins or ends with one."""


class Known:
    """The records read so far, at most `CACHED_RECORDS`."""

    def __init__(self) -> None:
        self._reads: dict[tuple[str, str], Read] = {}

    def read(self, record: Record) -> "Read":
        """What is known of a record; equal records share it, an id that means another record does not."""
        key = (record.conversation_id, record.id)
        known = self._reads.get(key)
        if known is None or (known.record is not record and known.record != record):
            if len(self._reads) >= CACHED_RECORDS:
                self._reads.clear()
            known = self._reads[key] = Read(record)
        return known


class Read:
    """A record with all that is asked of it again and again.

    `text`: without the speaker's name before it, white space squeezed. `speaker`: the stems of that name.
    `said_on`: the day, or None where it is unknown. `asks`: it ends with a question mark.
    """

    def __init__(self, record: Record) -> None:
        self.record = record
        text = record.text[:READ_CHARACTERS].removeprefix(f"{record.speaker}:")
        self.text = " ".join(text.split())
        self.speaker = frozenset(stem(word) for word in record.speaker.lower().split())
        self.said_on: date | None = record.said_at.date() if record.said_at else None
        self.asks = self.text.endswith("?")

    @cached_property
    def terms(self) -> frozenset[str]:
        """Stems of the text's words that are not stop words."""
        return frozenset(terms(self.text))

    @cached_property
    def sentences(self) -> tuple["Sentence", ...]:
        """The text's sentences in order; what stands in square brackets is one of its own."""
        parts = (part for part in _SENTENCE_END.split(self.text) if part)
        return tuple(_sentence(part, place) for place, part in enumerate(parts))

    @cached_property
    def dates(self) -> tuple[Mention, ...]:
        """Expressions of time, without the record's own date where it was written into the text."""
        own = day(self.said_on) if self.said_on else None
        return tuple(m for m in mentions(self.text, self.said_on) if not (m.explicit and m.printed == own))

    def said_in(self, times: frozenset[str]) -> bool:
        """Whether one of `times` is the day, the month or the year that the record was said in."""
        on = self.said_on
        return on is not None and not times.isdisjoint((day(on), month(on), str(on.year)))


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a record, the `place`-th from 0; `asks`: it ends with a question mark."""

    text: str
    place: int
    words: tuple["Word", ...]
    terms: frozenset[str]
    asks: bool


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a sentence, from `start` to `end`.

    `content`: says more than grammar and chat. `barred`: punctuation stands before it.
    """

    stem: str
    start: int
    end: int
    content: bool
    barred: bool


def _sentence(text: str, place: int) -> Sentence:
    words, last = [], 0
    for match in _WORD.finditer(text):
        root = match[0].lower().replace("’", "'").removesuffix("'s")
        content = root not in LIGHT and root.split("'")[0] not in LIGHT
        barred = bool(text[last : match.start()].strip())
        words.append(Word(stem(root), match.start(), match.end(), content, barred))
        last = match.end()
    return Sentence(text, place, tuple(words), frozenset(terms(text)), text.endswith("?"))


_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[^a-z])| (?=\[)|(?<=[\])]) ")
_WORD = re.compile(r"[^\W_]+(?:['’.&+-][^\W_]+)*")

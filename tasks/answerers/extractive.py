"""Which span of the evidence answers a question, without a model."""

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property, lru_cache
from itertools import chain
from typing import ClassVar

from storage.records import Question, Record
from tasks.answerers.dates import Mention, day, mentions, month
from tasks.outcomes import NO_INFORMATION, Answer
from tasks.provenance import code
from tasks.text import STOP_WORDS, stem, terms

# Weights, in units of one new content word.
NAME_WEIGHT = 5.0  # the record's speaker is named in the question
MENTION_SHARE = 0.1  # ... of it, where the record only speaks of who is named
DATE_WEIGHT = 2.0  # the record was said on a date that the question names
REPLY_SHARE = 0.6  # of the score of the question that the record replies to
RANKED = 8  # records kept; a list joins no more
JOIN_SHARE = 0.6  # of the best record's score, to join a list
SENTENCE_OVERLAP, SENTENCE_PLACE, SENTENCE_ASKS = 1.5, 0.3, 4.0
SPAN_AFTER_KNOWN, SPAN_DISTANCE, SPAN_BARRIER = 0.5, 0.1, 0.4
SPAN_FUNCTION, SPAN_LENGTH = 0.15, 0.08
SPAN_WORDS = 12
ANSWER_CHARACTERS = 240
READ_CHARACTERS = 20_000
CACHED_RECORDS = 1 << 14


@dataclass(frozen=True)
class Extractive:
    """Picks the answer's words from the evidence by word overlap and by the question's kind.

    `threshold`: the least share, in [0, 1], of the question's weight that the best record must cover;
    below it the reply is `NO_INFORMATION`. `joined`: how many records a list answer may draw on.
    Deterministic; ties go to the older record and to the earlier span. At most the first 20,000 characters
    of a record are read. The rules were written after reading samples of all ten LoCoMo conversations; the
    weights were searched on 26, 30, 41, 42, 43 alone. On gold evidence these score 0.43 by stem F1, the other
    five 0.41 (non-adversarial questions).
    Raises `ValueError` for a threshold outside [0, 1] or `joined` outside [1, 8].
    """

    name: ClassVar[str] = "extractive"
    title: ClassVar[str] = "picks the answer's words from the evidence (offline, no model)"
    offline: ClassVar[bool] = True

    threshold: float = 0.3
    joined: int = 4
    _known: dict[tuple[str, str], "_Read"] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1 or not 1 <= self.joined <= RANKED:
            raise ValueError(
                f"threshold must be in [0, 1] and joined in [1, {RANKED}], not {self.threshold} and {self.joined}"
            )

    def spec(self) -> dict[str, object]:
        """The code that decides, so that a changed rule is another answerer."""
        return {"code": code("tasks.answerers.extractive", "tasks.answerers.dates", "tasks.text")}

    def answer_many(self, items: Sequence[tuple[Question, Sequence[Record]]]) -> Iterator[Answer]:
        for question, evidence in items:
            yield Answer(self._answer(question, evidence), "ok")

    def _answer(self, question: Question, evidence: Sequence[Record]) -> str:
        asked = _asked(question.text[:READ_CHARACTERS])
        ranked = _ranked(asked, [self._read(record) for record in evidence])
        if not ranked or ranked[0].coverage < self.threshold:
            return NO_INFORMATION
        several = self.joined if asked.plural else 1
        near = [item for item in ranked[:several] if item.score >= JOIN_SHARE * ranked[0].score]
        return _ANSWERS[asked.kind](asked, near or ranked[:1], ranked[:3]) or NO_INFORMATION

    def _read(self, record: Record) -> "_Read":
        """What is known of a record; equal records share it, an id that means another record does not."""
        key = (record.conversation_id, record.id)
        known = self._known.get(key)
        if known is None or (known.record is not record and known.record != record):
            if len(self._known) >= CACHED_RECORDS:
                self._known.clear()
            known = self._known[key] = _Read(record)
        return known


# ---- the question


@dataclass(frozen=True, slots=True)
class _Asked:
    """`terms`: content stems without `names`, the stems of capitalised words. `times`: dates it names."""

    kind: str
    terms: frozenset[str]
    names: frozenset[str]
    times: frozenset[str]
    plural: bool
    titled: bool


@lru_cache(maxsize=1 << 13)
def _asked(text: str) -> _Asked:
    text = " ".join(text.split())
    lowered = text.lower()
    names = frozenset(stem(name.lower()) for name in _NAME.findall(text) if name.lower() not in STOP_WORDS)
    return _Asked(
        kind=next(kind for kind, pattern in _KINDS if pattern.search(lowered)),
        terms=frozenset(terms(text)) - names,
        names=names,
        times=frozenset(mention.printed for mention in mentions(text, None)),
        plural=_PLURAL.search(lowered) is not None,
        titled=_TITLED.search(lowered) is not None,
    )


_NAME = re.compile(r"(?<=[ (\"'])[A-Z][^\W\d_]+|^(?!What|Which|Who|Where|When|Why|How)[A-Z][^\W\d_]+")
_PLURAL = re.compile(
    r"\b(?:what|which) (?:\w+ ){0,2}(?!does|is|was|has)\w{3,60}s (?:do|does|did|has|have|are|were|is)\b"
    r"|\bwhat (?:are|were)\b"
)
_TITLED = re.compile(
    r"^(?:what|which)\b.*\b(?:books?|movies?|films?|songs?|games?|series|shows?|albums?|bands?|artists?"
    r"|quotes?|names?|called|named|titles?)\b"
)
_KINDS = (
    (
        "when",
        re.compile(
            r"^(?:when|(?:in |on )?(?:what|which) (?:year|month|date|day|week|weekend)\b)"
            r"|\bwhen (?:did|was|is|will)\b"
        ),
    ),
    ("how_long", re.compile(r"\bhow (?:long|old)\b|\bhow many (?:days|weeks|months|years|hours|minutes)\b")),
    ("how_often", re.compile(r"\bhow often\b")),
    ("how_many", re.compile(r"\bhow (?:many|much)\b")),
    ("who", re.compile(r"^(?:with )?who(?:m|se)?\b")),
    (
        "where",
        re.compile(
            r"^where\b|\bfrom where\b"
            r"|\b(?:what|which) (?:\w+ )?(?:cit(?:y|ies)|countr(?:y|ies)|states?|place)\b"
        ),
    ),
    ("why", re.compile(r"^why\b")),
    (
        "yes_no",
        re.compile(r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should)\b|yes or no"),
    ),
    ("what", re.compile("")),
)


# ---- the records


class _Read:
    """A record with all that is asked of it again and again."""

    def __init__(self, record: Record) -> None:
        self.record = record
        text = record.text[:READ_CHARACTERS].removeprefix(f"{record.speaker}:")
        self.text = " ".join(text.split())
        self.speaker = frozenset(stem(word) for word in record.speaker.lower().split())
        self.said_on: date | None = record.said_at.date() if record.said_at else None
        self.asks = self.text.endswith("?")

    @cached_property
    def terms(self) -> frozenset[str]:
        return frozenset(terms(self.text))

    @cached_property
    def sentences(self) -> tuple["_Sentence", ...]:
        parts = (part for part in _SENTENCE_END.split(self.text) if part)
        return tuple(_sentence(part, place) for place, part in enumerate(parts))

    @cached_property
    def dates(self) -> tuple[Mention, ...]:
        """Expressions of time, without the record's own date where it was written into the text."""
        own = day(self.said_on) if self.said_on else None
        return tuple(m for m in mentions(self.text, self.said_on) if not (m.explicit and m.printed == own))

    def said_in(self, times: frozenset[str]) -> bool:
        on = self.said_on
        return on is not None and not times.isdisjoint((day(on), month(on), str(on.year)))


@dataclass(frozen=True, slots=True)
class _Word:
    """`content`: says more than grammar and chat. `barred`: punctuation stands before it."""

    stem: str
    start: int
    end: int
    content: bool
    barred: bool


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    place: int
    words: tuple[_Word, ...]
    terms: frozenset[str]
    asks: bool


def _sentence(text: str, place: int) -> _Sentence:
    words, last = [], 0
    for match in _WORD.finditer(text):
        root = match[0].lower().replace("’", "'").removesuffix("'s")
        content = root not in _LIGHT and root.split("'")[0] not in _LIGHT
        barred = bool(text[last : match.start()].strip())
        words.append(_Word(stem(root), match.start(), match.end(), content, barred))
        last = match.end()
    return _Sentence(text, place, tuple(words), frozenset(terms(text)), text.endswith("?"))


_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[^a-z])| (?=\[)|(?<=[\])]) ")
_WORD = re.compile(r"[^\W_]+(?:['’.&+-][^\W_]+)*")
_LIGHT = STOP_WORDS | frozenset(
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


# ---- which records


@dataclass(frozen=True, slots=True)
class _Ranked:
    """`coverage`: the share of the question's weight that the record holds, in [0, 1]."""

    read: _Read
    score: float
    coverage: float


def _ranked(asked: _Asked, reads: Sequence[_Read]) -> list[_Ranked]:
    """The best records, at most `RANKED`, best first; equal scores keep their order."""
    shared = [asked.terms & read.terms for read in reads]
    weights = _weights(asked.terms, shared)
    total = math.fsum(weights.values()) + (NAME_WEIGHT if asked.names else 0.0)
    held = [
        math.fsum([weights[term] for term in found]) + _name_score(asked, read)
        for found, read in zip(shared, reads, strict=True)
    ]
    scores = _scores(asked, reads, held)
    best = heapq.nlargest(RANKED, range(len(reads)), key=scores.__getitem__)
    return [_Ranked(reads[at], scores[at], held[at] / total if total else 0.0) for at in best]


def _scores(asked: _Asked, reads: Sequence[_Read], held: Sequence[float]) -> list[float]:
    """What each record holds, with what its date and the question before it add."""
    scores: list[float] = []
    for at, read in enumerate(reads):
        score = held[at]
        if asked.times and read.said_in(asked.times):
            score += DATE_WEIGHT
        if at and reads[at - 1].asks and _follows(read.record, reads[at - 1].record):
            score += REPLY_SHARE * scores[-1]
        scores.append(score)
    return scores


def _weights(asked: frozenset[str], shared: Sequence[frozenset[str]]) -> dict[str, float]:
    """Each term's BM25 inverse document frequency among the evidence records.

    Sums over them are exact (`fsum`), for the order of a set changes from process to process.
    """
    held = Counter(chain.from_iterable(shared))
    n = len(shared)
    return {term: math.log(1 + (n - held[term] + 0.5) / (held[term] + 0.5)) for term in asked}


def _name_score(asked: _Asked, read: _Read) -> float:
    if not asked.names.isdisjoint(read.speaker):
        return NAME_WEIGHT
    return 0.0 if asked.names.isdisjoint(read.terms) else NAME_WEIGHT * MENTION_SHARE


def _follows(this: Record, last: Record) -> bool:
    """Whether `this` is the turn right after `last`."""
    return this.position == last.position + 1 and this.session_id == last.session_id


# ---- which span

_Found = Callable[[_Asked, Sequence[_Ranked], Sequence[_Ranked]], str | None]
"""From the question, the records that a list may join, and the three best records."""


def _when(asked: _Asked, near: Sequence[_Ranked], best: Sequence[_Ranked]) -> str | None:
    """The first date that the best record speaks of, else the day it was said."""
    read = best[0].read
    if read.dates:
        return read.dates[0].printed
    return day(read.said_on) if read.said_on else None


def _how_long(asked: _Asked, near: Sequence[_Ranked], best: Sequence[_Ranked]) -> str | None:
    return _first_match(_DURATION, asked, best) or _what(asked, near, best)


def _how_often(asked: _Asked, near: Sequence[_Ranked], best: Sequence[_Ranked]) -> str | None:
    return _first_match(_FREQUENCY, asked, best) or _what(asked, near, best)


def _how_many(asked: _Asked, near: Sequence[_Ranked], best: Sequence[_Ranked]) -> str | None:
    return _first_match(_AMOUNT, asked, best) or _what(asked, near, best)


def _who(asked: _Asked, near: Sequence[_Ranked], best: Sequence[_Ranked]) -> str | None:
    """A new name, else a relation ("best friend")."""
    speakers = frozenset[str]().union(*(item.read.speaker for item in best))
    names = (_new_name(asked, item, speakers) for item in best[:2])
    return (
        next(filter(None, names), None) or _first_match(_PERSON, asked, best[:2]) or _what(asked, near, best)
    )


def _where(asked: _Asked, near: Sequence[_Ranked], best: Sequence[_Ranked]) -> str | None:
    """Named places of the records that may be joined, else the phrase after a preposition of place."""
    places = [place for item in near if (place := _first_match(_NAMED_PLACE, asked, [item]))]
    if places:
        return _listed(places)
    return (
        _first_match(_NAMED_PLACE, asked, best[:2])
        or _first_match(_PLACE, asked, best[:1])
        or _what(asked, near, best)
    )


def _why(asked: _Asked, near: Sequence[_Ranked], best: Sequence[_Ranked]) -> str | None:
    return _first_match(_REASON, asked, best[:2]) or _what(asked, near, best)


def _yes_no(asked: _Asked, near: Sequence[_Ranked], best: Sequence[_Ranked]) -> str | None:
    sentences = _by_overlap(asked, best[0])
    return "No" if sentences and _DENIAL.search(sentences[0].text) else "Yes"


def _what(asked: _Asked, near: Sequence[_Ranked], best: Sequence[_Ranked]) -> str | None:
    titles = (_title(asked, item) or _best_span(asked, item) for item in near)
    return _listed([span for span in titles if span])


def _listed(spans: Sequence[str]) -> str | None:
    return ", ".join(dict.fromkeys(span[:ANSWER_CHARACTERS] for span in spans)) or None


def _first_match(pattern: re.Pattern[str], asked: _Asked, items: Sequence[_Ranked]) -> str | None:
    """`pattern`'s group "span" in the best sentence that has it, unless it only repeats a name of the
    question or the speaker's."""
    for item in items:
        known = asked.names | item.read.speaker
        for sentence in _by_overlap(asked, item):
            for match in pattern.finditer(sentence.text):
                if stem(match["span"].split(" ", 1)[0].lower()) not in known:
                    return match["span"][:ANSWER_CHARACTERS]
    return None


def _by_overlap(asked: _Asked, item: _Ranked) -> list[_Sentence]:
    return sorted(item.read.sentences, key=lambda s: (s.asks, -len(s.terms & asked.terms)))


def _title(asked: _Asked, item: _Ranked) -> str | None:
    """For a question about a named work: what stands in quotation marks, else a new name."""
    if not asked.titled:
        return None
    quoted = _first_match(_QUOTED, asked, [item])
    return quoted or _new_name(asked, item, asked.terms | item.read.speaker)


def _new_name(asked: _Asked, item: _Ranked, known: frozenset[str]) -> str | None:
    """The first capitalised run that is neither `known` nor a sentence's lone first word."""
    known = known | asked.names
    for sentence in _by_overlap(asked, item):
        for match in _CAPITALS.finditer(sentence.text):
            words = match[0].lower().split()
            lone_first = match.start() == 0 and len(words) == 1
            if not lone_first and words[0] not in _LIGHT and known.isdisjoint(map(stem, words)):
                return match[0][:ANSWER_CHARACTERS]
    return None


def _best_span(asked: _Asked, item: _Ranked) -> str | None:
    """The span that tells most beside what the question says, near to what it says."""
    known = asked.terms | asked.names | item.read.speaker
    best, best_score = None, -math.inf
    for sentence in item.read.sentences:
        span, score = _span(sentence, known)
        score += SENTENCE_OVERLAP * len(sentence.terms & asked.terms)
        score -= SENTENCE_PLACE * sentence.place + SENTENCE_ASKS * sentence.asks
        if span and score > best_score:
            best, best_score = span, score
    return best


def _span(sentence: _Sentence, known: frozenset[str]) -> tuple[str | None, float]:
    """The best run of at most `SPAN_WORDS` words that begins and ends with a new content word."""
    words = sentence.words
    best, best_score, last_known = (0, 0), -math.inf, -1
    for first, word in enumerate(words):
        if word.stem in known:
            last_known = first
        elif word.content:
            start = SPAN_AFTER_KNOWN - SPAN_DISTANCE * (first - last_known) if last_known >= 0 else 0.0
            last, score = _longest_gain(words[first : first + SPAN_WORDS], known)
            if start + score > best_score:
                best, best_score = (word.start, words[first + last].end), start + score
    return sentence.text[slice(*best)] or None, best_score


def _longest_gain(words: Sequence[_Word], known: frozenset[str]) -> tuple[int, float]:
    """Where a span that begins with `words[0]` had best end, and its score."""
    score, best, best_score = 0.0, 0, -math.inf
    for at, word in enumerate(words):
        new = word.content and word.stem not in known
        score += float(new) - (SPAN_FUNCTION if _is_grammar(word) else 0.0)
        score -= SPAN_LENGTH * at + (SPAN_BARRIER if word.barred and at else 0.0)
        if new and score > best_score:
            best, best_score = at, score
    return best, best_score


def _is_grammar(word: _Word) -> bool:
    return not word.content and word.stem != "and"


_ANSWERS: Mapping[str, _Found] = {
    "when": _when,
    "how_long": _how_long,
    "how_often": _how_often,
    "how_many": _how_many,
    "who": _who,
    "where": _where,
    "why": _why,
    "yes_no": _yes_no,
    "what": _what,
}

_COUNT = r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_UNIT = r"(?:days?|weeks?|months?|years?|yrs?|hours?|minutes?)"
_DURATION = re.compile(
    rf"\b(?P<span>since \d{{4}}|(?:\d[\d,.]*|{_COUNT}|a few|several|a couple of|half an?|an?) {_UNIT})\b",
    re.I,
)
_FREQUENCY = re.compile(
    r"\b(?P<span>(?:once|twice|two or three times|\w+ times) (?:a|per|every) \w+"
    r"|every (?:single )?(?:other )?\w+|daily|weekly|monthly|regularly)\b",
    re.I,
)
_AMOUNT = re.compile(rf"(?P<span>\$?\b(?:\d(?:[\d,.]*\d)?|{_COUNT}|twenty|hundreds?|once|twice)\b%?)", re.I)
_CAPITAL = r"[A-Z][^\W\d_]+(?: (?:of |the |de )?[A-Z][^\W\d_]+)*"
_CAPITALS = re.compile(rf"\b{_CAPITAL}")
_QUOTED = re.compile(r"[\"“](?P<span>[^\"“”]{2,80})[\"”]")
_NAMED_PLACE = re.compile(
    rf"\b(?:in|at|to|from|near|around|visited|visiting|of) (?:the )?(?P<span>{_CAPITAL}(?:, {_CAPITAL})*)"
)
_PLACE = re.compile(
    r"\b(?:in|at|to|from|near|on|outside|inside) (?:a |an |the |my |our |his |her |this |some )?"
    r"(?P<span>[a-z][\w'-]*(?: (?!(?:and|with|for|to|last|but|it|is|was)\b)[a-z][\w'-]*){0,4})"
)
_REASON = re.compile(r"\b(?:because|cause|since|so that|as it|due to|to) (?P<span>[^.!?;,]{3,90})", re.I)
_DENIAL = re.compile(r"\b(?:no|not|never|nope|haven't|don't|didn't|isn't|wasn't|can't)\b", re.I)
_PERSON = re.compile(
    r"\b(?:my|our|a|an|some|the) (?P<span>(?:\w+ )?(?:friends?|famil(?:y|ies)|mom|mother|dad|father|parents"
    r"|sister|brother|siblings|wife|husband|partner|girlfriend|boyfriend|kids?|children|sons?|daughters?"
    r"|grandma|grandpa|grandmother|grandfather|cousins?|aunt|uncle|neighbou?rs?|colleagues?|coworkers?"
    r"|teammates?|coach|boss|mentors?|fans?|team))\b",
    re.I,
)

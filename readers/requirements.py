"""How far does each note meet each requirement of a question?

Source: Li et al., arXiv 2610.09348v1, and the authors' release. The word lists below are ours: the release's own are
not copied, so a count of matched words can differ from its.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from readers.types import Floats, Note

WEIGHTS = {
    "time": 1.2,
    "object": 1.3,
    "answer_candidate": 1.3,
    "event": 1.1,
    "action": 1.1,
    "entity": 1.0,
    "speaker": 0.8,
    "keyword": 0.5,
    "tag": 0.5,
    "session": 0.4,
}
"""What a matched value of each bucket counts; buckets not named here count `OTHER`."""
OTHER = 0.6
RARE = ("time", "event", "object", "answer_candidate")
"""Buckets whose presence is worth a bonus where fewer than half of the notes have them."""
DERIVED = frozenset({"action", "answer_candidate", "session"})
"""Buckets derived from others: they count as new attributes, but not when two notes are compared."""

_LONGEST = 40

Buckets = dict[str, frozenset[str]]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MONTHS = re.findall(r"\w+", "January February March April May June July August September October November December")
_MONTH = {name.lower(): number for number, name in enumerate(_MONTHS, 1)}
_DATE = re.compile(rf"\b(\d{{1,2}})\s+({'|'.join(_MONTHS)}),?\s+(\d{{4}})\b", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_NAME = re.compile(r"\b[A-Z][a-z]{2,}\b")
_CAPITAL = re.compile(r"\b[A-Z][A-Za-z'-]{2,}")
_WORD = re.compile(r"[a-z][a-z'-]+")
_QUOTED = re.compile(r'"([^"]{3,80})"')
_TEMPORAL = re.compile(r"\b(?:when|what year|what date|how long|how many days|before|after)\b", re.IGNORECASE)
_NO_NAMES = _words(
    """
    What Which When Where Who Whom Whose How Why Does Did Has Have Had Are Was Were Is The And But For Can Could
    Would Will Should Speaker Image In On At
    """
) | frozenset(_MONTHS)
_NO_ENTITIES = frozenset({"Speaker", "Image", "May", "When", "What", "Where"})
_STOP_WORDS = _words(
    """
    the and but nor for not are was were been being have has had having does did doing will would could should shall
    may might must can what when where who whom whose how which why that this these those its it's they them their
    she her his him you your our about any all some than then into over after before from with there here just very
    too also i'm i've i'll you're that's
    """
)
_GENERIC = _words(
    """
    activity chat communication context conversation dialogue discussion event experience friend general greeting
    information interaction memory message personal relationship social support talk thing topic update
    """
)
_EVENTS = _words(
    """
    adopt adopted apply applied arrive arrived attend attended begin began buy bought build built celebrate
    celebrated come came cook cooked create created draw drew find found finish finished get got give gave go going
    went graduate graduated host hosted join joined launch launched learn learned leave left lose lost make made
    marry married meet met move moved open opened order ordered paint painted perform performed plan planned play
    played present presented read receive received ride rode run ran sell sold send sent show showed sign signed
    start started study studied take took teach taught travel traveled travelled visit visited volunteer
    volunteered win won work worked write wrote
    """
)
_ASKED = {
    "time": re.compile(r"\b(?:when|what year|what date|how long ago)\b", re.IGNORECASE),
    "person": re.compile(r"\b(?:who|whose)\b", re.IGNORECASE),
    "place": re.compile(r"\b(?:where|location)\b", re.IGNORECASE),
    "what": re.compile(r"\b(?:what|which)\b", re.IGNORECASE),
}


@dataclass(frozen=True)
class Requirement:
    """One thing that the evidence must hold. `kind`: the paper's word for it, such as `entity_anchor`."""

    id: str
    text: str
    kind: str


@dataclass(frozen=True)
class Attributes:
    """What a note shows. `buckets`: bucket → lower-case values; `lines`: the same as text.

    `named`: bucket:value → weight, of the buckets by which two notes are compared; `derived`: of the others.
    """

    buckets: Buckets
    lines: dict[str, str]
    named: dict[str, float]
    derived: dict[str, float]


def rules(question: str) -> tuple[Requirement, ...]:
    """Requirements without a model: R1 the question, R2 its first capitalised person, R3 a temporal bridge.

    R3 stands where a year, "when", "before", "after", "how long" or "how many days" is asked for. Deviation: in the
    release other question patterns (visits, studies, who, what) can hide the temporal one; here nothing does.
    """
    found = [Requirement("R1", question, "answer_bearing_fact")]
    person = next((name for name in _NAME.findall(question) if name not in _NO_NAMES), None)
    if person:
        found.append(Requirement("R2", f"entity anchor for {person}", "entity_anchor"))
    if _TEMPORAL.search(question) or _YEAR.search(question):
        text = "event time / temporal bridge needed to answer the question"
        found.append(Requirement("R3", text, "temporal_bridge"))
    return tuple(found)


def attributes(notes: Sequence[Note]) -> list[Attributes]:
    """The attributes of each note; every speaker among `notes` is a name to look for in all of them."""
    speakers = tuple(sorted({note.speaker for note in notes if note.speaker}))
    return [_of_note(note.text, note.speaker, note.session, _day(note.time), speakers) for note in notes]


def coverage(
    requirements: Sequence[Requirement], vectors: Floats, notes: Sequence[Attributes], rows: Floats
) -> NDArray[np.float64]:
    """(J, n) c(r, m) = .45 attr + .35 max(cos, 0) + .20 rare, in [0, .86].

    `vectors`: (J, d) of the requirements, `rows`: (n, d) of the notes; unit length or zero, see `unit`. attr: the
    weighted share of the requirement's values that contain, or are contained in, a value of the note's same bucket.
    rare: .15 w for each of the `RARE` buckets that the note has and fewer than half of the notes have, at most .3; time
    and event only where the requirement has one. As in the release a requirement's values include marks of what is
    asked for, which no note can match: they lower attr. Strengths are rounded to 1e-9, so that equal notes tie.
    Raises `ValueError` if the lengths differ.
    """
    if len(vectors) != len(requirements):
        raise ValueError(f"vectors ({len(vectors)}) must match requirements ({len(requirements)})")
    if len(rows) != len(notes):
        raise ValueError(f"rows ({len(rows)}) must match notes ({len(notes)})")
    wanted = [_of_requirement(requirement.text) for requirement in requirements]
    shared = np.array([overlap(values, notes) for values in wanted]).reshape(len(wanted), len(notes))
    bonus = np.array([rare(values, notes) for values in wanted]).reshape(len(wanted), len(notes))
    cosines = np.maximum(np.asarray(vectors, np.float64) @ np.asarray(rows, np.float64).T, 0)
    return np.round(0.45 * shared + 0.35 * cosines + 0.20 * bonus, 9)


def overlap(wanted: Buckets, notes: Sequence[Attributes]) -> NDArray[np.float64]:
    """(n,) weighted share of `wanted` values matched by substring either way within their bucket; 0 of nothing."""
    matched = np.zeros(len(notes))
    total = 0.0
    for bucket, values in wanted.items():
        weight = WEIGHTS.get(bucket, OTHER)
        total += weight * len(values)
        places = [place for place, note in enumerate(notes) if bucket in note.buckets]
        held = [(notes[place].lines[bucket], notes[place].buckets[bucket]) for place in places]
        for value in sorted(values) if held else ():
            matched[places] += weight * np.array(_matches(value, held))
    return matched / total if total else matched


def rare(wanted: Buckets, notes: Sequence[Attributes]) -> NDArray[np.float64]:
    """(n,) bonus for buckets that fewer than half of the notes have, in [0, .3]."""
    bonus = np.zeros(len(notes))
    for bucket in RARE:
        if bucket in ("time", "event") and not wanted.get(bucket):
            continue
        has = np.array([bool(note.buckets.get(bucket)) for note in notes], bool)
        if 2 * has.sum() < len(notes):
            bonus += 0.15 * WEIGHTS[bucket] * has
    return np.minimum(bonus, 0.3)


def unit(rows: Floats) -> NDArray[np.float64]:
    """(n, d) rows of unit length; zero where a row is zero or not finite."""
    rows = np.asarray(rows, np.float64)
    sound = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0)
    norms = np.linalg.norm(sound, axis=1, keepdims=True)
    scaled: NDArray[np.float64] = np.divide(sound, norms, out=np.zeros_like(sound), where=norms > 1e-9)
    return scaled


@lru_cache(maxsize=1 << 16)
def _of_note(text: str, speaker: str, session: int, day: str, speakers: tuple[str, ...]) -> Attributes:
    """Deviations: a flat turn has no tags and no A-Mem context; of the buckets none gives `object`."""
    low = text.lower()
    present = frozenset(name.lower() for name in speakers if name.lower() in low) | ({speaker.lower()} - {""})
    entities = {name.lower() for name in _NAME.findall(text) if name not in _NO_ENTITIES}
    times, events = _times(text) | _ends(day), _events(low)
    buckets = {
        "entity": present | entities,
        "speaker": present,
        "time": times,
        "event": events,
        "action": events,
        "keyword": _keywords(low),
        "answer_candidate": frozenset(quoted.lower() for quoted in _QUOTED.findall(text)) | set(sorted(times)[:3]),
        "session": frozenset({str(session)}),
    }
    buckets = {bucket: values for bucket, values in buckets.items() if values}
    return Attributes(
        buckets=buckets,
        lines={bucket: "\n".join(sorted(values)) for bucket, values in buckets.items()},
        named=_weighed({bucket: values for bucket, values in buckets.items() if bucket not in DERIVED}),
        derived=_weighed({bucket: values for bucket, values in buckets.items() if bucket in DERIVED}),
    )


def _weighed(buckets: Buckets) -> dict[str, float]:
    return {f"{bucket}:{value}": WEIGHTS[bucket] for bucket, values in buckets.items() for value in sorted(values)}


@lru_cache(maxsize=1 << 13)
def _of_requirement(text: str) -> Buckets:
    """As the release has it, every capitalised word of a requirement is an entity, question words included."""
    low = text.lower()
    buckets = {
        "entity": frozenset(name.lower() for name in _CAPITAL.findall(text)),
        "time": _times(text),
        "event": _events(low),
        "keyword": _keywords(low),
        "qtype": frozenset({"multihop"}),
        "ask": frozenset({"multihop"}) | {mark for mark, pattern in _ASKED.items() if pattern.search(text)},
    }
    return {bucket: values for bucket, values in buckets.items() if values}


def _matches(value: str, held: Sequence[tuple[str, frozenset[str]]]) -> list[bool]:
    """Whether `value` is contained in a line, or contains one of the values that the line is made of."""
    if len(value) > _LONGEST:
        return [value in line or any(part in value for part in have) for line, have in held]
    parts = _parts(value)
    return [value in line or not parts.isdisjoint(have) for line, have in held]


@lru_cache(maxsize=1 << 13)
def _parts(value: str) -> frozenset[str]:
    """All that `value` contains. A word has few substrings, so one look-up each decides."""
    return frozenset(value[i:j] for i in range(len(value)) for j in range(i + 1, len(value) + 1))


def _times(text: str) -> frozenset[str]:
    dates = [f"{year}-{_MONTH[month.lower()]:02d}-{int(day):02d}" for day, month, year in _DATE.findall(text)]
    return frozenset(_YEAR.findall(text)).union(*map(_ends, dates))


def _ends(date: str) -> frozenset[str]:
    """2023-05-08 with its month and its year; none of an empty date."""
    return frozenset({date, date[:-3], date[:-6]}) if date else frozenset()


def _events(low: str) -> frozenset[str]:
    return _EVENTS.intersection(_WORD.findall(low))


def _keywords(low: str) -> frozenset[str]:
    return frozenset(word for word in _WORD.findall(low) if len(word) > 2) - _STOP_WORDS - _GENERIC


def _day(time: float) -> str:
    """The date of a time in seconds since the epoch, empty where it is unknown."""
    return _date(int(time // 86_400)) if isfinite(time) else ""


@lru_cache(maxsize=1 << 12)
def _date(day: int) -> str:
    return datetime.fromtimestamp(86_400 * day, UTC).date().isoformat()

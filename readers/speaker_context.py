"""Which records come first, given who can tell and what was said around them?"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from readers.locality import at_step, better_of_session
from readers.ranking import descending
from readers.types import Access, Budget, Evidence, Floats, Ints, Note, Pool, Query, selected
from readers.words import content

Scores = NDArray[np.float64]
_HALF = 40.0
_RINGS = ((1, 1.0), (2, 0.5))
_WORD = re.compile(r"[^\W_]+")
_SELF = frozenset({"i", "me", "my", "mine", "myself"})
_ADDRESSED = re.compile(
    r"\b(?:did you|you \w+ed|you(?:['’]ve| have)? (?:told|said|gave|wrote|made|found))\b", re.IGNORECASE
)


@dataclass(frozen=True)
class SpeakerContext:
    """d + l + speaker · teller + context · need · around - brief · evenness · (need - usual need) + session · best.

    The weights were set by hand with three benchmarks in view; what differs from one store to another is counted in
    it, and in the question:
    d, l: cosine and BM25 in standard deviations from the pool's mean, so that of two lists the one with the more
    peaked top speaks louder. teller: how likely the record's speaker is the one to tell: see `tellers`. A store
    where one says "I" and the other serves (a user and an assistant) sets them apart; one of peers does not.
    need: 40 / (40 + tokens): a short turn says little by itself. around: what its neighbours in the session score above
    the pool's mean, d + l, those two places away for half. evenness: how often the second of the speakers says "I" for
    once that the first does, in [0, 1]: among peers a turn shorter than its speaker's usual (mean of need) is mostly an
    echo, but a user's is as good as a long one. best: 1 for the record of each session that scores most without it, if
    that is above the pool's mean; questions that need several records mostly need several sessions.
    `retold`: d is taken of the question as asked and as the one whom it names would say it (`as_told`), evenly. That
    embeds one more text a question that names a speaker, so it is off where nobody asks for it.
    A weight of 0 leaves its part out. Evidence stays in the pool, `calls` at 0. Ties go to the native rank; a record
    whose score is not finite comes last. Raises `ValueError` for a negative or non-finite weight.
    The defaults were set by hand near a flat optimum on LoCoMo, a LongMemEval sample and BEAM 100K, so figures on
    these are no proof of a transfer. Of a linear score fitted on LoCoMo alone, teller and neighbours raised the two
    others as well; the length did not, which is why evenness bounds it. `retold` says nothing about the two others:
    their questions name no speaker.
    """

    speaker: float = 5.0
    context: float = 1.0
    brief: float = 18.0
    session: float = 0.5
    retold: bool = False

    title: ClassVar[str] = "Dense and BM25 evenly, raised by who can tell and by what a short turn stands beside"
    source: ClassVar[str] = "this project"

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 <= value < float("inf"):
                raise ValueError(f"{name} ({value}) must be at least 0 and finite")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        if not len(pool):
            return selected(pool, descending(pool.dense), budget)
        talk = talk_of(access.notes(access.everything()[0]))
        matched = self._dense(query, pool, access, talk) + standard(pool.lexical)
        notes = access.notes(pool.ids)
        telling = tellers(query.text, talk)
        need = needs(pool.tokens)
        usual = np.array([talk.usual_need[note.speaker] for note in notes])
        scores = matched + self.speaker * np.array([telling[note.speaker] for note in notes])
        scores += self.context * need * around(matched, pool.positions, pool.sessions)
        scores -= self.brief * talk.evenness * (need - usual)
        scores += self.session * ((better_of_session(scores, pool.sessions) == 0) & (standard(scores) > 0))
        return selected(pool, descending(scores), budget)

    def _dense(self, query: Query, pool: Pool, access: Access, talk: "Talk") -> Scores:
        """(n,) d."""
        asked = standard(pool.dense)
        told = as_told(query.text, talk) if self.retold else query.text
        if told == query.text:
            return asked
        vector = np.asarray(access.embed([told])[0], np.float64)
        return standard(asked + standard(np.asarray(pool.vectors, np.float64) @ vector))


def standard(scores: Floats) -> Scores:
    """`scores` (n,) in standard deviations from their mean, over the finite ones; 0 where those are all equal."""
    made = np.full(len(scores), np.nan)
    known = np.isfinite(scores)
    if known.any():
        finite = np.asarray(scores[known], np.float64)
        spread = finite.std()
        made[known] = (finite - finite.mean()) / spread if spread > 1e-12 else 0.0
    return made


def needs(tokens: Ints) -> Scores:
    """(n,) in (0, 1]: how much a record of so many tokens needs its neighbours; a half at 40."""
    return _HALF / (_HALF + np.asarray(tokens, np.float64))


def around(scores: Scores, positions: Ints, sessions: Ints) -> Scores:
    """(n,) the positive scores of the same session's turns one place away, and half of those two places away, summed.

    `positions`: (n,) at least 0, distinct. A turn that is no candidate, or whose score is NaN, adds nothing.
    """
    raised = np.maximum(np.nan_to_num(scores), 0.0)
    total = np.zeros(len(scores))
    for step, weight in _RINGS:
        for signed in (-step, step):
            total += weight * at_step(raised, positions, sessions, signed)
    return total


@dataclass(frozen=True)
class Talk:
    """Who speaks in a conversation, and how.

    `selves`: speaker → the share of all speakers' self-reference that is theirs, by the rate of I, me, my among their
    words; sums to 1. `evenness`: the second largest share over the largest, 0 for one speaker. `usual_need`: speaker →
    mean of `needs` over their records.
    """

    selves: Mapping[str, float]
    evenness: float
    usual_need: Mapping[str, float]


def talk_of(notes: Sequence[Note]) -> Talk:
    """The talk of one conversation's records, counted once for all its questions."""
    return _talk(
        tuple([note.speaker for note in notes]),
        tuple([note.text for note in notes]),
        tuple([note.tokens for note in notes]),
    )


# Texts keep their hashes, so finding a conversation again is cheap.
@lru_cache(maxsize=16)
def _talk(speakers: tuple[str, ...], texts: tuple[str, ...], tokens: tuple[int, ...]) -> Talk:
    words, selves = defaultdict[str, int](int), defaultdict[str, int](int)
    by_speaker = defaultdict[str, list[float]](list)
    for speaker, text, need in zip(speakers, texts, needs(np.array(tokens)).tolist(), strict=True):
        spoken = _WORD.findall(text.lower())
        words[speaker] += len(spoken)
        selves[speaker] += sum(word in _SELF for word in spoken)
        by_speaker[speaker].append(need)
    rates = {speaker: selves[speaker] / max(words[speaker], 1) for speaker in words}
    total = sum(rates.values())
    shares = {speaker: rate / total if total else 1 / len(rates) for speaker, rate in rates.items()}
    first, *rest = sorted(shares.values(), reverse=True)
    return Talk(
        selves=shares,
        evenness=rest[0] / first if rest else 0.0,
        usual_need={speaker: sum(values) / len(values) for speaker, values in by_speaker.items()},
    )


def tellers(question: str, talk: Talk) -> dict[str, float]:
    """Speaker → how likely what is asked was said by them; sums to 1.

    Those whom the question names, by the first word of the name, evenly. Where it names none, in proportion to how
    often each speaks of themselves; and the other way round between two where it asks what "you" said or did, which is
    asked of the one who serves.
    """
    named = named_in(question, talk)
    if named:
        return {speaker: (speaker in named) / len(named) for speaker in talk.selves}
    if len(talk.selves) == 2 and _ADDRESSED.search(question):
        return dict(zip(talk.selves, reversed(list(talk.selves.values())), strict=True))
    return dict(talk.selves)


def named_in(question: str, talk: Talk) -> list[str]:
    """The speakers whom the question names, by the first word of the name."""
    asked = set(content(question))
    return [speaker for speaker in talk.selves if asked.intersection(content(speaker)[:1])]


def as_told(question: str, talk: Talk) -> str:
    """The question with "I" and "my" for the speakers whom it names: turns say so where a question says the name.

    A name is found as it is written, whole or by its first word; the verb keeps its form.
    """
    for speaker in named_in(question, talk):
        first = next(word for word in _WORD.findall(speaker) if content(word))
        question = re.sub(
            rf"\b(?:{re.escape(speaker)}|{re.escape(first)})\b(['’]s\b)?",
            lambda found: "my" if found[1] else "I",
            question,
        )
    return question

"""Which words of the records answer a question."""

import math
import re
from collections.abc import Callable, Mapping, Sequence

from tasks.answerers.asked import Asked
from tasks.answerers.dates import day
from tasks.answerers.ranking import Ranked
from tasks.answerers.reading import LIGHT, Sentence, Word
from tasks.text import stem

# Weights, in units of one new content word.
SENTENCE_OVERLAP, SENTENCE_PLACE, SENTENCE_ASKS = 1.5, 0.3, 4.0
SPAN_AFTER_KNOWN, SPAN_DISTANCE, SPAN_BARRIER = 0.5, 0.1, 0.4
SPAN_FUNCTION, SPAN_LENGTH = 0.15, 0.08
SPAN_WORDS = 12
ANSWER_CHARACTERS = 240


def answer_words(asked: Asked, near: Sequence[Ranked], best: Sequence[Ranked]) -> str | None:
    """The answer, or None where none is found, from `near`, which a list may join, and the `best` records."""
    return _ANSWERS[asked.kind](asked, near, best)


# ---- one function a kind of question


def _when(asked: Asked, near: Sequence[Ranked], best: Sequence[Ranked]) -> str | None:
    """The first date that the best record speaks of, else the day it was said."""
    read = best[0].read
    if read.dates:
        return read.dates[0].printed
    return day(read.said_on) if read.said_on else None


def _how_long(asked: Asked, near: Sequence[Ranked], best: Sequence[Ranked]) -> str | None:
    return _first_match(_DURATION, asked, best) or _what(asked, near, best)


def _how_often(asked: Asked, near: Sequence[Ranked], best: Sequence[Ranked]) -> str | None:
    return _first_match(_FREQUENCY, asked, best) or _what(asked, near, best)


def _how_many(asked: Asked, near: Sequence[Ranked], best: Sequence[Ranked]) -> str | None:
    return _first_match(_AMOUNT, asked, best) or _what(asked, near, best)


def _who(asked: Asked, near: Sequence[Ranked], best: Sequence[Ranked]) -> str | None:
    """A new name, else a relation ("best friend")."""
    speakers = frozenset[str]().union(*(item.read.speaker for item in best))
    names = (_new_name(asked, item, speakers) for item in best[:2])
    return next(filter(None, names), None) or _first_match(_PERSON, asked, best[:2]) or _what(asked, near, best)


def _where(asked: Asked, near: Sequence[Ranked], best: Sequence[Ranked]) -> str | None:
    """Named places of the records that may be joined, else the phrase after a preposition of place."""
    places = [place for item in near if (place := _first_match(_NAMED_PLACE, asked, [item]))]
    if places:
        return _listed(places)
    return (
        _first_match(_NAMED_PLACE, asked, best[:2]) or _first_match(_PLACE, asked, best[:1]) or _what(asked, near, best)
    )


def _why(asked: Asked, near: Sequence[Ranked], best: Sequence[Ranked]) -> str | None:
    return _first_match(_REASON, asked, best[:2]) or _what(asked, near, best)


def _yes_no(asked: Asked, near: Sequence[Ranked], best: Sequence[Ranked]) -> str | None:
    sentences = _by_overlap(asked, best[0])
    return "No" if sentences and _DENIAL.search(sentences[0].text) else "Yes"


def _what(asked: Asked, near: Sequence[Ranked], best: Sequence[Ranked]) -> str | None:
    titles = (_title(asked, item) or _best_span(asked, item) for item in near)
    return _listed([span for span in titles if span])


# ---- the parts that answers are made of


def _listed(spans: Sequence[str]) -> str | None:
    return ", ".join(dict.fromkeys(span[:ANSWER_CHARACTERS] for span in spans)) or None


def _first_match(pattern: re.Pattern[str], asked: Asked, items: Sequence[Ranked]) -> str | None:
    """`pattern`'s group "span" in the best sentence that has it, unless it only repeats a name of the
    question or the speaker's."""
    for item in items:
        known = asked.names | item.read.speaker
        for sentence in _by_overlap(asked, item):
            for match in pattern.finditer(sentence.text):
                if stem(match["span"].split(" ", 1)[0].lower()) not in known:
                    return match["span"][:ANSWER_CHARACTERS]
    return None


def _by_overlap(asked: Asked, item: Ranked) -> list[Sentence]:
    return sorted(item.read.sentences, key=lambda s: (s.asks, -len(s.terms & asked.terms)))


def _title(asked: Asked, item: Ranked) -> str | None:
    """For a question about a named work: what stands in quotation marks, else a new name."""
    if not asked.titled:
        return None
    quoted = _first_match(_QUOTED, asked, [item])
    return quoted or _new_name(asked, item, asked.terms | item.read.speaker)


def _new_name(asked: Asked, item: Ranked, known: frozenset[str]) -> str | None:
    """The first capitalised run that is neither `known` nor a sentence's lone first word."""
    known = known | asked.names
    for sentence in _by_overlap(asked, item):
        for match in _CAPITALS.finditer(sentence.text):
            words = match[0].lower().split()
            lone_first = match.start() == 0 and len(words) == 1
            if not lone_first and words[0] not in LIGHT and known.isdisjoint(map(stem, words)):
                return match[0][:ANSWER_CHARACTERS]
    return None


# ---- the span that tells most


def _best_span(asked: Asked, item: Ranked) -> str | None:
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


def _span(sentence: Sentence, known: frozenset[str]) -> tuple[str | None, float]:
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


def _longest_gain(words: Sequence[Word], known: frozenset[str]) -> tuple[int, float]:
    """Where a span that begins with `words[0]` had best end, and its score."""
    score, best, best_score = 0.0, 0, -math.inf
    for at, word in enumerate(words):
        new = word.content and word.stem not in known
        score += float(new) - (SPAN_FUNCTION if _is_grammar(word) else 0.0)
        score -= SPAN_LENGTH * at + (SPAN_BARRIER if word.barred and at else 0.0)
        if new and score > best_score:
            best, best_score = at, score
    return best, best_score


def _is_grammar(word: Word) -> bool:
    return not word.content and word.stem != "and"


_Found = Callable[[Asked, Sequence[Ranked], Sequence[Ranked]], str | None]
"""From the question, the records that a list may join, and the three best records."""

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

"""What a question asks for."""

import re
from dataclasses import dataclass
from functools import lru_cache

from tasks.answerers.dates import mentions
from tasks.text import STOP_WORDS, stem, terms


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, taken apart.

    `kind`: of answer, the first of `_KINDS` that fits. `terms`: content stems without `names`, the stems of
    capitalised words. `times`: dates it names, as `dates` prints them. `plural`: it asks for a list.
    `titled`: it asks about a named work.
    """

    kind: str
    terms: frozenset[str]
    names: frozenset[str]
    times: frozenset[str]
    plural: bool
    titled: bool


@lru_cache(maxsize=1 << 13)
def asked_for(text: str) -> Asked:
    """What the question `text` asks for; runs of white space count as one blank."""
    text = " ".join(text.split())
    lowered = text.lower()
    names = frozenset(stem(name.lower()) for name in _NAME.findall(text) if name.lower() not in STOP_WORDS)
    return Asked(
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

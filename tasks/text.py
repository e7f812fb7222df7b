"""What the terms of an English text are, for matching and for BM25."""

import re
from functools import cache, lru_cache
from threading import Lock

from snowballstemmer.porter_stemmer import PorterStemmer

_WORD = re.compile(r"[^\W_]+")
_LONGEST_STEMMED = 64
_LOCK = Lock()

STOP_WORDS = frozenset(
    _WORD.findall(
        """
    a an the and or but nor so yet if then else than that this these those there here
    i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    am is are was were be been being do does did doing done have has had having
    can could shall should will would may might must ought
    what which who whom whose when where why how
    of at by for with about against between into through during before after above below to from
    up down in out on off over under again further once as until while because since
    all any both each few more most other some such no not only own same too very just also
    s t d ll m o re ve y don didn doesn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn ain
        """
    )
)
"""Function words that say nothing about what a text is about, with the fragments that contractions leave."""


def terms(text: str) -> list[str]:
    """Porter stems of the words of `text` that are not stop words, in order, repeats kept."""
    return [stem(word) for word in _WORD.findall(text.lower()) if word not in STOP_WORDS]


def tokens(text: str) -> list[str]:
    """Lowercase runs of letters and digits, in order: "Mel's 2 dogs" is mel, s, 2, dogs.

    NUL, lone surrogates, marks and the underscore are not in any token. Linear in the text.
    """
    return _WORD.findall(text.lower())


@lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Porter stem of one lowercase word; a word of more than 64 characters is its own stem.

    Source: M. F. Porter, "An algorithm for suffix stripping", 1980, as snowballstemmer's pure Python
    "porter" has it. The stemmer keeps its word in itself, therefore the lock.
    """
    if len(word) > _LONGEST_STEMMED:
        return word
    with _LOCK:
        stemmed: str = _porter().stemWord(word)
    return stemmed


@cache
def _porter() -> PorterStemmer:
    return PorterStemmer()

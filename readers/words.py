"""Which words does a text hold, where no model is asked?"""

import re
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(r"\b[A-Z][a-z]+")
_STOP = frozenset(
    _WORD.findall(
        """
    a an the and or but nor so yet if then else than that this these those there here
    i me my mine myself we us our ours you your yours he him his she her hers it its they them their
    am is are was were be been being do does did doing done have has had having
    can could shall should will would may might must ought
    what which who whom whose when where why how
    of at by for with about against between into through during before after above below to from
    up down in out on off over under again once as until while because since
    all any both each few more most other some such no not only own same too very just also
    s t d ll m re ve don didn doesn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn
        """
    )
)


@lru_cache(maxsize=1 << 15)
def content(text: str) -> tuple[str, ...]:
    """Lowercase runs of letters and digits that are no function words, in order, repeats kept. No stems."""
    return tuple(word for word in _WORD.findall(text.lower()) if word not in _STOP)


@lru_cache(maxsize=1 << 15)
def distinct(text: str) -> frozenset[str]:
    """The different words of `content`."""
    return frozenset(content(text))


def names(text: str) -> tuple[str, ...]:
    """Capitalised words in lowercase, once each, in order; function words do not count, wherever they stand."""
    found = (name.lower() for name in _NAME.findall(text))
    return tuple(dict.fromkeys(name for name in found if name not in _STOP))

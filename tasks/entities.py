"""Which entities a text names."""

import re
from collections.abc import Collection, Iterator

from tasks.text import STOP_WORDS, tokens

_QUOTED = re.compile(r'"([^"\n]{2,60})"|“([^”\n]{2,60})”')
_DOTTED = re.compile(r"\b[a-z_][a-z0-9_]*(?:\.[a-z_][a-z0-9_]*)+\b")
_WORD = re.compile(r"[^\W_](?:[\w&-]|['’](?!s\b))*")
_LOWER = re.compile(r"[^\W\d_]+")
_BETWEEN = (" ", " of ", " of the ", " the ", " de ", " von ")
_TIMES = frozenset(
    tokens(
        """
    january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec
    monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thurs fri sat sun
    one two three four five six seven eight nine ten first second third am pm
        """
    )
)


def entities(text: str, common: Collection[str] = frozenset()) -> list[str]:
    """Names, quoted strings and dotted identifiers, as written, each once, in order of appearance.

    A name is a run of capitalised words without its possessive. Function words, months, weekdays and number words are
    none, and a word that begins a sentence is none if it is in `common`, the words that stand in lower case elsewhere
    (`lower_case`).
    """
    found = [(match.start(), match[1] or match[2]) for match in _QUOTED.finditer(text)]
    found += [(match.start(), match[0]) for match in _DOTTED.finditer(text)]
    found += _names(text, common)
    return list(dict.fromkeys(name.strip() for _, name in sorted(found) if name.strip()))


def lower_case(text: str) -> set[str]:
    """The words that `text` writes in lower case, so that a capital elsewhere may only begin a sentence."""
    return {word for word in _LOWER.findall(text) if word.islower()}


def _names(text: str, common: Collection[str]) -> Iterator[tuple[int, str]]:
    begun, end = -1, -1
    for match in _WORD.finditer(text):
        if not match[0][0].isupper() or _is_plain(match[0], common if _begins(text, match.start()) else ()):
            continue
        if begun >= 0 and text[end : match.start()] not in _BETWEEN:
            yield begun, text[begun:end]
            begun = -1
        begun, end = match.start() if begun < 0 else begun, match.end()
    if begun >= 0:
        yield begun, text[begun:end]


def _is_plain(word: str, common: Collection[str]) -> bool:
    return all(part in STOP_WORDS or part in _TIMES or part in common for part in tokens(word))


def _begins(text: str, at: int) -> bool:
    """Whether a sentence begins there."""
    before = text[max(0, at - 3) : at].rstrip()
    return not before or before[-1] in '.!?:;"“(['

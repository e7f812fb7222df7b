"""How does what is known of a run become words?"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from reports.shown import Fact

DIGEST = re.compile(r"(?:sha256:)?[0-9a-f]{40,64}")
SHORT_DIGEST = 16


def fact(label: str, value: Any) -> Fact:
    """A label with a number, a text, or a list or mapping of them; a dash for nothing."""
    return Fact(label, ", ".join(_plain(value)) or "–")


def digest_fact(name: str, value: str) -> Fact:
    """A digest shown short, any other text as it is."""
    text = str(value)
    if not DIGEST.fullmatch(text):
        return Fact(name, text)
    return Fact(name, text.removeprefix("sha256:")[:SHORT_DIGEST], text)


def duration(seconds: float) -> str:
    """Seconds, or minutes and seconds."""
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {seconds % 60:.0f} s"


def _plain(value: Any) -> Iterator[str]:
    """A fact's value as words: numbers grouped, lists and mappings laid out, missing as a dash."""
    if isinstance(value, Mapping):
        for key, own in value.items():
            yield f"{key}: {', '.join(_plain(own))}"
    elif isinstance(value, (list, tuple, set, frozenset)):
        for own in value:
            yield from _plain(own)
    elif isinstance(value, bool):
        yield "yes" if value else "no"
    elif isinstance(value, int):
        yield f"{value:,}"
    elif isinstance(value, float):
        yield f"{value:,.4g}"
    else:
        yield "–" if value is None else str(value)

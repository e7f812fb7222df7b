"""What did a model mean by its reply? Tolerant of prose, fences and thinking aloud around what was asked for."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from readers.types import Note

_DECODER = json.JSONDecoder(parse_constant=lambda _: None)
_TRAILING = re.compile(r",(\s*[\]}])")
_BRACKETED = re.compile(r"\[\s*(\d+(?:\s*[–-]\s*\d+)?(?:[,;\s]+\d+(?:\s*[–-]\s*\d+)?)*[,;\s]*)\]")
_SPAN = re.compile(r"(?<!\d)(\d{1,9})(?!\d)(?:\s*[–-]\s*(\d{1,3})(?!\d))?")
_NUMBER = re.compile(r"\d+")
_ANSWER = re.compile(r"^[^\w\n]*(?:final\s+)?(?:selected|selection|ranking|answer)\b[^:\n\d\[]{0,40}:", re.I | re.M)
_NONE = re.compile(r"\W*(?:none|nothing|empty)\b|[\s*_:]*\[\s*\]", re.I)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)|\A.*</think(?:ing)?>", re.S | re.I)


def shown(notes: Sequence[Note], first: int = 1) -> str:
    """Records as a model is shown them, one a line: `[3] (8 May 2023) Ada: I adopted a parrot.`"""
    return "\n".join(f"[{number}] {_dated(note)}" for number, note in enumerate(notes, first)) or "(none)"


def json_object(text: str, *keys: str) -> dict[str, Any] | None:
    """The last JSON object of a text that has one of `keys`; None where there is none. Trailing commas are let pass."""
    found = [value for value in _values(text, "{") if any(key in value for key in keys)]
    return found[-1] if found else None


def json_list(text: str, key: str) -> list[Any] | None:
    """The list under `key` of the last object that has it, else the last list of objects; None without either."""
    under = json_object(text, key)
    if under is not None and isinstance(under[key], list):
        return list(under[key])
    lists = [value for value in _values(text, "[") if value and all(isinstance(item, dict) for item in value)]
    return lists[-1] if lists else None


def numbers(text: str, most: int) -> list[int] | None:
    """The record numbers, 1 to `most`, that a reply in prose names, once each, in its order; None where it names none.

    They are those on the last line that begins with a word such as `Selected:` or `Ranking:`, or after it where it
    holds none, in square brackets if any are; else the bracketed ones of the last paragraph with some, else the bare
    ones of the last line. [] where `none` or an empty bracket stands right after such a word, whatever is said of
    records behind it. Thoughts in `<think>` count for nothing.
    """
    text = _THOUGHT.sub("", text)
    marks = list(_ANSWER.finditer(text))
    if marks:
        said = text[marks[-1].end() :]
        if _NONE.match(said):
            return []
        for part in (said.partition("\n")[0], said):
            if found := known(_bracketed(part) or [int(number) for number in _few_digits(part)], most):
                return found
        return None
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    for part in reversed(paragraphs):
        if found := known(_bracketed(part), most):
            return found
    last = (text.strip().splitlines() or [""])[-1]
    return known([int(number) for number in _few_digits(last)], most) or None


def known(values: Sequence[Any], most: int) -> list[int]:
    """Those of `values` that are whole numbers, or texts of one, from 1 to `most`, once each, in order."""
    found: dict[int, None] = {}
    for value in values:
        digits = str(value).strip(" []") if isinstance(value, str | int) and not isinstance(value, bool) else ""
        if digits.isascii() and digits.isdigit() and len(digits) <= 9 and 1 <= int(digits) <= most:
            found[int(digits)] = None
    return list(found)


def yes_share(tokens: Mapping[str, float], floor: float) -> float | None:
    """P(yes) / (P(yes) + P(no)) from first tokens and their log-probabilities; None where neither label is listed.

    Case, spaces and marks around a label do not count; the spellings of one label add up. A label that is not listed
    has the probability `floor`.
    """
    mass = {"yes": 0.0, "no": 0.0}
    for token, log in tokens.items():
        label = token.strip(" \t\n\"'*.,:Ġ▁").lower()
        if label in mass and log <= 0:
            mass[label] += math.exp(log)
    if not any(mass.values()):
        return None
    yes, no = max(mass["yes"], floor), max(mass["no"], floor)
    return yes / (yes + no)


def text_of(value: Any, most: int = 300) -> str:
    """A text of one line from JSON, cut to `most` characters; empty for anything else."""
    return " ".join(value.split())[:most] if isinstance(value, str) else ""


def _values(text: str, opening: str) -> list[Any]:
    """The JSON values that begin with `opening`, outermost ones, in order."""
    text = _TRAILING.sub(r"\1", _THOUGHT.sub("", text))
    found, at = [], text.find(opening)
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(text, at)
            found.append(value)
        except (ValueError, RecursionError):
            end = at + 1
        at = text.find(opening, end)
    return found


def _bracketed(text: str) -> list[int]:
    """The numbers in square brackets; [3-5] is all three."""
    spans = [span for group in _BRACKETED.findall(text) for span in _SPAN.findall(group)]
    return [number for first, last in spans for number in range(int(first), int(last or first) + 1)]


def _few_digits(text: str) -> list[str]:
    return [number for number in _NUMBER.findall(text) if len(number) <= 9]


def _dated(note: Note) -> str:
    text = " ".join(note.text.split())
    if not math.isfinite(note.time):
        return text
    day = datetime.fromtimestamp(note.time, UTC)
    return f"({day.day} {day:%B %Y}) {text}"

"""Which facts a model's reply says, or that it cannot be relied on."""

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, ValidationError, field_validator

AGAIN = 'Reply with the JSON list alone: [{"fact": "...", "messages": [1]}], or [] if there is nothing to write.'

_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)|\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_BEGIN = re.compile(r'\[\s*\{|\{\s*"')
_NUMBER = re.compile(r"\d{1,6}")


class Said(BaseModel):
    """One fact and the numbers of the messages that tell it, as far as the reply names any."""

    fact: str = Field(validation_alias=AliasChoices("fact", "memory", "text"))
    messages: list[int] = []

    @field_validator("fact")
    @classmethod
    def _one_line(cls, text: str) -> str:
        """White space becomes blanks; what Parquet cannot hold is replaced or removed."""
        held = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "")
        if not held.strip():
            raise ValueError("some text expected")
        return " ".join(held.split())

    @field_validator("messages", mode="before")
    @classmethod
    def _numbers(cls, said: Any) -> list[int]:
        """Every number in it, however it is written: 3, "3", [3, "[4]"]."""
        return [int(number) for number in _NUMBER.findall(json.dumps(said))]


_FACTS = TypeAdapter(list[Said])


def facts(text: str | None, cut: bool = False) -> list[Said] | None:
    """The facts of a reply; an empty list only where it says so; None if it cannot be read as a whole.

    Read are a JSON list, an object with that list under `facts` or `memory`, either in a fence or after prose.
    Thoughts in `<think>` count for nothing. A reply that was `cut` is not read: what is missing cannot be known.
    """
    if cut or not text:
        return None
    for value in _values(_THOUGHT.sub("", text).strip()):
        listed = (
            next((value[key] for key in ("facts", "memory") if key in value), None)
            if isinstance(value, dict)
            else value
        )
        try:
            return _FACTS.validate_python(listed)
        except ValidationError:
            continue
    return None


def _values(said: str) -> Iterator[Any]:
    """JSON values that may be the reply: all of it, what a fence holds, what begins in the midst of prose."""
    for piece in (said, *_FENCE.findall(said)):
        try:
            yield json.loads(piece)
        except (ValueError, RecursionError):
            continue
    if begun := _BEGIN.search(said):
        try:
            yield json.JSONDecoder().raw_decode(said, begun.start())[0]
        except (ValueError, RecursionError):
            return

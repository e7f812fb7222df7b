"""What is said to a model: prompt files with strict variables, whose digest is their version."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from storage.digests import digest
from storage.errors import InputError
from tasks.llm.model import Message

SHIPPED = Path(__file__).parent
ROLES = ("system", "user", "assistant")

_HEADING = re.compile(rf"^## ({'|'.join(ROLES)})[ \t]*$", re.MULTILINE)
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_BARE = re.compile(r"[\w-]+")


@dataclass(frozen=True)
class Prompt:
    """A prompt file: its sections in order, placeholders not yet filled. `name` is for messages to people."""

    name: str
    parts: tuple[Message, ...]

    @cached_property
    def variables(self) -> frozenset[str]:
        """The names of its placeholders."""
        return frozenset(name for part in self.parts for name in _VARIABLE.findall(part.content))

    @cached_property
    def digest(self) -> str:
        """The address of what is said, whatever the file is called."""
        return digest([list(part) for part in self.parts])

    def render(self, **variables: str) -> tuple[Message, ...]:
        """The messages with every placeholder filled, in one pass: a value that holds `{{x}}` stays as it is.

        Raises `InputError` for a variable that is missing and for one that the prompt has no place for.
        """
        for what, names in (
            ("a value for", self.variables - variables.keys()),
            ("no variable", variables.keys() - self.variables),
        ):
            if names:
                have = ", ".join(sorted(self.variables)) or "none"
                raise InputError(
                    f"prompt {self.name}: {what} {', '.join(sorted(names))} expected; its variables: {have}"
                )
        return tuple(
            Message(part.role, _VARIABLE.sub(lambda found: variables[found[1]], part.content)) for part in self.parts
        )

    def fill(self, offered: Mapping[str, str]) -> tuple[Message, ...]:
        """`render` with those of the offered variables that the prompt has a place for."""
        return self.render(**{name: text for name, text in offered.items() if name in self.variables})


def load(topic: str, name_or_path: str, offers: Iterable[str] | None = None, needs: Iterable[str] = ()) -> Prompt:
    """The prompt shipped as `tasks/prompts/<topic>/<name>.md`, or in the text file at a path.

    Sections begin with a line `## system`, `## user` or `## assistant`; a file without sections is one user
    message. Placeholders are written `{{name}}`. `offers`: the variables that the caller can fill; None accepts
    any. `needs`: those without which nothing sensible is asked. Raises `InputError` for a missing, empty or undecodable
    file, text before the first section, a placeholder that is not offered and one that is needed and not there: a
    published prompt may write `{name}`, which would be sent as it stands.
    """
    prompt = Prompt(name_or_path, _parts(_read(topic, name_or_path), name_or_path))
    unknown = prompt.variables - set(offers) if offers is not None else frozenset()
    if unknown:
        raise InputError(
            f"prompt {name_or_path}: variables among {', '.join(sorted(offers or ()))} expected, "
            f"{', '.join(sorted(unknown))} found"
        )
    if lacking := sorted(set(needs) - prompt.variables):
        places = ", ".join(f"{{{{{name}}}}}" for name in lacking)
        raise InputError(f"prompt {name_or_path}: a place for {places} expected, none found; write it so in the file")
    return prompt


def shipped(topic: str) -> list[str]:
    """The names of a topic's shipped prompts."""
    return sorted(path.stem for path in (SHIPPED / topic).glob("*.md"))


def _read(topic: str, name_or_path: str) -> str:
    bare = _BARE.fullmatch(name_or_path) is not None
    path = SHIPPED / topic / f"{name_or_path}.md" if bare else Path(name_or_path)
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(
            f"prompt: a text file's path or one of {', '.join(shipped(topic))} expected, {name_or_path!r} found"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"prompt {path}: UTF-8 text expected, {error} found") from None


def _parts(text: str, name: str) -> tuple[Message, ...]:
    before, *pieces = _HEADING.split(text)
    if not pieces:
        pieces, before = ["user", before], ""
    parts = tuple(Message(role, content.strip()) for role, content in zip(pieces[::2], pieces[1::2], strict=True))
    if before.strip() or not all(part.content for part in parts):
        raise InputError(f"prompt {name}: text in every section and none before the first expected; mend the file")
    return parts

"""What came of asking for an answer or a verdict."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "parse_failed", "refused", "truncated", "failed"]

NO_INFORMATION = "No information available."
"""The reply that says the evidence does not hold the answer, as LoCoMo's category 5 expects it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply to one evidence state.

    `text` is None where no answer could be had; then `status` says why. `raw` is the reply before it was
    parsed, or None where nothing was parsed.
    """

    text: str | None
    status: Status
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judgement of one answer.

    `score`: in [0, 1], or None where nothing was judged: never 0 in its place.
    `label`: "correct" or "wrong" from a judge that decides, None from one that only grades or is split.
    `scores`: one a repeat, None where that one was not judged; empty for a judge that does not repeat.
    """

    score: float | None
    label: str | None
    status: Status
    raw: str | None = None
    scores: tuple[float | None, ...] = ()


class EndpointError(RuntimeError):
    """An endpoint did not do what was asked; the message says which, what and what to do. It holds no key."""

"""What is asked of a model, and what came back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from storage.digests import digest

KEY_VARIABLE = "OPENAI_API_KEY"

UNLIMITED = 256
"""Tokens that a reply without `max_tokens` is taken to have, where that must be guessed beforehand."""

Outcome = Literal["ok", "refused", "truncated", "failed"]


class Message(NamedTuple):
    """One message of a chat. `role`: system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True)
class Model:
    """One model at one OpenAI-compatible endpoint, as a protocol's `[models.NAME]` says it.

    `name` is the protocol's, `model` the endpoint's. Sampling parameters of None are left out of the request, as
    some models refuse them; `extra` is merged into the request. `base_url` empty: OPENAI_BASE_URL or the public
    API. `key_variable` names the environment variable that holds the key, or `prefect:NAME` a Prefect secret
    block. `prompt_price` and `completion_price`: US dollars a million tokens, over the table of prices.
    """

    name: str
    model: str
    base_url: str = ""
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)
    key_variable: str = KEY_VARIABLE
    concurrency: int = 8
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    timeout_s: float = 120.0
    batch: bool = False
    prompt_price: float | None = None
    completion_price: float | None = None

    def identity(self) -> dict[str, Any]:
        """What changes a reply: the endpoint's name of the model and every sampling parameter, nothing else."""
        return {
            "model": self.model,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            "extra": dict(self.extra),
        }


@dataclass(frozen=True)
class Request:
    """One question to a model.

    `prompt`: the digest of the prompt file. `repeat`: which of several askings of the same thing this is.
    `top_logprobs`: how many alternatives of the first token to give, none if 0. `purpose` says in the ledger
    what the call was for and changes nothing.
    """

    model: Model
    messages: tuple[Message, ...]
    prompt: str
    repeat: int = 0
    top_logprobs: int = 0
    purpose: str = ""

    @cached_property
    def digest(self) -> str:
        """The address of the reply: all that changes it, and the repeat's number."""
        return digest(
            {
                "model": self.model.identity(),
                "messages": [list(message) for message in self.messages],
                "prompt": self.prompt,
                "repeat": self.repeat,
                "top_logprobs": self.top_logprobs,
            }
        )

    @property
    def body(self) -> dict[str, Any]:
        """The request as the endpoint takes it. The repeat's number is not sent."""
        model = self.model
        said: dict[str, Any] = {
            "model": model.model,
            "messages": [message._asdict() for message in self.messages],
            "temperature": model.temperature,
            "top_p": model.top_p,
            "max_tokens": model.max_tokens,
            "seed": model.seed,
        }
        if self.top_logprobs:
            said |= {"logprobs": True, "top_logprobs": self.top_logprobs}
        return {key: value for key, value in said.items() if value is not None} | dict(model.extra)

    @property
    def tokens(self) -> tuple[float, float]:
        """About how many tokens the request and its reply take: four characters a token, and the whole limit."""
        return self.characters / 4, float(self.model.max_tokens or UNLIMITED)

    @property
    def characters(self) -> int:
        """Characters of all messages, from which tokens are estimated."""
        return sum(len(message.content) for message in self.messages)


@dataclass(frozen=True)
class Reply:
    """What came of one request.

    `text` is None where the model said nothing; `status` says why: `refused` (a refusal or a content filter),
    `truncated` (cut at the token limit; the text so far is kept), `failed` (nothing, or no reply at all; `error`
    says which). Tokens are the endpoint's count and None where it gives none. `cost`: US dollars, None where the
    price is unknown. `latency_s`: of the attempt that replied, seconds. `top_logprobs`: alternatives of the first
    token with their log-probabilities, most likely first.
    """

    text: str | None
    status: Outcome
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    latency_s: float | None = None
    attempts: int = 1
    error: str | None = None
    top_logprobs: tuple[tuple[str, float], ...] | None = None

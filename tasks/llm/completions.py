"""What a chat completion's body says."""

from typing import Any

from tasks.llm.faults import Malformed
from tasks.llm.model import Outcome, Reply

_CUT = ("length", "max_tokens", "model_length")
"""How endpoints say that a reply was cut at its token limit."""
_MOST = 1e30
_MOST_TOKENS = 2**31


def parse(body: Any) -> Reply:
    """The reply in a body as the endpoint sent it, without cost and latency.

    A refusal or a content filter is `refused`, a cut at the token limit `truncated`, no content `failed`: these
    are replies, paid for and kept. Raises `Malformed` where the body holds no finished choice.
    """
    choice = _first(body.get("choices")) if isinstance(body, dict) else None
    message = choice.get("message") if choice else None
    finish = choice.get("finish_reason") if choice else None
    if not isinstance(message, dict) or not isinstance(finish, str) or finish == "error":
        raise Malformed(body.get("error") if isinstance(body, dict) else None)
    text, status, error = _outcome(message, finish)
    used = body.get("usage") if isinstance(body.get("usage"), dict) else {}
    return Reply(
        text=text,
        status=status,
        finish_reason=finish,
        prompt_tokens=_count(used.get("prompt_tokens")),
        completion_tokens=_count(used.get("completion_tokens")),
        error=error,
        top_logprobs=_alternatives(choice),
    )


def _outcome(message: dict[str, Any], finish: str) -> tuple[str | None, Outcome, str | None]:
    text, refusal = _text(message.get("content")), _text(message.get("refusal"))
    if refusal or finish == "content_filter":
        return refusal or text, "refused", "content filter" if finish == "content_filter" else None
    if finish in _CUT:
        return text, "truncated", None
    if text is None or not text.strip():
        return None, "failed", "the reply is empty"
    return text, "ok", None


def _text(value: object) -> str | None:
    """Text, also where it comes in parts; surrogates are joined, lone ones replaced."""
    if isinstance(value, list):
        parts = [part.get("text") for part in value if isinstance(part, dict)]
        value = "".join(part for part in parts if isinstance(part, str))
    if not isinstance(value, str) or not value:
        return None
    if value.isascii():
        return value
    return value.encode("utf-16", errors="surrogatepass").decode("utf-16", errors="replace")


def _alternatives(choice: Any) -> tuple[tuple[str, float], ...] | None:
    held = choice.get("logprobs")
    first = _first(held.get("content")) if isinstance(held, dict) else None
    if first is None or not isinstance(first.get("top_logprobs"), list):
        return None
    items = [item for item in first["top_logprobs"] if isinstance(item, dict)]
    pairs = [(_text(item.get("token")), item.get("logprob")) for item in items]
    # Some servers list a token of probability 0, with -Infinity: it counts as one that is not listed.
    known = [
        (token, float(value))
        for token, value in pairs
        if token and isinstance(value, int | float) and -_MOST < value < _MOST
    ]
    return tuple(sorted(known, key=lambda pair: -pair[1]))


def _first(items: object) -> dict[str, Any] | None:
    return items[0] if isinstance(items, list) and items and isinstance(items[0], dict) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST_TOKENS else None

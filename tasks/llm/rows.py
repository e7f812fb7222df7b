"""How a call becomes a row of the ledger, and back."""

from datetime import UTC, datetime
from typing import Any

from tasks.llm.model import Reply, Request


def to_call(request: Request, endpoint: str) -> dict[str, Any]:
    """What the ledger says of a request before it is answered. It holds no message and no key."""
    return {
        "request": request.digest,
        "model": request.model.model,
        "endpoint": endpoint,
        "prompt": request.prompt,
        "repeat": request.repeat,
        "purpose": request.purpose,
        "characters": request.characters,
    }


def to_row(call: dict[str, Any], reply: Reply) -> dict[str, Any]:
    """The ledger's row of a call and its reply, as of now."""
    alternatives = reply.top_logprobs
    return call | {
        "text": reply.text,
        "status": reply.status,
        "finish_reason": reply.finish_reason,
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "cost": reply.cost,
        "latency_s": reply.latency_s,
        "attempts": reply.attempts,
        "error": reply.error,
        "top_logprobs": alternatives and [{"token": token, "logprob": value} for token, value in alternatives],
        "answered_at": datetime.now(UTC).replace(tzinfo=None),
    }


def from_row(row: dict[str, Any]) -> Reply:
    """The reply in a row."""
    alternatives = row["top_logprobs"]
    return Reply(
        text=row["text"],
        status=row["status"],
        finish_reason=row["finish_reason"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        cost=row["cost"],
        latency_s=row["latency_s"],
        attempts=row["attempts"],
        error=row["error"],
        top_logprobs=alternatives and tuple((item["token"], item["logprob"]) for item in alternatives),
    )

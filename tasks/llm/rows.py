"""How a call becomes a row of the ledger, and back."""

from datetime import UTC, datetime
from typing import Any

from tasks.llm.model import Reply, Request


def to_row(request: Request, reply: Reply, endpoint: str) -> dict[str, Any]:
    """The ledger's row of a call, as of now. It holds no message and no key."""
    alternatives = reply.top_logprobs
    return {
        "request": request.digest,
        "model": request.model.model,
        "endpoint": endpoint,
        "prompt": request.prompt,
        "repeat": request.repeat,
        "purpose": request.purpose,
        "text": reply.text,
        "status": reply.status,
        "finish_reason": reply.finish_reason,
        "characters": request.characters,
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

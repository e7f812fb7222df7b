"""What went wrong with a call, and whether asking again can help."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

_CODE = re.compile(r"[\w.-]{1,60}")
_PASSING = (408, 409, 425, 429)
_NO_CREDIT = ("insufficient_quota", "billing_hard_limit_reached")


@dataclass(frozen=True)
class Fault:
    """One failed attempt.

    `reason`: what failed, without the endpoint's prose, so that it can be kept. `again`: whether it may pass.
    `hopeless`: it will meet every call alike (key, credit, model). `slow_down`: the endpoint asks for fewer
    calls. `wait_s`: seconds that it asks to wait. `said`: the endpoint's own words, the key cut out, for the
    screen only.
    """

    reason: str
    again: bool = False
    hopeless: bool = False
    slow_down: bool = False
    wait_s: float | None = None
    said: str = ""


class Malformed(Exception):
    """A body of a successful reply that is not a chat completion; `error`: what some gateways put into it instead."""

    def __init__(self, error: Any = None) -> None:
        self.error: dict[str, Any] = error if isinstance(error, dict) else {}
        super().__init__()


def fault(error: Exception, key: str) -> Fault:
    """The fault behind an exception of the client; `key` never stands in it. Raises what it does not know."""
    import httpx2
    import openai

    if isinstance(error, openai.APIStatusError):
        wait_s, body = _wait(error.response.headers), error.body
        return _status(error.status_code, error.code, error.type, wait_s, body, key)
    if isinstance(error, Malformed) and isinstance(status := error.error.get("code"), int):
        return _status(status, None, error.error.get("type"), None, error.error, key)
    if isinstance(error, openai.APIConnectionError) and not isinstance(error.__cause__, httpx2.ReadTimeout):
        return Fault("the connection failed", again=True)
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return Fault("no reply in time", again=True)
    if isinstance(error, Malformed | json.JSONDecodeError | openai.APIError | UnicodeDecodeError):
        return Fault("a malformed reply", again=True)
    raise error


def _status(status: int, code: object, kind: object, wait_s: float | None, body: object, key: str) -> Fault:
    word = _word(code, key) or _word(kind, key)
    no_credit = status == 402 or word in _NO_CREDIT
    return Fault(
        reason(status, word, key),
        again=(status in _PASSING or status >= 500) and not no_credit,
        hopeless=status in (401, 402, 403, 404) or no_credit,
        slow_down=status in (429, 503) and not no_credit,
        wait_s=wait_s,
        said=_said(body, key),
    )


def reason(status: object, code: object, key: str) -> str:
    """A status with its code, as they may be kept."""
    word = _word(code, key)
    return f"status {status}" + (f" ({word})" if word else "")


def _wait(headers: Any) -> float | None:
    """Seconds of `retry-after-ms` or `Retry-After`, which is a number or a date."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        if "retry-after" not in headers:
            return None
        text = headers["retry-after"]
        try:
            return max(0.0, float(text))
        except ValueError:
            return max(0.0, (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _word(value: object, key: str) -> str:
    """A code as it may be kept: one short word without the key, or nothing."""
    text = str(value) if isinstance(value, str | int) else ""
    return text if _CODE.fullmatch(text) and key not in text else ""


def _said(body: object, key: str) -> str:
    text = " ".join(str(body.get("message") or "").split()) if isinstance(body, dict) else ""
    return (text.replace(key, "***") if key else text)[:200]

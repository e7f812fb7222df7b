"""How mem0's extraction of facts reaches a model of the protocol: through the lake's ledger, like any other call."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from storage.digests import digest
from tasks.asking import Asking
from tasks.llm import EndpointError, Message, Request

_DATES = re.compile(r"^## (Observation|Current) Date\n[^\n]*$", re.MULTILINE)


@dataclass
class Extractor:
    """A model under the names by which mem0 calls one. `version`: of mem0, whose prompt it is.

    mem0 says today's date as that of a message; here it is `said_at`, the message's own, so that a date in words is
    resolved as it was meant and the same message is asked of once. `outcomes` counts replies, `read` and `unread`: mem0
    takes an unread one for one without facts. `failure`: what stopped the extraction, which mem0 wraps.
    """

    asking: Asking
    model: str
    version: str
    said_at: datetime | None = None
    outcomes: Counter[str] = field(default_factory=Counter)
    failure: Exception | None = None

    def generate_response(
        self, messages: Sequence[Mapping[str, str]], response_format: Any = None, **unused: Any
    ) -> str:
        """The reply's text, empty where the model said nothing. Raises what `ask` raises, kept in `failure`."""
        try:
            return self._asked(messages, response_format)
        except Exception as error:
            self.failure = error
            raise

    def _asked(self, messages: Sequence[Mapping[str, str]], response_format: Any) -> str:
        named = self.asking.model(self.model)
        extra = {**named.extra, **({"response_format": response_format} if response_format else {})}
        date = self.said_at.date().isoformat() if self.said_at else "not known"
        told = tuple(Message(each["role"], _DATES.sub(rf"## \1 Date\n{date}", each["content"])) for each in messages)
        made = digest(["mem0ai", self.version])
        (reply,) = self.asking.ask([Request(replace(named, extra=extra), told, made, purpose="mem0 extraction")])
        if reply.finish_reason is None:
            raise EndpointError(
                f"mem0: a reply of model {self.model} expected, {reply.error} found; run again to go on"
            )
        self.outcomes["read" if _is_json(reply.text) else "unread"] += 1
        return reply.text or ""


def _is_json(text: str | None) -> bool:
    """Whether mem0 will read it: a JSON object, in a block of code or bare."""
    try:
        start, end = (text or "").index("{"), (text or "").rindex("}")
        return isinstance(json.loads((text or "")[start : end + 1], strict=False), dict)
    except ValueError:
        return False

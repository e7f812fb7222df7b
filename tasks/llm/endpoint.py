"""One endpoint: where calls go, what comes back, and when to stop asking."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from storage.errors import InputError
from tasks.llm.completions import parse
from tasks.llm.faults import Fault, fault
from tasks.llm.keys import shown
from tasks.llm.lanes import Lane
from tasks.llm.model import Model, Reply
from tasks.outcomes import EndpointError


@dataclass
class Endpoint:
    """One endpoint under one key: its client, its lane and how its calls have gone of late."""

    url: str
    key: str
    client: Any
    whole: type[Any]
    lane: Lane = field(default_factory=Lane)
    went_well: set[str] = field(default_factory=set)
    failing: dict[str, tuple[str, int]] = field(default_factory=dict)

    async def send(self, model: Model, body: bytes) -> Reply | Fault:
        """One attempt: a parsed reply, or what went wrong. The whole body must come within the model's time."""
        seconds = model.timeout_s
        try:
            async with asyncio.timeout(seconds):
                sent = self.client.post(
                    "/chat/completions", cast_to=self.whole, content=body, options={"timeout": seconds}
                )
                return parse(json.loads((await sent).content))
        except Exception as error:
            return fault(error, self.key)

    def took(self, model: Model, found: Fault | None) -> Exception | None:
        """Count a request that had a reply or failed for good; the error to stop with where all fail alike.

        A key, a credit or a model that was never accepted stops it at once; after a reply, the third such failure
        in a row does. So does the third request in a row that used up its attempts, and the fifth of a model that
        was refused for the same reason before any had a reply.
        """
        if found is None:
            self.went_well.add(model.model)
            self.failing.pop(model.model, None)
            return None
        reason, times = self.failing.get(model.model, (found.reason, 0))
        times = times + 1 if reason == found.reason else 1
        self.failing[model.model] = (found.reason, times)
        new = model.model not in self.went_well
        allowed = (1 if new else 3) if found.hopeless else 3 if found.again else 5 if new else None
        if allowed is None or times < allowed:
            return None
        del self.failing[model.model]
        return closed(self.url, model, found)


def endpoint_of(url: str, secret: str) -> Endpoint:
    """The endpoint at a base URL under a key."""
    import httpx2
    import openai  # slow to import, and only needed where an endpoint is asked

    class Client(openai.AsyncOpenAI):
        """The package's client, but it makes a URL and headers once: later requests differ in their body alone.

        Half of the processor time of a call went into making the same headers again. Cookies are not sent back.
        """

        def _build_request(self, options: Any, *, retries_taken: int = 0) -> httpx2.Request:
            like = options.url, options.timeout
            if like not in made:
                first = super()._build_request(options, retries_taken=retries_taken)
                first.headers.pop("Content-Length", None)
                made[like] = first
            first = made[like]
            return httpx2.Request(
                first.method, first.url, headers=first.headers, content=options.content, extensions=first.extensions
            )

    made: dict[tuple[str, float], httpx2.Request] = {}
    http = openai.DefaultAioHttpClient()  # a third of the processor time of the default one
    client = Client(base_url=url, api_key=secret, max_retries=0, http_client=http)
    return Endpoint(url, secret, client, httpx2.Response)


def closed(url: str, model: Model, found: Fault) -> InputError | EndpointError:
    """Why nothing more is asked of an endpoint, in one line."""
    where = f"model {model.name} ({model.model} at {shown(url)})"
    said = f": {found.said}" if found.said else ""
    if found.hopeless or not found.again:
        remedy = _REMEDIES.get(found.reason.split(" (")[0], "mend the request's parameters in the [models] table")
        if "402" in found.reason or "quota" in found.reason or "billing" in found.reason:
            remedy = "there is no credit left; add some and run again"
        return InputError(f"{where}: calls are refused with {found.reason}{said}; {remedy.format(model=model)}")
    return EndpointError(f"{where}: no usable reply, {found.reason}{said}; is it up? run again to go on")


_REMEDIES = {
    "status 401": "check the key in {model.key_variable}",
    "status 403": "check what the key in {model.key_variable} may do",
    "status 404": "check the model's name and base_url",
}

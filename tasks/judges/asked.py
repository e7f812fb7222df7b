"""How a judge model is asked and, where its reply cannot be read, asked once more."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from tasks.asking import Asking
from tasks.llm import Message, Model, Reply, Request
from tasks.outcomes import Status

T = TypeVar("T")


@dataclass(frozen=True)
class Ask(Generic[T]):
    """One thing to ask. `read(text, cut)` gives what a reply says, or None; `again` is said where it gives None.

    `prompt` is the prompt file's digest.
    """

    messages: tuple[Message, ...]
    prompt: str
    read: Callable[[str | None, bool], T | None]
    again: str


@dataclass(frozen=True)
class Told(Generic[T]):
    """What one asking came to. `value` is None unless `status` is ok; `raw` is all that was replied."""

    value: T | None
    status: Status
    raw: str | None


def told(
    asking: Asking, model: Model, asks: Sequence[Ask[T]], *, repeats: int = 1, purpose: str
) -> list[list[Told[T] | None]]:
    """What each of `asks` came to, `repeats` times. None: no reply was had, so that it is to be asked again later.

    A reply that was refused is not asked for again. One that was cut counts if what it says comes before the cut.
    A reply that says nothing readable is followed by one request for the label alone; then it is `parse_failed`,
    or `truncated` if the first was cut.
    """
    first = first_requests(model, asks, repeats, purpose)
    owners = [ask for ask in asks for _ in range(repeats)]
    replies = asking.ask(first)
    found = [_read(ask, reply) for ask, reply in zip(owners, replies, strict=True)]
    unread = [place for place, each in enumerate(found) if each is not None and _repairable(each)]
    repairs = [_repair(first[place], replies[place], owners[place].again) for place in unread]
    for place, reply in zip(unread, asking.ask(repairs) if repairs else [], strict=True):
        found[place] = _repaired(found[place], _read(owners[place], reply))
    return [found[start : start + repeats] for start in range(0, len(found), repeats)]


def first_requests(model: Model, asks: Sequence[Ask[T]], repeats: int, purpose: str) -> list[Request]:
    """What `asks` send, each `repeats` times in a row; requests for repair come on top."""
    return [
        Request(model, ask.messages, ask.prompt, repeat=repeat, purpose=purpose)
        for ask in asks
        for repeat in range(repeats)
    ]


def _read(ask: Ask[T], reply: Reply) -> Told[T] | None:
    if reply.status == "failed" and reply.finish_reason is None:
        return None
    if reply.status in ("refused", "failed"):
        return Told(None, reply.status, reply.text)
    cut = reply.status == "truncated"
    value = ask.read(reply.text, cut)
    if value is not None:
        return Told(value, "ok", reply.text)
    return Told(None, "truncated" if cut else "parse_failed", reply.text)


def _repairable(told: Told[T]) -> bool:
    return told.status in ("parse_failed", "truncated")


def _repair(request: Request, reply: Reply, again: str) -> Request:
    said = (Message("assistant", reply.text),) if reply.text else ()
    return replace(request, messages=(*request.messages, *said, Message("user", again)))


def _repaired(first: Told[T] | None, second: Told[T] | None) -> Told[T] | None:
    if first is None or second is None:
        return None
    raw = f"{first.raw or ''}\n\n[asked again]\n{second.raw or ''}"
    return Told(second.value, "ok" if second.value is not None else first.status, raw)

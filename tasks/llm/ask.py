"""Requests to replies: from the ledger where they were answered, from the endpoint where not."""

import os
from collections.abc import Callable, Iterable, Sequence
from queue import SimpleQueue

from storage.calls import Ledger
from storage.lake import Lake
from storage.places import spelled
from tasks.llm.batch import ask_batch
from tasks.llm.engine import engine
from tasks.llm.model import Reply, Request
from tasks.llm.once import once
from tasks.llm.patience import PATIENCE, Policy
from tasks.llm.rows import from_row
from tasks.llm.waiting import REPLIES

Told = Callable[[int, Reply], object]


def ask(
    lake: str, requests: Sequence[Request], *, on_reply: Told | None = None, policy: Policy = PATIENCE
) -> list[Reply]:
    """One reply a request, in their order; equal requests are asked once, and none whose reply the lake holds.

    Each reply is on the disk before it is handed on. `on_reply(place, reply)` is called in this thread as replies
    come. A `failed` reply without a `finish_reason` is no reply and is asked for again the next time.
    Raises `InputError` where calls are refused (key, credit, model), `EndpointError` where the endpoint does not
    answer, `BudgetStop` where the run's budget is used up; calls under way are waited for and kept.
    """
    places: dict[str, list[int]] = {}
    for place, request in enumerate(requests):
        places.setdefault(request.digest, []).append(place)
    replies: list[Reply | None] = [None] * len(requests)

    def take(digest: str, reply: Reply) -> None:
        for place in places[digest]:
            replies[place] = reply
            if on_reply:
                on_reply(place, reply)

    def came(digest: str, reply: Reply) -> None:
        tell()
        take(digest, reply)

    root, book = spelled(lake), ledger(lake)
    for digest, row in book.find(places).items():
        take(digest, from_row(row))
    missing = [requests[held[0]] for held in places.values() if replies[held[0]] is None]
    live = [request for request in missing if not request.model.batch]
    with REPLIES.awaited(len(missing)) as tell:
        if live:
            _send(root, book, live, came, policy)
        for batch in _by_model(request for request in missing if request.model.batch):
            ask_batch(root, book, batch, came, policy)
    return [reply for reply in replies if reply is not None]


def _send(
    lake: str, book: Ledger, missing: Sequence[Request], take: Callable[[str, Reply], None], policy: Policy
) -> None:
    arrived: SimpleQueue[tuple[int, Reply | None, BaseException | None]] = SimpleQueue()
    stop = engine().submit(lake, book, missing, policy, lambda *told: arrived.put(told))
    try:
        while True:
            place, reply, failure = arrived.get()
            if reply is None:
                break
            take(missing[place].digest, reply)
    except BaseException as error:
        stop(error)
        raise
    if failure:
        raise failure


def _by_model(requests: Iterable[Request]) -> list[list[Request]]:
    groups: dict[str, list[Request]] = {}
    for request in requests:
        groups.setdefault(request.model.name, []).append(request)
    return list(groups.values())


def ledger(lake: str) -> Ledger:
    """The ledger of a lake, one a process."""
    return _ledger(spelled(lake), os.getpid())


@once
def _ledger(root: str, process: int) -> Ledger:
    return Ledger(Lake(root))

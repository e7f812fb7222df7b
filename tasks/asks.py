"""How often a reader asks its model for one question, at most, and how much it shows each time."""

from collections.abc import Callable, Iterator
from math import ceil
from typing import Any

from readers.rankgpt import RankGpt, windows
from tasks.llm.rerank import DIALECTS

RERANK = "rerank"
"""Stands for a rerank endpoint where a prompt's name is expected."""

ONE_TOKEN = ("pointwise", RERANK)
"""Of whose replies one token counts, or none."""

Bound = tuple[int, int]
"""Asks a question, records shown in each."""


def bounds(reader: Any, pool: int, records: int) -> Iterator[tuple[str, Bound]]:
    """Each prompt of a reader with its bound, for pools of `pool` candidates out of `records` in a conversation.

    The reader itself may ask less: an agent that has found enough stops. A reader within a reader (`init`) asks with
    its own defaults, which its prompts stand for. Raises `KeyError` for a prompt that has no row here.
    """
    prompts = getattr(reader, "prompts", ()) or (RERANK,)
    for prompt in prompts:
        asks, shown = _BOUNDS[prompt](reader, pool)
        yield prompt, (asks, min(shown, records))


def _rankgpt(reader: Any, pool: int) -> Bound:
    own = reader if isinstance(reader, RankGpt) else RankGpt()
    return len(list(windows(min(own.depth, pool), own.window, own.step))), own.window


_BOUNDS: dict[str, Callable[[Any, int], Bound]] = {
    "requirements": lambda reader, pool: (1, 0),
    "subset": lambda reader, pool: (1, getattr(reader, "prefilter", pool)),
    "setr": lambda reader, pool: (1, min(getattr(reader, "candidates", 20), pool)),
    "rankgpt": _rankgpt,
    "pointwise": lambda reader, pool: (min(getattr(reader, "depth", 200), pool), 1),
    "mragent": lambda reader, pool: (reader.rounds, reader.tools * reader.depth),
    "mera_plan": lambda reader, pool: (reader.rounds, reader.rounds * reader.depth),
    "mera_verify": lambda reader, pool: (reader.rounds, reader.depth),
    RERANK: lambda reader, pool: (
        ceil(min(reader.depth, pool) / DIALECTS[reader.dialect].most),
        min(reader.depth, DIALECTS[reader.dialect].most, pool),
    ),
}

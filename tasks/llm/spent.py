"""What was asked since a moment, and what it cost."""

from datetime import datetime
from typing import NamedTuple

import polars as pl

from tasks.llm.ask import ledger


class Spent(NamedTuple):
    """The calls of one purpose to one model (the endpoint's name of it), retries included.

    Tokens and `cost` (US dollars) are None where they are not known of every reply.
    """

    purpose: str
    model: str
    calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None


def spent(lake: str, since: datetime, *, by_all: bool = False) -> list[Spent]:
    """What this process has asked since a time in UTC, in the order of the first calls.

    `by_all`: what any process has, as the lake's ledger kept it: a run's calls are made by workers where it has a
    cluster, which does not tell them from those of another run at that time.
    """
    book = ledger(lake)
    rows = (book.rows() if by_all else book.wrote()).filter(pl.col("answered_at") >= since.replace(tzinfo=None))
    sums = [
        pl.when(pl.col(name).is_null().any()).then(None).otherwise(pl.col(name).sum()).alias(name)
        for name in ("prompt_tokens", "completion_tokens", "cost")
    ]
    grouped = rows.group_by("purpose", "model", maintain_order=True).agg(pl.col("attempts").sum(), *sums)
    return [Spent(*row) for row in grouped.rows()]

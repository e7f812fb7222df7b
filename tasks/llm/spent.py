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


def spent(lake: str, since: datetime) -> list[Spent]:
    """What a lake's ledger has kept since a time in UTC, by whatever process, in the order of the first calls."""
    rows = ledger(lake).rows().filter(pl.col("answered_at") >= since.replace(tzinfo=None))
    sums = [
        pl.when(pl.col(name).is_null().any()).then(None).otherwise(pl.col(name).sum()).alias(name)
        for name in ("prompt_tokens", "completion_tokens", "cost")
    ]
    grouped = rows.group_by("purpose", "model", maintain_order=True).agg(pl.col("attempts").sum(), *sums)
    return [Spent(*row) for row in grouped.rows()]

"""What a call costs."""

import tomllib
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

from tasks.llm.model import Model

_TABLE = Path(__file__).parent / "prices.toml"
_MILLION = 1_000_000


@dataclass(frozen=True)
class Price:
    """US dollars a million tokens. `since`: the day of the table's price, None where a protocol says it.

    `batch`: the share that the Batch API asks of it.
    """

    prompt: float
    completion: float
    since: date | None = None
    batch: float = 1.0


def price(model: Model, on: date) -> Price | None:
    """The price of a model on a day: the protocol's, else the table's newest that was in force, else None."""
    if model.prompt_price is not None and model.completion_price is not None:
        return Price(model.prompt_price, model.completion_price)
    rows = [row for row in _rows().get(model.model, ()) if row.since is not None and row.since <= on]
    return max(rows, key=lambda row: row.since or date.min, default=None)


def cost(price: Price | None, prompt_tokens: float | None, completion_tokens: float | None) -> float | None:
    """US dollars of one call; None where the price or the tokens are unknown."""
    if price is None or prompt_tokens is None or completion_tokens is None:
        return None
    share = price.prompt * prompt_tokens + price.completion * completion_tokens
    return share / _MILLION


@cache
def _rows() -> dict[str, list[Price]]:
    rows: dict[str, list[Price]] = {}
    for row in tomllib.loads(_TABLE.read_text(encoding="utf-8"))["price"]:
        rows.setdefault(row.pop("model"), []).append(Price(**row))
    return rows

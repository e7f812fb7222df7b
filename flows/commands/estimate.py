"""`suffice estimate`."""

from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from flows.commands.options import (
    ArmsOption,
    ConversationsOption,
    DataOption,
    JsonOption,
    LakeOption,
    LimitOption,
    ProtocolName,
    SetOption,
    SplitOption,
    chosen_protocol,
)
from flows.commands.screen import console, print_json


def estimate(
    protocol: ProtocolName,
    data: DataOption = None,
    lake: LakeOption = "lake",
    arms: ArmsOption = None,
    limit: LimitOption = None,
    conversations: ConversationsOption = None,
    split: SplitOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forecast the calls, tokens and cost of a protocol, counting what the lake's ledger holds. Asks no model.

    Exact where evidence and answers are in the lake, an upper bound where they are not: `--until compose` first. Open
    questions alone are counted.
    """
    from flows.estimate import estimate as estimated
    from tasks.forecast import Forecast, total

    said = chosen_protocol(protocol, data, arms, limit, conversations, set_, sealed=split, lake=lake)
    rows = estimated(said, lake)
    whole = {name: total(rows, name) for name in ("held", "calls", "prompt_tokens", "completion_tokens", "cost")}
    if as_json:
        print_json({"parts": [row._asdict() for row in rows], "total": whole})
        return
    if not rows:
        console().print("This protocol asks no model: nothing to pay.", highlight=False)
        return
    table = Table("stage", "part", "model", "held", "calls", "prompt tokens", "reply tokens", "US$", box=SIMPLE)
    bounded = any(row.at_most for row in rows)
    for row in [*rows, Forecast("total", "", "", at_most=bounded, **whole)]:
        calls = _shown(row.calls) if row.calls is None or not row.at_most else f"≤ {row.calls:,}"
        counts = (_shown(row.held), calls, _shown(row.prompt_tokens), _shown(row.completion_tokens), _money(row.cost))
        table.add_row(row.stage, escape(row.part), row.model, *counts)
    console().print(table)
    if bounded:
        console().print("≤: evidence or answers are still to come; each cell counts as its own.", highlight=False)


def _shown(value: int | None) -> str:
    return "unknown" if value is None else f"{value:,}"


def _money(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}" if value < 1 else f"{value:,.2f}"

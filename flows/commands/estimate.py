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
from flows.progress import minutes


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
    sums = ("held", "calls", "prompt_tokens", "completion_tokens", "cost", "repairs", "seconds")
    whole = {name: total(rows, name) for name in sums}
    if as_json:
        print_json({"parts": [row._asdict() for row in rows], "total": whole})
        return
    if not rows:
        console().print("This protocol asks no model: nothing to pay.", highlight=False)
        return
    columns = ("stage", "part", "model", "held", "calls", "prompt tokens", "reply tokens", "US$", "about")
    table = Table(*columns, box=SIMPLE)
    bounded = any(row.at_most for row in rows)
    for row in [*rows, Forecast("total", "", "", at_most=bounded, **whole)]:
        calls = f"≤ {row.calls:,}" if row.at_most else f"{row.calls:,}"
        counts = (f"{row.held:,}", calls, f"{row.prompt_tokens:,}", f"{row.completion_tokens:,}", _money(row.cost))
        table.add_row(row.stage, escape(row.part), row.model, *counts, _time(row.seconds))
    console().print(table)
    if bounded:
        console().print(
            "≤: evidence or answers are still to come, so that each cell counts as its own, and a reader that decides "
            "as it goes counts as asking all it may.",
            highlight=False,
        )
    if whole["repairs"]:
        console().print(
            f"At most {whole['repairs']:,} calls may come on top: a reply that cannot be read is asked for once more.",
            highlight=False,
        )


def _money(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}" if value < 1 else f"{value:,.2f}"


def _time(seconds: float | None) -> str:
    return "unknown" if seconds is None else minutes(seconds)

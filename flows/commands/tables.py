"""`suffice tables`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from flows.commands.options import (
    ArmsOption,
    ConversationsOption,
    DataOption,
    FreezeOption,
    IdentityOption,
    JsonOption,
    LakeOption,
    LimitOption,
    ProtocolName,
    SetOption,
    SplitOption,
    chosen_protocol,
    listed,
)
from flows.commands.screen import console, print_json
from storage.lake import Lake
from tasks.sealed import Unsealing


def tables(
    protocol: ProtocolName,
    data: DataOption = None,
    lake: LakeOption = "lake",
    table: Annotated[
        list[str] | None,
        typer.Option("--table", help="Only these: bfr, mempursuit, bfr.table16,mempursuit.figure3. All if none."),
    ] = None,
    format_: Annotated[
        list[str] | None, typer.Option("--format", help="html, md, csv, latex; several with commas. html if none.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder to write to; if none, the lake's reports.")
    ] = None,
    bench: Annotated[
        Path | None, typer.Option("--bench", help="What `suffice bench readers --json` printed, for latencies.")
    ] = None,
    arms: ArmsOption = None,
    conversations: ConversationsOption = None,
    limit: LimitOption = None,
    split: SplitOption = None,
    freeze: FreezeOption = None,
    identity: IdentityOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the tables and figures of the two papers with this lake's numbers beside the published ones.

    Reads what the lake holds; starts no server and computes no evidence. What lacks says why. With all tables come
    figures of this run: coverage, cost, latency, differences, question types, reuse, scores, judges, and --bench.
    """
    from flows.tables import tables as written

    said = chosen_protocol(protocol, data, arms, limit, conversations, set_, sealed=split, lake=lake)
    root, unsealing = str(Lake.open(lake).root), Unsealing.by(freeze, identity)
    found = written(said, root, unsealing, listed(table), listed(format_) or ["html"], out, bench)
    if as_json:
        print_json(found)
        return
    screen = console()
    shown = Table(title="Published numbers with ours beside them", title_justify="left", box=SIMPLE, pad_edge=False)
    for name in ("table", "what"):
        shown.add_column(name)
    for name in ("published", "ours", "both"):
        shown.add_column(name, justify="right")
    for row in found["tables"]:
        counts = (row["published"], row["ours"], row["beside"])
        shown.add_row(row["table"], escape(row["title"]), *map(str, counts))
    screen.print(shown)
    for text in found["figures"].values():
        screen.print(f"- {text}", highlight=False, markup=False)
    where = found["paths"].get("tables.html", found["folder"])
    screen.print(f"Tables: {where}", highlight=False, markup=False, soft_wrap=True)

"""`suffice trace`."""

from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from flows.commands.options import (
    ArmsOption,
    DataOption,
    FreezeOption,
    IdentityOption,
    JsonOption,
    LakeOption,
    SetOption,
    SplitOption,
    chosen_protocol,
)
from flows.commands.screen import console, print_json
from storage.lake import Lake
from tasks.sealed import Unsealing


def trace(
    question: Annotated[str, typer.Argument(help="A question's id, as the report shows it: conv-26/q0.")],
    protocol: Annotated[str, typer.Option("--protocol", help="The protocol that was run.")] = "sample",
    data: DataOption = None,
    lake: LakeOption = "lake",
    arms: ArmsOption = None,
    split: SplitOption = None,
    freeze: FreezeOption = None,
    identity: IdentityOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show step by step how every arm came by its evidence for one question, and which gold turn entered when."""
    from flows.trace import trace as traced

    said = chosen_protocol(protocol, data, arms, None, None, set_, sealed=split, lake=lake)
    found = traced(said, str(Lake.open(lake).root), question, Unsealing.by(freeze, identity))
    if as_json:
        print_json(found)
        return
    out = console()
    out.print(f"{found['question']} ({found['kind']}): {found['text']}", highlight=False, markup=False)
    out.print(f"gold: {found['answer']} from {', '.join(found['gold']) or 'no turn'}", highlight=False, markup=False)
    table = Table("arm", "step", "cue", "came back", "kept", "gold that entered", box=SIMPLE)
    for arm in found["arms"]:
        for step in arm["steps"]:
            cells = (arm["arm"], step["view"], step["cue"], str(step["returned"]), str(len(step["kept"])))
            table.add_row(*map(escape, cells), escape(", ".join(step["gold"])))
    out.print(table)

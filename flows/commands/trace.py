"""`suffice trace`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from flows.commands.options import ArmsOption, DataOption, JsonOption, LakeOption, SetOption, chosen_protocol
from flows.commands.screen import console, print_json
from storage.lake import Lake


def trace(
    question: Annotated[str, typer.Argument(help="A question's id, as the report shows it: conv-26/q0.")],
    protocol: Annotated[str, typer.Option("--protocol", help="The protocol that was run.")] = "sample",
    data: DataOption = None,
    lake: LakeOption = Path("lake"),
    arms: ArmsOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show step by step how every arm came by its evidence for one question, and which gold turn entered when."""
    from flows.trace import trace as traced

    said = chosen_protocol(protocol, data, arms, None, None, set_)
    found = traced(said, str(Lake.open(lake).root), question)
    if as_json:
        print_json(found)
        return
    out = console()
    out.print(f"{found['question']} ({found['kind']}): {found['text']}", highlight=False, markup=False)
    out.print(f"gold: {found['answer']}", highlight=False, markup=False)
    for turn, text in found["texts"].items():
        out.print(f"  {turn}  {text}", highlight=False, markup=False)
    table = Table(*_HEADS, box=SIMPLE)
    for arm in found["arms"]:
        for row in _rows(arm, len(found["gold"])):
            table.add_row(*map(escape, row))
        table.add_section()
    out.print(table)


_HEADS = ("arm", "step", "cue", "came back", "kept", "gold that entered", "gold so far", "gold left behind")


def _rows(arm: dict[str, Any], gold: int) -> Iterator[tuple[str, ...]]:
    """A row a step; the first names the arm and what it cost, and whether it was stopped."""
    had = 0
    calls = f", {arm['calls']} calls" if arm["calls"] else ""
    stopped = ", stopped: over budget" if arm["stop"] == "over_budget" else ""
    name = f"{arm['arm']} ({arm['records']} records{calls}{stopped})"
    for step in arm["steps"]:
        had += len(step["gold"])
        so_far = f"{had}/{gold}" if gold else ""
        entered, left = (", ".join(step[key]) for key in ("gold", "passed"))
        yield name, step["view"], step["cue"], str(len(step["returned"])), str(len(step["kept"])), entered, so_far, left
        name = ""

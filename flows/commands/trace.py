"""`suffice trace`."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer
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
    out.print(f"gold: {found['answer']}", highlight=False, markup=False)
    for turn, text in found["texts"].items():
        out.print(f"  {_short(turn)}  {text}", highlight=False, markup=False)
    for arm in found["arms"]:
        out.print(f"\n{_told(arm)}", highlight=False, markup=False, style="bold")
        table = Table(*_HEADS, box=None, pad_edge=False, header_style="dim")
        for row in _rows(arm, found["text"], len(found["gold"])):
            table.add_row(*map(escape, row))
        out.print(table)


_HEADS = ("step", "cue", "came back", "kept", "gold so far", "gold that entered", "gold left behind")


def _told(arm: dict[str, Any]) -> str:
    calls = f", {arm['calls']} calls" if arm["calls"] else ""
    stopped = "; stopped: it asked for more than its budget" if arm["stop"] == "over_budget" else ""
    return f"{arm['arm']}: {arm['records']} records{calls}{stopped}"


def _rows(arm: dict[str, Any], question: str, gold: int) -> Iterator[tuple[str, ...]]:
    """A row a step."""
    had = 0
    for step in arm["steps"]:
        had += len(step["gold"])
        so_far = f"{had}/{gold}" if gold else ""
        cue = "the question" if step["cue"] == question else _short(step["cue"])
        entered, left = (", ".join(map(_short, step[key])) for key in ("gold", "passed"))
        yield step["view"], cue, str(len(step["returned"])), str(len(step["kept"])), so_far, entered, left


def _short(id: str) -> str:
    """A record's id without its conversation; any other text as it is."""
    return id.rpartition("/")[2] if " " not in id else id

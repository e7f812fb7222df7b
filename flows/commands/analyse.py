"""`suffice analyse`."""

import json
from typing import Annotated

import typer
from rich.console import Console

from flows.commands.options import (
    ConversationsOption,
    DataOption,
    FreezeOption,
    IdentityOption,
    JsonOption,
    LakeOption,
    LimitOption,
    ProtocolName,
    QuietOption,
    SetOption,
    SplitOption,
    VerboseOption,
    chosen_protocol,
    refuse_closed,
)
from flows.commands.screen import console, print_json
from flows.progress import shown
from flows.server import configure
from storage.errors import InputError
from storage.lake import Lake
from storage.places import place, read_whole


def analyse(
    what: Annotated[str, typer.Argument(help="What to analyse: pursuit.")],
    protocol: ProtocolName,
    data: DataOption = None,
    lake: LakeOption = "lake",
    store: Annotated[str | None, typer.Option("--store", help="The store to analyse; the first if none.")] = None,
    conversations: ConversationsOption = None,
    limit: LimitOption = None,
    split: SplitOption = None,
    freeze: FreezeOption = None,
    identity: IdentityOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Analyse why a reader selects as it does, over pools that the lake holds.

    `pursuit`: what MemPursuit replaces and covers, its nested budget curve with the adaptive point, whether gold
    reconstructs the question better than the ranking does, and whether the residual prefers missing evidence.
    """
    if what != "pursuit":
        raise InputError(f"analyse: pursuit expected, {what!r} found")
    said = chosen_protocol(protocol, data, None, limit, conversations, set_, sealed=split, lake=lake)
    refuse_closed(said, freeze, identity)
    root = Lake.open(lake).root
    configure(Lake(root).prefect, verbose=verbose)
    from flows.analyse import analyse as flow

    with shown(Console(stderr=True), quiet=quiet or as_json):
        paths: dict[str, str] = flow(said, str(root), store, freeze, identity)
    readings = json.loads(read_whole(place(paths["summary"])))["readings"]
    if as_json:
        print_json({"paths": paths, "readings": readings})
        return
    out = console()
    for reading in readings.values() if isinstance(readings, dict) else readings:
        out.print(f"- {reading}", highlight=False)
    out.print(f"Analysis: {paths['analysis']}", highlight=False, soft_wrap=True)

"""`suffice fit`."""

from typing import Annotated

import typer
from rich.console import Console

from flows.commands.options import (
    ConversationsOption,
    DataOption,
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
from storage.lake import Lake


def fit(
    protocol: ProtocolName,
    reader: Annotated[str, typer.Argument(help="The reader that learns: rsc.")] = "rsc",
    data: DataOption = None,
    lake: LakeOption = "lake",
    conversations: ConversationsOption = None,
    limit: LimitOption = None,
    split: SplitOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Learn a reader's weights on a benchmark and print the reader with them, as an arm for another benchmark.

    All conversations of the protocol teach, so what is printed is no result on this benchmark: there `rsc` without
    weights is read with those that other conversations taught. A sealed split teaches nothing.
    """
    said = chosen_protocol(protocol, data, None, limit, conversations, set_, sealed=split, lake=lake)
    refuse_closed(said)
    root = Lake.open(lake).root
    configure(Lake(root).prefect, verbose=verbose)
    from flows.fit import fit as flow

    with shown(Console(stderr=True), quiet=quiet or as_json):
        found: str = flow(said, str(root), reader)
    if as_json:
        print_json({"reader": found, "benchmark": said.data.benchmark})
        return
    console().print(found, highlight=False, markup=False, soft_wrap=True)

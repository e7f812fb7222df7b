"""`suffice status`."""

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
)
from flows.commands.screen import console, print_json
from storage.lake import Lake
from tasks.sealed import Unsealing


def status(
    protocol: ProtocolName,
    data: DataOption = None,
    lake: LakeOption = "lake",
    arms: ArmsOption = None,
    limit: LimitOption = None,
    conversations: ConversationsOption = None,
    split: SplitOption = None,
    freeze: FreezeOption = None,
    identity: IdentityOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what the lake holds for a protocol and what is missing. Starts no server and computes nothing."""
    from flows.status import held

    said = chosen_protocol(protocol, data, arms, limit, conversations, set_, sealed=split, lake=lake)
    rows = held(said, str(Lake.open(lake, new=False).root), Unsealing.by(freeze, identity))
    if as_json:
        print_json({"held": [row._asdict() for row in rows]})
        return
    table = Table("stage", "what", "held", "expected", "missing", title=f"{said.name} in {lake}")
    for row in rows:
        table.add_row(row.stage, row.what, f"{row.held:,}", f"{row.expected:,}", f"{row.expected - row.held:,}")
    console().print(table)

"""`suffice diagnose`."""

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
)
from flows.commands.screen import console, percent, print_json
from storage.lake import Lake
from tasks.sealed import Unsealing


def diagnose(
    protocol: ProtocolName,
    judge: Annotated[str | None, typer.Option("--judge", help="Whose verdicts count; if none, the first's.")] = None,
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
    """Show where every arm's answers fail: evidence absent, present but not enough, enough but misread.

    Reads what the lake holds; starts no server and computes nothing. The judges of sufficiency are the protocol's.
    """
    from flows.diagnose import diagnose as diagnosed
    from reports.diagnosis import DIAGNOSES

    said = chosen_protocol(protocol, data, arms, limit, conversations, set_, sealed=split, lake=lake)
    found = diagnosed(said, str(Lake.open(lake).root), judge, Unsealing.by(freeze, identity))
    if as_json:
        print_json(found)
        return
    out = console()
    panel = ", ".join(found["panel"]) + (f"; {found['adjudicator']} adjudicates" if found["adjudicator"] else "")
    suffices = Table(title=f"Evidence that suffices, by {escape(panel)}", title_justify="left", box=SIMPLE)
    suffices.add_column("arm")
    for name in ("sufficient, %", "sufficient", "insufficient", "uncertain", "not judged"):
        suffices.add_column(name, justify="right")
    for row in found["sufficiency"]:
        counts = [row[name] for name in ("sufficient", "insufficient", "uncertain", "missing")]
        suffices.add_row(escape(row["arm"]), percent(row["share"]), *map(str, counts))
    out.print(suffices)
    causes = Table(title=f"Where answers fail, by {escape(found['judge'])}", title_justify="left", box=SIMPLE)
    causes.add_column("arm")
    for name in ("n", *DIAGNOSES):
        causes.add_column(name, justify="right")
    for row in found["diagnosis"]:
        causes.add_row(escape(row["arm"]), *(str(row[name]) for name in ("n", *DIAGNOSES)))
    out.print(causes)
    for name, meaning in DIAGNOSES.items():
        out.print(f"{name}: {meaning}", highlight=False)

"""`suffice rejudge`."""

from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
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
    MaxCallsOption,
    MaxCostOption,
    ProtocolName,
    QuietOption,
    SetOption,
    SplitOption,
    VerboseOption,
    chosen_protocol,
    listed,
    refuse_closed,
)
from flows.commands.screen import console, percent, print_json
from flows.progress import shown
from flows.protocol import with_judges
from flows.server import configure
from storage.lake import Lake
from tasks.llm.budget import budget


def rejudge(
    protocol: ProtocolName,
    judge: Annotated[
        list[str] | None, typer.Option("--judge", help="Judge by this one too; repeatable: 'lenient(model=small)'.")
    ] = None,
    data: DataOption = None,
    lake: LakeOption = "lake",
    arms: ArmsOption = None,
    limit: LimitOption = None,
    conversations: ConversationsOption = None,
    max_calls: MaxCallsOption = None,
    max_cost: MaxCostOption = None,
    split: SplitOption = None,
    freeze: FreezeOption = None,
    identity: IdentityOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Judge the answers that the lake holds by further judges, and show the same answers under all of them.

    Nothing before the verdicts is computed or changed. Without --judge it compares the protocol's own judges. A sealed
    split has the judges that were frozen, and no others.
    """
    said = chosen_protocol(protocol, data, arms, limit, conversations, set_, sealed=split, lake=lake)
    said = with_judges(said, listed(judge))
    refuse_closed(said, freeze, identity)
    root = str(Lake.open(lake).root)
    configure(Lake(root).prefect, verbose=verbose)
    from flows.rejudge import rejudge as flow

    spent = budget(root, max_calls=max_calls, max_cost=max_cost)
    with spent, shown(Console(stderr=True), quiet=quiet or as_json):
        found: dict[str, Any] = flow(said, root, freeze, identity)
    if as_json:
        print_json(found)
        return
    out = console()
    out.print(_by_arm(found["arms"]))
    out.print(_judges(found["judges"]))
    if found["agreement"]:
        out.print(_agreement(found["agreement"]))


def _by_arm(rows: list[dict[str, Any]]) -> Table:
    judges = list(dict.fromkeys(row["judge"] for row in rows))
    cells = {(row["arm"], row["judge"]): row for row in rows}
    table = _table("The same answers under all judges: mean score in %, not judged counts 0", "arm", *judges)
    for arm in dict.fromkeys(row["arm"] for row in rows):
        table.add_row(escape(arm), *(_score(cells[arm, judge]) for judge in judges))
    return table


def _score(row: dict[str, Any]) -> str:
    """The strict mean; beside it the mean over judged cells where some were not."""
    if row["n_judged"] == row["n"]:
        return percent(row["strict"])
    return f"{percent(row['strict'])} ({percent(row['judged'])} of {row['n_judged']:,} judged)"


def _judges(rows: list[dict[str, Any]]) -> Table:
    table = _table("Judges", "judge", "distinct answers", "not judged", "flip rate, %")
    for row in rows:
        table.add_row(escape(row["judge"]), f"{row['answers']:,}", f"{row['not judged']:,}", percent(row["flip rate"]))
    return table


def _agreement(rows: list[dict[str, Any]]) -> Table:
    columns = ("one", "other", "answers", "agree, %", "kappa", "alpha of labels", "alpha of scores")
    table = _table("Agreement over distinct answers; a score above 0.5 is right", *columns)
    for row in rows:
        numbers = [row["kappa"], row["alpha_nominal"], row["alpha_interval"]]
        cells = [
            f"{row['n']:,}",
            percent(row["agreement"]),
            *("" if each is None else f"{each:.3f}" for each in numbers),
        ]
        table.add_row(escape(row["one"]), escape(row["other"]), *cells)
    return table


def _table(title: str, first: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    table.add_column(first)
    for name in columns:
        table.add_column(escape(name), justify="left" if name == "other" else "right")
    return table

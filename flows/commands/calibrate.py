"""`suffice calibrate`."""

from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.commands.options import (
    ConversationsOption,
    DataOption,
    JsonOption,
    LakeOption,
    LimitOption,
    MaxCallsOption,
    MaxCostOption,
    QuietOption,
    SetOption,
    SplitOption,
    VerboseOption,
    changed_protocol,
    chosen_protocol,
    refuse_closed,
)
from flows.commands.screen import console, percent, print_json
from flows.progress import shown
from flows.protocol import with_judges
from flows.server import configure
from storage.lake import Lake
from tasks.llm.budget import budget


def calibrate(
    judge: Annotated[str, typer.Argument(help="The judge to measure: lexical_match, 'lenient(model=small)'.")],
    protocol: Annotated[str, typer.Option("--protocol", help="Whose questions and models are used.")] = "sample",
    data: DataOption = None,
    lake: LakeOption = "lake",
    limit: LimitOption = None,
    conversations: ConversationsOption = None,
    max_calls: MaxCallsOption = None,
    max_cost: MaxCostOption = None,
    split: SplitOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Measure how often a judge errs: on wrong replies, specific and vague, and on good ones, planted by rule.

    A wrong reply that is specific is the gold answer of another question of the same kind and conversation. Where
    --data is a folder of the public LoCoMo audit, its planted and real answers are judged instead; its own votes are
    the judge 'recorded(path=FOLDER)'. The rates correct the accuracy of every arm that the judge has judged. Open
    questions alone are used.
    """
    from tasks.audit import is_audit

    root = str(Lake.open(lake).root)
    spent = budget(root, max_calls=max_calls, max_cost=max_cost)
    if data is not None and is_audit(data):
        from flows.calibrate import calibrate_audit

        said = with_judges(changed_protocol(protocol, None, None, None, None, set_), [judge])
        with spent, shown(Console(stderr=True), quiet=quiet or as_json):
            found: dict[str, Any] = calibrate_audit(said, root, judge, data, limit)
    else:
        said = chosen_protocol(protocol, data, None, limit, conversations, set_, sealed=split, lake=lake)
        said = with_judges(said, [judge])
        refuse_closed(said)
        configure(Lake(root).prefect, verbose=verbose)
        from flows.calibrate import calibrate as flow

        with spent, shown(Console(stderr=True), quiet=quiet or as_json):
            found = flow(said, root, judge)
    if as_json:
        print_json(found)
        return
    out = console()
    out.print(_rates(found))
    if found["accuracy"]:
        out.print(_accuracy(found))
        out.print(
            "Corrected for the judge's errors (Rogan-Gladen). A reader's wrong answers lie between specific and vague: "
            "the two columns bound the truth.",
            highlight=False,
        )


def _rates(found: dict[str, Any]) -> Table:
    table = Table(title=f"Errors of {escape(found['judge'])}", title_justify="left", box=SIMPLE)
    for name in ("", "replies", "%", "95 % interval"):
        table.add_column(name, justify="right" if name else "left")
    for row in found["rates"]:
        table.add_row(row["what"], f"{row['n']:,}", percent(row["rate"], 2), _interval(row))
    return table


def _accuracy(found: dict[str, Any]) -> Table:
    table = Table(title="Accuracy by this judge, %", title_justify="left", box=SIMPLE)
    for name in ("answers", "n", "as judged", "interval", "corrected by specific", "corrected by vague"):
        table.add_column(name, justify="left" if name == "answers" else "right")
    for row in found["accuracy"]:
        estimates = [
            f"{percent(row[by]['value'], 2)} [{_interval(row[by])}]" if row[by] else "not possible"
            for by in ("by specific", "by vague")
        ]
        table.add_row(escape(row["answers"]), f"{row['n']:,}", percent(row["accuracy"], 2), _interval(row), *estimates)
    return table


def _interval(row: dict[str, Any]) -> str:
    return "" if row["low"] is None else f"{percent(row['low'], 2)} to {percent(row['high'], 2)}"

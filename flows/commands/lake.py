"""`suffice lake`."""

from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Table

from flows.commands.options import JsonOption, LakeOption
from flows.commands.screen import console, print_json
from storage.errors import InputError
from storage.lake import Lake
from storage.upkeep import Checked, clean, verify


def lake(
    what: Annotated[str, typer.Argument(help="What to do: verify or clean.")],
    lake: LakeOption = "lake",
    older: Annotated[
        float, typer.Option(min=0, help="`clean` leaves what was written within this many minutes.")
    ] = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Look after a lake. Runs may go on meanwhile.

    `verify` reads every part file, and checks its digest, its columns and its keys, and opens every index; exit code 1
    where something is wrong. `clean` deletes the temporary files and unfinished indexes that killed processes left.
    """
    if what not in ("verify", "clean"):
        raise InputError(f"lake: verify or clean expected, {what!r} found")
    opened = Lake.open(lake, new=False)
    if what == "verify":
        _report(verify(opened), as_json)
        return
    removed = [str(path) for path in clean(opened, older * 60)]
    if as_json:
        print_json({"removed": removed})
        return
    for path in removed:
        print(path)
    print(f"{len(removed)} left by killed processes, deleted." if removed else "Nothing to delete.")


def _report(found: Checked, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "parts": found.parts,
                "rows": found.rows,
                "indexes": found.indexes,
                "findings": [vars(finding) for finding in found.findings],
            }
        )
    else:
        table = Table("where", "what is wrong", "what to do", box=SIMPLE)
        for finding in found.findings:
            table.add_row(escape(finding.path), escape(finding.problem), escape(finding.remedy))
        out = console()
        if found.findings:
            out.print(table)
        wrong = f"wrong: {len(found.findings):,}" if found.findings else "all whole"
        out.print(
            f"Part files: {found.parts:,}; rows: {found.rows:,}; indexes: {found.indexes:,}; {wrong}.", highlight=False
        )
    raise typer.Exit(1 if found.findings else 0)

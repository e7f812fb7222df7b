"""`suffice doctor`."""

from typing import Annotated

import typer
from rich.table import Table

from flows.commands.options import JsonOption
from flows.commands.screen import console, print_json


def doctor(
    endpoint: Annotated[
        list[str] | None,
        typer.Option("--endpoint", help="Also ask this OpenAI-compatible base URL for its models."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check what is installed, which models and endpoints answer, and say how to get what is missing."""
    from flows.doctor import checks

    rows = checks(endpoint or [])
    if as_json:
        print_json({"checks": [row._asdict() for row in rows]})
    else:
        table = Table("", "check", "found", "what to do")
        for row in rows:
            table.add_row("[green]ok[/]" if row.ok else "[red]missing[/]", row.name, row.found, row.remedy)
        console().print(table)
    raise typer.Exit(0 if all(row.ok for row in rows) else 1)

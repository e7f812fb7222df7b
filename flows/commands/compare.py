"""`suffice compare`."""

from typing import Annotated

import typer

from flows.commands.options import JsonOption, LakeOption
from flows.commands.screen import console, print_json, print_rows


def compare(
    first: Annotated[str, typer.Argument(help="A run: its report's folder, or the folder's name in the lake.")],
    second: Annotated[str, typer.Argument(help="The run to compare it with.")],
    lake: LakeOption = "lake",
    despite: Annotated[
        list[str] | None, typer.Option("--despite", help="Compare though this field differs; the table says so.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Put two runs side by side, if they measured the same thing: data, gold, judges, denominators, budgets."""
    from flows.compare import compare as compared

    found = compared(first, second, str(lake), despite or ())
    marks = [str(each) for each in found.despite]
    if as_json:
        print_json({"despite": marks, "rows": found.rows.to_dicts()})
        return
    out = console()
    for mark in marks:
        out.print(f"NOT COMPARABLE in {mark}", style="red", highlight=False, markup=False, soft_wrap=True)
    overall = found.rows.filter(kind="all").drop("kind")
    rows = [{name: _shown(value) for name, value in row.items()} for row in overall.iter_rows(named=True)]
    print_rows(out, "second less first" + (", not comparable" if marks else ""), rows)


def _shown(value: object) -> object:
    return f"{value:.4g}" if isinstance(value, float) else value

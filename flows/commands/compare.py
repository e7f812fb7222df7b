"""`suffice compare`."""

from pathlib import Path
from typing import Annotated, Any

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
    out: Annotated[
        Path | None, typer.Option("--out", help="The folder of the page; if none, beside the second run's report.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Put two runs side by side, if they measured the same thing: data, gold, judges, denominators, budgets.

    Arms of both runs are paired on their common questions where both reports kept their cells. The last line is the
    path of a page with every measure.
    """
    from flows.compare import compare as compared
    from flows.compare import page as paged
    from reports.comparisons import comparison_rows

    found = compared(first, second, str(lake), despite or ())
    path = paged(found, out)
    marks = [str(each) for each in found.despite]
    paired = comparison_rows(found.paired).to_dicts()
    if as_json:
        print_json(
            {
                "despite": marks,
                "made": [each._asdict() for each in found.made],
                "rows": found.rows.to_dicts(),
                "paired": paired,
                "page": str(path),
            }
        )
        return
    screen = console()
    for mark in marks:
        screen.print(f"NOT COMPARABLE in {mark}", style="red", highlight=False, markup=False, soft_wrap=True)
    for each in found.made:
        screen.print(f"differs in {each}", style="dim", highlight=False, markup=False, soft_wrap=True)
    title = "second less first" + (", not comparable" if marks else "")
    if paired:
        told = [_paired(row) for row in paired if row["kind"] == "all" and row["p"] is not None]
        print_rows(screen, f"{title}, paired on common questions", told)
    known = {contrast.metric for contrast in found.paired}
    overall = found.rows.filter(kind="all").drop("kind").to_dicts()
    rows = [{name: _shown(value) for name, value in row.items()} for row in overall if row["metric"] not in known]
    print_rows(screen, f"{title}, means of each run", rows)
    screen.print(str(path), highlight=False, markup=False, soft_wrap=True)


def _paired(row: dict[str, Any]) -> dict[str, object]:
    """What the screen shows of a comparison: BCa interval by question, Holm's p and what may be said."""
    shown = {"arm": row["arm"], "metric": row["metric"], "n": row["n"], "first": row["before"], "second": row["after"]}
    shown |= {"difference": row["difference"], "low": row["bca_low"], "high": row["bca_high"], "Holm p": row["holm"]}
    return {name: _shown(value) for name, value in shown.items()} | {"": row["verdict"]}


def _shown(value: object) -> object:
    return f"{value:.4g}" if isinstance(value, float) else value

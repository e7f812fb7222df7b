"""`suffice ledger`."""

import typer

from flows.commands.options import JsonOption, LakeOption
from flows.commands.screen import console, print_json
from storage.lake import Lake


def ledger(lake: LakeOption = "lake", as_json: JsonOption = False) -> None:
    """Print what was sealed, frozen, unsealed and reported in a lake, and verify the chain.

    Exit code 1 if it breaks.
    """
    from flows.freeze import ledger_problems
    from storage.ledger import Ledger, shown

    place = Lake.open(lake, new=False)
    lines, problems = Ledger(place.ledger).readable(), ledger_problems(place)
    if as_json:
        print_json({"lines": [vars(line) for line in lines], "problems": problems})
    else:
        out = console()
        for line in lines:
            out.print(shown(line), highlight=False, markup=False, soft_wrap=True)
        for problem in problems:
            out.print(f"broken: {problem}", style="red", highlight=False, markup=False, soft_wrap=True)
        if not problems:
            head = f", last hash {lines[-1].hash[:16]}" if lines else ""
            out.print(f"The chain holds: {len(lines)} lines{head}.", highlight=False)
    raise typer.Exit(1 if problems else 0)

"""`suffice arms`."""

from rich.table import Table

from flows.commands.options import JsonOption
from flows.commands.screen import console, print_json


def list_arms(as_json: JsonOption = False) -> None:
    """List every reader with its parameters, their defaults and its source."""
    from flows.catalogue import readers

    rows = readers()
    if as_json:
        print_json({"readers": rows})
        return
    table = Table("reader", "what it does", "parameters", "source", title="Readers", show_lines=True)
    for row in rows:
        table.add_row(row["name"], row["title"], row["parameters"], row["source"])
    out = console()
    out.print(table)
    out.print(
        "An arm is reader(parameter=value)@budget:store. Budgets: k10 (ten records), t2000 (2,000 tokens), all.",
        highlight=False,
    )

"""How commands write to the screen."""

import json
import sys
from typing import Any

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table


def console(width: int = 144) -> Console:
    """Standard output; `width` columns where it is no terminal."""
    return Console() if sys.stdout.isatty() else Console(width=width)


def percent(share: float | None, digits: int = 1) -> str:
    """A share in [0, 1] as a percentage without its sign; nothing for None."""
    return "" if share is None else f"{100 * share:.{digits}f}"


def print_json(value: Any) -> None:
    """One line of JSON on standard output."""
    print(json.dumps(value, ensure_ascii=False))


def print_rows(console: Console, title: str, rows: list[dict[str, Any]]) -> None:
    """A table of rows that may lack each other's columns."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = Table(*names, title=title, title_justify="left", box=SIMPLE)
    for row in rows:
        table.add_row(*("" if row.get(name) is None else str(row[name]) for name in names))
    console.print(table)

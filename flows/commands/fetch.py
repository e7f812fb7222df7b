"""`suffice fetch`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from flows.commands.options import QuietOption


def fetch(
    benchmark: Annotated[
        str,
        typer.Argument(help="locomo, longmemeval_{s,m,oracle} or beam_{100k,500k,1m,10m}."),
    ],
    to: Annotated[Path, typer.Option("--to", help="The folder to put it in.")] = Path("data"),
    url: Annotated[str | None, typer.Option("--url", help="Another place that serves the same files.")] = None,
    quiet: QuietOption = False,
) -> None:
    """Download a benchmark from its public home, check its digest, and go on with a broken download."""
    from tasks.fetch import fetch as download

    console = Console(stderr=True)
    path = download(benchmark, to, url, None if quiet else lambda text: console.print(text, highlight=False))
    print(path)

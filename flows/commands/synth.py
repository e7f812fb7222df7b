"""`suffice synth`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.options import JsonOption


def synth(
    data: Annotated[Path, typer.Option("--data", help="A file of LongMemEval's layout, or a folder of them.")],
    to: Annotated[Path, typer.Option("--to", help="The file to write.")] = Path("data/synthetic.json"),
    haystacks: Annotated[int, typer.Option(min=1, help="Questions, each with a haystack of its own.")] = 500,
    sessions: Annotated[int, typer.Option(min=1, help="Sessions of a haystack, on average.")] = 46,
    distinct: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of filling sessions that no other haystack holds.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(help="Every draw follows from it.")] = 20261130,
    as_json: JsonOption = False,
) -> None:
    """Make a benchmark of LongMemEval's size from real sessions, to measure size and speed.

    It is marked synthetic, and is not LongMemEval: run it by the protocol `synthetic`. Evidence metrics on it compare
    readers within haystacks of real sessions; no published figure is beside them.
    """
    from flows.synth import Size
    from flows.synth import synth as made

    counts = made(data, to, Size(haystacks, sessions, distinct, seed))
    if as_json:
        print(json.dumps({"path": str(to), **counts}))
        return
    print(f"{to}: {', '.join(f'{count:,} {what}' for what, count in counts.items())}; synthetic, not LongMemEval")

"""`suffice bench`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE
from rich.table import Table

from flows.commands.options import DataOption, JsonOption
from flows.commands.screen import console, print_json, print_rows
from storage.errors import InputError


def bench(
    what: Annotated[
        str, typer.Argument(help="What to measure: pipeline, readers, calls, statistics, scale.")
    ] = "pipeline",
    data: DataOption = None,
    lake: Annotated[
        Path | None, typer.Option("--lake", help="A lake whose cached vectors `readers` may use; else a passing one.")
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="Also draw what `readers` measures into this folder: SVG, PNG and CSV."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure speed on this machine; the bundled sample where no LoCoMo file is named with --data.

    `pipeline` runs the main job from nothing to the report, then again. `readers` times the pursuit over a grid of
    candidates and budgets, against one pass over the pool, the published times and other solvers in the same run.
    `statistics` computes a report's intervals and tests of 40 arms over 1,540 questions with 10,000 resamples.
    `calls` asks a local server that replies after 200 ms, 32 calls at a time, against the ideal and the bare client.
    `scale` shows what a record costs from 25 thousand records to 2.5 million, in haystacks made by `suffice synth`
    from the LongMemEval file that --data names; it takes an hour or so and 40 GB of disk in the folder of --lake.
    """
    from flows.bench import latencies, measure

    if figure is not None and what != "readers":
        raise InputError(f"--figure draws `bench readers`, not {what!r}")
    measured = measure(what, data, None if lake is None else str(lake))
    drawn = latencies(measured["cells"], figure) if figure is not None else {}
    if as_json:
        print_json(measured | ({"paths": drawn} if drawn else {}))
        return
    out = console(140)
    plain = Table("measure", "value", title=f"suffice bench {what}", box=SIMPLE)
    for name, value in measured.items():
        if isinstance(value, list):
            print_rows(out, name, value)
        else:
            plain.add_row(name, str(value))
    out.print(plain)
    for path in drawn.values():
        out.print(f"Figure: {path}", highlight=False, markup=False, soft_wrap=True)

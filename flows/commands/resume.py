"""`suffice resume`."""

from typing import Annotated

import typer
from rich.console import Console

from flows.commands.options import (
    FreezeOption,
    IdentityOption,
    JsonOption,
    LakeOption,
    QuietOption,
    VerboseOption,
    refuse_closed,
)
from flows.commands.run import run_and_tell
from flows.runners import THREADS
from flows.runs import Start, show_as_crashed, unfinished
from flows.server import configure
from storage.errors import InputError
from storage.lake import Lake


def resume(
    lake: LakeOption = "lake",
    runner: Annotated[str, typer.Option("--runner", help="Where: threads, dask, or dask://host:port.")] = THREADS,
    workers: Annotated[int, typer.Option(min=1, help="Shards that are worked on at the same time.")] = 2,
    freeze: FreezeOption = None,
    identity: IdentityOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Go on with the latest run of a lake that was cut off, under the protocol it had; Prefect shows it as crashed.

    A run over a sealed split needs its --freeze and --identity again.
    """
    root = str(Lake.open(lake).root)
    start = _cut_off(root)
    refuse_closed(start.protocol, freeze, identity)
    console = Console(stderr=True)
    if not quiet:
        console.print(f"going on with {start.protocol.name}, begun {start.started_at:%Y-%m-%d %H:%M} UTC", style="dim")
    configure(Lake(root).prefect, verbose=verbose)
    show_as_crashed(start)
    run_and_tell(
        start.protocol,
        root,
        start.stages,
        freeze,
        identity,
        runner=runner,
        workers=workers,
        as_json=as_json,
        quiet=quiet,
        verbose=verbose,
    )


def _cut_off(root: str) -> Start:
    found = unfinished(root)
    running = [start for start in found if start.alive]
    for start in found:
        if not start.alive:
            return start
    if running:
        raise InputError(
            f"resume: a run that was cut off expected, {running[0].protocol.name} is still running; wait for it"
        )
    raise InputError(f"resume: a run of {root} that was cut off expected, none found; `suffice run` starts one")

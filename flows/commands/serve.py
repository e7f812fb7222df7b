"""`suffice serve`."""

from typing import Annotated, Any

import typer
from rich.console import Console

from flows.commands.options import (
    DataOption,
    FreezeOption,
    IdentityOption,
    LakeOption,
    ProtocolName,
    SetOption,
    SplitOption,
    VerboseOption,
    chosen_protocol,
    refuse_closed,
)
from flows.protocol import setting
from flows.runners import THREADS
from flows.server import configure
from storage.errors import InputError
from storage.lake import Lake
from tasks.sealed import Unsealing


def serve(
    protocol: ProtocolName,
    cron: Annotated[str, typer.Option("--cron", help="When to run: minute hour day month weekday, '0 3 * * *'.")],
    timezone: Annotated[str, typer.Option("--timezone", help="The time zone that --cron is meant in.")] = "UTC",
    data: DataOption = None,
    lake: LakeOption = "lake",
    name: Annotated[str | None, typer.Option("--name", help="The deployment's name; else the protocol's.")] = None,
    runner: Annotated[str, typer.Option("--runner", help="Where: threads, dask, or dask://host:port.")] = THREADS,
    workers: Annotated[int, typer.Option(min=1, help="Shards that are worked on at the same time.")] = 2,
    split: SplitOption = None,
    freeze: FreezeOption = None,
    identity: IdentityOption = None,
    set_: SetOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Run a protocol on a schedule, until this process is stopped; a run that comes due waits for the one before it.

    Each run goes on from what the lake holds. With PREFECT_API_URL set, the runs are shown, started and cancelled at
    that server; else in this process's own. Of --identity the server knows the path alone; each run over a sealed split
    passes the gate anew, and stops there once the code has changed.
    """
    said = chosen_protocol(protocol, data, None, None, None, set_, sealed=split, lake=lake)
    refuse_closed(said, freeze, identity)
    leave = Unsealing.by(freeze, identity)
    parameters: dict[str, Any] = {
        "protocol": protocol,
        "data": said.data.path,
        "lake": str(Lake.open(lake).root),
        "settings": dict(setting(change) for change in set_ or []),
        "runner": runner,
        "workers": workers,
        "split": split or "",
        "freeze": leave.manifest if leave else "",
        "identity": leave.identity if leave else "",
    }
    configure(Lake(lake).prefect, verbose=verbose)
    from prefect.client.schemas.schedules import is_valid_timezone
    from prefect.schedules import Cron
    from prefect.types.entrypoint import EntrypointType

    from flows.scheduled import scheduled

    if not is_valid_timezone(timezone):
        raise InputError(f"--timezone: a name such as UTC or Europe/Berlin expected, {timezone!r} found")
    try:
        schedule = Cron(cron, timezone=timezone)
    except ValueError as error:
        raise InputError(f"--cron: {str(error).splitlines()[0]}; '0 3 * * *' is a good one") from error
    Console(stderr=True).print(f"serving {said.name} at {cron} ({timezone}); stop with Ctrl-C", highlight=False)
    scheduled.serve(
        name=name or said.name,
        schedule=schedule,
        parameters=parameters,
        tags=["suffice", said.name, said.data.split],
        limit=1,
        pause_on_shutdown=True,
        print_starting_message=False,
        entrypoint_type=EntrypointType.MODULE_PATH,
    )

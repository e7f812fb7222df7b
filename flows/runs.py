"""Which runs of a lake began, which ended, and which were cut off."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import polars as pl
from pydantic import ValidationError

from flows.protocol import Protocol
from storage.digests import digest
from storage.errors import InputError
from storage.lake import Lake
from storage.schemas import RUNS, STARTS

SCOPE = digest("runs")


@dataclass(frozen=True)
class Start:
    """A run that began and did not end: what it ran, since when, and whether its process is still there.

    `alive` is None where it ran on another host.
    """

    run: str
    protocol: Protocol
    stages: tuple[str, ...]
    started_at: datetime
    alive: bool | None
    flow_run: UUID | None


def begun(lake: str, protocol: Protocol, stages: Sequence[str]) -> str:
    """Note that a run begins; returns its name.

    Prefect is told that the one before it crashed, where that was of this protocol and its process on this host died.
    """
    from prefect.runtime import flow_run

    for start in unfinished(lake, protocol):
        if start.alive is False:
            show_as_crashed(start)
    started = datetime.now(UTC)
    run = digest([protocol.digest, started.isoformat(), platform.node(), os.getpid()])
    row = {
        "run": run,
        "protocol": protocol.model_dump_json(),
        "stages": list(stages),
        "started_at": started.replace(tzinfo=None),
        "host": platform.node(),
        "process": os.getpid(),
        "flow_run": flow_run.id,
    }
    Lake(lake).table(STARTS, SCOPE).append([row])
    return run


def ended(lake: str, run: str, protocol: Protocol, summary: dict[str, Any]) -> None:
    """Note that a run ended, with what it made."""
    row = {
        "run": run,
        "protocol": protocol.name,
        "digest": protocol.digest,
        "ended_at": datetime.now(UTC).replace(tzinfo=None),
        "summary": json.dumps({key: summary[key] for key in ("new", "seconds")}),
    }
    Lake(lake).table(RUNS, SCOPE).append([row])


def ran(lake: str, protocol: Protocol) -> bool:
    """Whether a run of this very protocol ended."""
    return protocol.digest in Lake(lake).table(RUNS, SCOPE).read(["digest"])["digest"]


def unfinished(lake: str, protocol: Protocol | None = None) -> list[Start]:
    """The runs, of `protocol` or of any, that began and never ended, the latest first.

    One a protocol: those before it were gone on with. Raises `InputError` for one of another version's protocol.
    """
    starts, runs = (Lake(lake).table(spec, SCOPE).read() for spec in (STARTS, RUNS))
    starts = starts if protocol is None else starts.filter(pl.col("protocol") == protocol.model_dump_json())
    latest = starts.sort("started_at", descending=True).unique("protocol", keep="first", maintain_order=True)
    cut = latest.join(runs.select("run"), on="run", how="anti")
    return [_start(row) for row in cut.sort("started_at", descending=True).iter_rows(named=True)]


def show_as_crashed(start: Start) -> None:
    """Tell Prefect, which is never told of a killed process; a run that this server does not know is left alone."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound
    from prefect.states import Crashed

    if start.flow_run is None:
        return
    with get_client(sync_client=True) as client:
        try:
            state = client.read_flow_run(start.flow_run).state
            if state is None or not state.is_final():
                client.set_flow_run_state(start.flow_run, Crashed(message="its process is gone"), force=True)
        except ObjectNotFound:
            return


def _start(row: dict[str, Any]) -> Start:
    try:
        protocol = Protocol.model_validate_json(row["protocol"])
    except ValidationError as error:
        raise InputError(
            f"resume: a run of this version expected, one of {row['started_at']:%Y-%m-%d %H:%M} UTC found whose "
            "protocol is of another; start it anew with `suffice run`"
        ) from error
    return Start(
        run=row["run"],
        protocol=protocol,
        stages=tuple(row["stages"]),
        started_at=row["started_at"],
        alive=_alive(row["process"]) if row["host"] == platform.node() else None,
        flow_run=UUID(row["flow_run"]) if row["flow_run"] else None,
    )


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

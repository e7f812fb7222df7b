"""Which runs of a lake began, which ended, and which were cut off."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from flows.protocol import Protocol
from storage.digests import digest
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
    """Note that a run begins; returns its name."""
    from prefect.runtime import flow_run

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


def unfinished(lake: str) -> list[Start]:
    """The runs that began and never ended, the latest first, one a protocol: those before it were gone on with."""
    starts, runs = (Lake(lake).table(spec, SCOPE).read() for spec in (STARTS, RUNS))
    latest = starts.sort("started_at", descending=True).unique("protocol", keep="first", maintain_order=True)
    cut = latest.join(runs.select("run"), on="run", how="anti")
    return [_start(row) for row in cut.sort("started_at", descending=True).iter_rows(named=True)]


def _start(row: dict[str, Any]) -> Start:
    return Start(
        run=row["run"],
        protocol=Protocol.model_validate_json(row["protocol"]),
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

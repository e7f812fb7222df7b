"""How long does the main job take, from nothing to the report and again?"""

import json
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from storage.errors import InputError

_EMPTY_FLOW = """
import sys
from pathlib import Path
from flows.server import configure
configure(Path(sys.argv[1]))
from prefect import flow
flow(name="empty", persist_result=False)(lambda: None)()
"""


def pipeline(data: str | None, lake: str | None = None) -> dict[str, Any]:
    """Run the `locomo` protocol (the bundled sample where no data is named) into a new lake, then again.

    Returns name → value, seconds and MiB. An empty flow under the same settings says how much of each is Prefect's.
    `lake` is not used: a run from nothing needs a lake of its own. Raises `InputError` where a run fails.
    """
    with TemporaryDirectory() as folder:
        first = _run(data, folder)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        again = _run(data, folder)
        start = _empty_flow(Path(folder) / "fresh")
        start_again = _empty_flow(Path(folder) / "lake" / ".prefect")
    embedding = first["seconds"]["index"]
    return {
        "protocol": first["protocol"],
        "cells": first["reuse"]["cells"],
        "nothing to report, s": round(first["wall"], 1),
        "  of which stages, s": _stages(first),
        "  of which embedding and index, s": embedding,
        "  of which all other stages, s": round(_stages(first) - embedding, 1),
        "  of which start of Python and Prefect, s": round(first["wall"] - _stages(first), 1),
        "  Prefect's own start, s": round(start, 1),
        **{f"  stage {stage}, s": seconds for stage, seconds in first["seconds"].items()},
        "again with nothing to do, s": round(again["wall"], 1),
        "  of which stages, s (again)": _stages(again),
        "  beyond Prefect's own start, s": round(again["wall"] - start_again, 1),
        "peak memory of one process, MiB": round(peak),
    }


def _run(data: str | None, folder: str) -> dict[str, Any]:
    protocol = ["locomo", "--data", data] if data else ["sample"]
    command = ["-m", "flows.cli", "run", *protocol, "--lake", str(Path(folder) / "lake"), "--json"]
    output, wall = _timed(command)
    summary: dict[str, Any] = json.loads(output)
    return summary | {"wall": wall}


def _empty_flow(home: Path) -> float:
    """Seconds of a process that runs a flow of no tasks, its server's database in `home`."""
    return _timed(["-c", _EMPTY_FLOW, str(home)])[1]


def _timed(arguments: list[str]) -> tuple[str, float]:
    """What Python with these arguments prints, and its seconds of wall time."""
    start = perf_counter()
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    wall = perf_counter() - start
    if done.returncode:
        raise InputError(f"bench: the run failed: {done.stderr.strip()}")
    return done.stdout, wall


def _stages(summary: dict[str, Any]) -> float:
    return round(float(sum(summary["seconds"].values())), 1)

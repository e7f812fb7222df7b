"""How fast this machine runs the main job, in a process of its own."""

import json
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from storage.errors import InputError

BENCHES = ("pipeline",)


def measure(what: str, data: str | None) -> dict[str, Any]:
    """Measure one of `BENCHES`; returns name → value, seconds and MiB. Raises `InputError` for another name.

    `pipeline` runs the `locomo` protocol (the bundled sample where no data is named) into a new lake, then again.
    """
    if what not in BENCHES:
        raise InputError(f"bench: one of {', '.join(BENCHES)} expected, {what!r} found")
    with TemporaryDirectory() as folder:
        first = _run(data, folder)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        again = _run(data, folder)
    embedding = first["seconds"]["index"]
    return {
        "protocol": first["protocol"],
        "cells": first["reuse"]["cells"],
        "nothing to report, s": round(first["wall"], 1),
        "  of which stages, s": _stages(first),
        "  of which embedding and index, s": embedding,
        "  of which all other stages, s": round(_stages(first) - embedding, 1),
        "  of which start of Python and Prefect, s": round(first["wall"] - _stages(first), 1),
        **{f"  stage {stage}, s": seconds for stage, seconds in first["seconds"].items()},
        "again with nothing to do, s": round(again["wall"], 1),
        "  of which stages, s (again)": _stages(again),
        "peak memory of one process, MiB": round(peak),
    }


def _run(data: str | None, folder: str) -> dict[str, Any]:
    protocol = ["locomo", "--data", data] if data else ["sample"]
    command = [sys.executable, "-m", "flows.cli", "run", *protocol, "--lake", str(Path(folder) / "lake"), "--json"]
    start = perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise InputError(f"bench: the run failed: {done.stderr.strip()}")
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary | {"wall": perf_counter() - start}


def _stages(summary: dict[str, Any]) -> float:
    return round(float(sum(summary["seconds"].values())), 1)

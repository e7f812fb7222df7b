"""How fast is this machine, and how fast are the readers on it?"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from storage.errors import InputError

# Each is imported when it is asked for: what one bench loads would be half of another's start.
BENCHES = {
    "pipeline": "flows.bench.pipeline",
    "readers": "flows.bench.readers",
    "calls": "flows.bench.calls",
    "statistics": "flows.bench.statistics",
    "scale": "flows.bench.scale",
}


def measure(what: str, data: str | None, lake: str | None = None) -> dict[str, Any]:
    """Measure one of `BENCHES`; returns name → value, where a list of rows (name → value each) is a table.

    `data`: the benchmark's file or folder; None is the bundled sample. `lake`: where vectors are kept between runs.
    Raises `InputError` for another name, or for data that is not there.
    """
    if what not in BENCHES:
        raise InputError(f"bench: one of {', '.join(BENCHES)} expected, {what!r} found")
    measured: dict[str, Any] = getattr(import_module(BENCHES[what]), what)(data, lake)
    return measured


def latencies(cells: Sequence[Mapping[str, Any]], folder: Path) -> dict[str, str]:
    """Draw the `cells` that `readers` measured into `folder`; returns file name → path."""
    from reports.latency_grid import latency_grid

    drawn = latency_grid(cells)
    folder.mkdir(parents=True, exist_ok=True)
    return {name: str(path) for name, path in drawn.write(folder).items()} if drawn else {}

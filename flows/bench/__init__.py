"""How fast is this machine, and how fast are the readers on it?"""

from collections.abc import Callable
from typing import Any

from flows.bench.calls import calls
from flows.bench.pipeline import pipeline
from flows.bench.readers import readers
from flows.bench.statistics import statistics
from storage.errors import InputError

BENCHES: dict[str, Callable[[str | None, str | None], dict[str, Any]]] = {
    "pipeline": pipeline,
    "readers": readers,
    "calls": calls,
    "statistics": statistics,
}


def measure(what: str, data: str | None, lake: str | None = None) -> dict[str, Any]:
    """Measure one of `BENCHES`; returns name → value, where a list of rows (name → value each) is a table.

    `data`: the benchmark's file or folder; None is the bundled sample. `lake`: where vectors are kept between runs.
    Raises `InputError` for another name, or for data that is not there.
    """
    if what not in BENCHES:
        raise InputError(f"bench: one of {', '.join(BENCHES)} expected, {what!r} found")
    return BENCHES[what](data, lake)

"""How fast is MemPursuit on this machine, beside one pass over its pool and beside its peers?

The measuring is done by `flows.bench.grid`, in a process whose arithmetic libraries are held to one thread.
"""

import json
import os
import subprocess
import sys
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from storage.errors import InputError
from tasks.sources import locate

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
_FIRST_CALL = """
from time import perf_counter
start = perf_counter()
import numpy as np
from readers.mem_pursuit import mem_pursuit
imported = perf_counter()
rows = np.random.default_rng(0).standard_normal((200, 1536), dtype=np.float32)
made = perf_counter()
mem_pursuit(rows[0], rows, 20)
print(imported - start, perf_counter() - made)
"""


def readers(data: str | None, lake: str | None = None) -> dict[str, Any]:
    """Time the pursuit over a grid of pools; returns name → value, where a list of rows is a table.

    `data`: LoCoMo's file or its folder; None takes the bundled sample's turns. `lake`: where vectors are kept; None
    embeds anew. Progress goes to standard error. Raises `InputError` for data that is not there, or a failed run.
    """
    path = locate("locomo", data or "sample")
    name = "LoCoMo" if data else "bundled sample"
    with TemporaryDirectory() as folder:
        measured: dict[str, Any] = json.loads(_python("-m", "flows.bench.grid", str(path), lake or folder, name))
    calls = [[float(value) for value in _python("-c", _FIRST_CALL).split()] for _ in range(3)]
    return {
        "data": path.name if data else name,
        "first call in a fresh process, kernels cached, s": round(median(call for _, call in calls), 3),
        "  import of the reader before it, s": round(median(load for load, _ in calls), 3),
        **measured,
    }


def _python(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, env=os.environ | ONE_THREAD, check=False
    )
    if done.returncode:
        raise InputError("bench: a process that measures failed; what it said stands above")
    return done.stdout

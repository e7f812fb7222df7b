"""What does a record cost, in time and memory, as a store grows to LongMemEval's size and ten times that?"""

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from flows.evidence import shares
from flows.protocol import load
from flows.synth import Size, synth
from storage.errors import InputError
from storage.holdings import holdings
from storage.lake import Lake
from tasks.candidates import build_pools, missing_pools
from tasks.compose import compose, missing_cells
from tasks.index import build_index
from tasks.ingest import ingest
from tasks.plan import Plan, StorePlan
from tasks.store import write_store
from tasks.warm import warm

HAYSTACKS = (50, 500, 5000)
"""About 25 thousand, 250 thousand and 2.5 million memberships."""
ARMS = (
    "hybrid", "dense", "bm25", "mmr", "mem_pursuit", "random", "dpp", "facility_location", "lin_bilmes", "xquad",
)  # fmt: skip
WORKERS = 2
_PROGRAM = """
import json, sys
from flows.bench.scale import measured
print(json.dumps(measured(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))))
"""


def scale(data: str | None, lake: str | None = None) -> dict[str, Any]:
    """Ingest, store, index, pool and compose synthetic haystacks of growing number; returns the curve, a row a size.

    `data`: a file of LongMemEval's layout or a folder of them, from whose sessions the haystacks are made; every
    filling session is distinct, so that as good as nothing can be shared: the worst case. One more row repeats
    LongMemEval-S's size with sessions that recur. The encoder is `hashed`: how long embedding takes depends on the
    model alone. Stages run in two threads without Prefect. Each size has a process of its own, for its peak memory.
    `lake`: a folder with room for the largest lake; else a passing one. Raises `InputError` without data.
    """
    if data is None:
        raise InputError(
            "bench scale: a file of LongMemEval's layout or a folder of them expected; name it with --data"
        )
    with TemporaryDirectory(dir=lake) as folder:
        sizes = [(haystacks, 1.0) for haystacks in HAYSTACKS] + [(HAYSTACKS[1], 0.0)]
        return {
            "data": Path(data).name,
            "haystacks of about 46 sessions": [_apart(data, folder, *size) for size in sizes],
        }


def _apart(data: str, folder: str, haystacks: int, distinct: float) -> dict[str, Any]:
    """`measured` in a process of its own; the file and the lake are removed after it."""
    command = [sys.executable, "-c", _PROGRAM, data, folder, str(haystacks), str(distinct)]
    print(f"{haystacks} haystacks, {distinct:.0%} distinct", file=sys.stderr, flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    for left in Path(folder).iterdir():
        rmtree(left) if left.is_dir() else left.unlink()
    if done.returncode:
        raise InputError("bench: a measurement failed; what it said stands above")
    row: dict[str, Any] = json.loads(done.stdout)
    return row


def measured(data: str, folder: str, haystacks: int, distinct: float) -> dict[str, Any]:
    """One size: seconds of each stage, microseconds a record, and the peak memory of this process in MiB."""
    file, lake = Path(folder) / "synthetic.json", str(Path(folder) / "lake")
    synth(Path(data), file, Size(haystacks=haystacks, distinct=distinct))
    Lake.open(lake)
    clock = _Clock()
    dataset = clock("ingest", lambda: ingest(lake, "synthetic", str(file)))
    plan = _protocol().plan(lake, dataset.dataset, dataset.gold)
    store = plan.stores[0]
    clock("store", lambda: write_store(plan, store))
    rows = clock("index", lambda: build_index(plan, store))
    clock("pools", lambda: _shared(plan, store, missing_pools(plan, store), build_pools))
    warm(plan)
    cells = missing_cells(plan, store, plan.arms_of(store))
    clock("arms", lambda: _shared(plan, store, set(cells["question_id"]), compose))
    held = int(holdings(Lake(lake), store.store)["records"].sum())
    return {
        "haystacks": haystacks,
        "distinct": distinct,
        "records held": held,
        "records stored": rows,
        **{f"{stage} s": round(seconds, 1) for stage, seconds in clock.seconds.items()},
        "µs a record": round(sum(clock.seconds.values()) / held * 1e6),
        "processor µs a record": round(sum(clock.busy.values()) / held * 1e6),
        "peak MiB": _peak(),
    }


class _Clock:
    """Seconds by stage, of the wall and of the processors."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.busy: dict[str, float] = {}

    def __call__(self, stage: str, work: Callable[[], Any]) -> Any:
        start, busy = perf_counter(), process_time()
        made = work()
        self.seconds[stage], self.busy[stage] = perf_counter() - start, process_time() - busy
        spent = f"{self.seconds[stage]:.1f} s, {self.busy[stage]:.1f} s of processor, peak {_peak()} MiB"
        print(f"  {stage} {spent}", file=sys.stderr, flush=True)
        return made


def _peak() -> int:
    """The most memory that this process has held, in MiB."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def _protocol() -> Any:
    return load("synthetic", {"arms": list(ARMS), "budgets": ["k10"], "stores.0.encoder": "hashed"})


def _shared(plan: Plan, store: StorePlan, question_ids: set[str], work: Callable[..., int]) -> int:
    """The work on these questions' conversations, shared as a run shares it."""
    with ThreadPoolExecutor(WORKERS) as pool:
        return sum(pool.map(lambda group: work(plan, store, group), shares(plan, question_ids)))

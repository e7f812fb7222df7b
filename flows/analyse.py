"""A lake's pools to the analyses of the pursuit over one store."""

import json
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import polars as pl
from prefect import flow
from prefect.futures import as_completed

from flows.ingest import ingest_stage
from flows.progress import WATCHER
from flows.protocol import Protocol
from flows.shards import Log
from reports.pursuit_analysis import COLUMNS, Study, budgets, estimate, overall
from reports.pursuit_findings import readings
from reports.pursuit_page import write_analysis
from storage.digests import digest, short
from storage.errors import InputError
from storage.lake import Lake
from storage.places import read_whole, write_whole
from tasks.candidates import missing_pools
from tasks.plan import Plan, StorePlan
from tasks.provenance import code
from tasks.pursuit_analysis import ADAPTIVE_MOST, ADAPTIVE_TAU, pursuit_task
from tasks.sealed import Unsealing
from tasks.sources import BUNDLED, BUNDLED_WORDS

STAGE = "report"  # what the progress display knows; an analysis is a report of another kind


@flow(name="analyse", flow_run_name="analyse: {protocol.name} ({protocol.data.split})", persist_result=False)
def analyse(
    protocol: Protocol, lake: str, store: str | None = None, freeze: str | None = None, identity: str | None = None
) -> dict[str, str]:
    """Write the pursuit's analysis of one store (the protocol's first if None); returns its paths by name.

    What is there for these very inputs is not written again. `summary` is JSON: paths, and a sentence a figure.
    Raises `InputError` for an unknown store and where the lake lacks pools.
    """
    log = Log()
    plan, _ = ingest_stage(protocol, lake, log, Unsealing.by(freeze, identity))
    paths: dict[str, str] = analyse_stage(protocol, plan, _chosen(plan, store), log)["paths"]
    return paths


def analyse_stage(protocol: Protocol, plan: Plan, store: StorePlan, log: Log) -> dict[str, Any]:
    """The summary of the analysis, written unless one of these very inputs is there."""
    start = perf_counter()
    lacking = missing_pools(plan, store)
    if lacking:
        raise InputError(
            f"analyse: pools of store {store.name} expected, {len(lacking)} missing; "
            "`suffice run` with --until pool makes them"
        )
    folder = analysis_folder(protocol, plan, store)
    done = folder / "summary.json"
    if done.is_file():
        summary: dict[str, Any] = json.loads(read_whole(done))
        log.end(STAGE, 0, perf_counter() - start)
        return summary
    study = _study(protocol, plan, store)
    found = estimate(study)
    paths = write_analysis(study, found, folder)
    summary = {
        "protocol": protocol.name,
        "store": store.name,
        "paths": {name: str(path) for name, path in {**paths, "summary": done}.items()},
        "readings": readings(found, budgets(overall(study))),
    }
    write_whole(done, json.dumps(summary, indent=1, ensure_ascii=False).encode())
    log.end(STAGE, len(paths), perf_counter() - start)
    return summary


def analysis_folder(protocol: Protocol, plan: Plan, store: StorePlan) -> Path:
    """Where the analysis of a store lies, by everything that it shows."""
    return Lake(plan.lake).reports / f"{protocol.name}-pursuit-{short(_inputs(protocol, plan, store))}"


def _chosen(plan: Plan, name: str | None) -> StorePlan:
    stores = {store.name: store for store in plan.stores}
    if name is not None and name not in stores:
        raise InputError(f"analyse: one of the stores {', '.join(stores)} expected, {name!r} found")
    return plan.stores[0] if name is None else stores[name]


def _study(protocol: Protocol, plan: Plan, store: StorePlan) -> Study:
    return Study(
        name=protocol.name,
        title=protocol.title or protocol.name,
        benchmark=BUNDLED_WORDS if protocol.data.path in BUNDLED else protocol.data.benchmark,
        split=protocol.data.split,
        rows=_measured(plan, store),
        questions=len(plan.questions()),
        apart=protocol.data.apart,
        setting={
            "store": f"{store.name} (written by {store.writer})",
            "encoder": store.encoder,
            "pool": f"{store.size} candidates by {store.fusion}",
        },
        identity=_identity(protocol, plan, store),
        adaptive=f"τ = {ADAPTIVE_TAU:g}, patience 2, at most {ADAPTIVE_MOST} records",
        seed=protocol.resampling_seed,
        samples=protocol.statistics.samples,
    )


def _measured(plan: Plan, store: StorePlan) -> pl.DataFrame:
    """The rows of every conversation, in benchmark order."""
    conversations, watcher = plan.conversation_ids(), WATCHER.get()
    watcher.begin(STAGE, len(conversations))
    futures = [pursuit_task.submit(plan, store, conversation) for conversation in conversations]
    for _ in as_completed(futures):
        watcher.advance(STAGE)
    rows = [row for future in futures for row in future.result()]
    place = {question.id: place for place, question in enumerate(plan.questions())}
    ordered = sorted(rows, key=lambda row: place[row["question_id"]])
    return pl.DataFrame([{name: row.get(name) for name in COLUMNS} for row in ordered], schema=dict(COLUMNS))


def _inputs(protocol: Protocol, plan: Plan, store: StorePlan) -> str:
    """The address of everything that the analysis shows: the protocol, gold, the pools and the code."""
    made = code(
        "readers", "reports", "tasks.pursuit_analysis", "tasks.missing_evidence", "tasks.metrics", "flows.analyse"
    )
    return digest({"protocol": protocol.digest, "gold": plan.gold, "pool": store.pool, "code": made})


def _identity(protocol: Protocol, plan: Plan, store: StorePlan) -> dict[str, str]:
    return {
        "protocol": protocol.digest,
        "dataset": plan.dataset,
        "gold": plan.gold,
        "store": store.store,
        "pools": store.pool,
        "source code": code("flows", "tasks", "storage", "readers", "reports"),
        "version": version("suffice"),
    }

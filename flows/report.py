"""A run's finished tables to a report."""

import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import polars as pl
from prefect import flow

from flows.ingest import ingest_stage
from flows.protocol import Protocol
from flows.shards import Log
from reports import load
from reports.results import Arm, Results
from storage.digests import digest, short
from storage.lake import Lake
from storage.schemas import ANSWERS, RECORDS, SCORES, SELECTIONS, STATES, VERDICTS
from storage.tables import write_whole
from tasks import arms as planned
from tasks import specs
from tasks.answerers import ANSWERERS
from tasks.ingest import Dataset
from tasks.judges import JUDGES
from tasks.plan import Plan
from tasks.provenance import code


def report_stage(protocol: Protocol, plan: Plan, dataset: Dataset, log: Log) -> dict[str, Any]:
    """Write the report unless one of these very inputs is there; returns its summary with its paths."""
    start = perf_counter()
    lake = Lake(plan.lake)
    inputs = _inputs(protocol, plan)
    folder = lake.reports / f"{protocol.name}-{short(inputs)}"
    done = folder / "summary.json"
    if done.is_file():
        summary: dict[str, Any] = json.loads(done.read_text(encoding="utf-8"))
        log.end("report", 0, perf_counter() - start)
        return summary
    from reports.page import write_report  # draws: slow to import, and only needed where a report is written

    found = results(protocol, plan, dataset, log.seconds)
    paths = write_report(found, folder)
    summary = {
        "protocol": protocol.name,
        "digest": protocol.digest,
        "paths": {name: str(path) for name, path in paths.items()},
        "questions": len(found.questions),
        "arms": [arm.label for arm in found.arms],
        "reuse": dict(found.reuse),
        "offline": found.offline,
        "headline": _headline(paths["main"], found),
    }
    write_whole(done, json.dumps(summary, indent=1, ensure_ascii=False).encode())
    log.end("report", len(paths), perf_counter() - start)
    return summary


def addresses(plan: Plan) -> load.Addresses:
    """Where the tables of a plan lie."""
    return load.Addresses(
        dataset=plan.dataset,
        gold=plan.gold,
        answers=plan.answers,
        verdicts={judge: plan.verdicts(judge) for judge in plan.judges},
        stores=[
            load.StoreAddresses(store.name, store.store, list(plan.selection_tables(store)), plan.scores(store))
            for store in plan.stores
        ],
        question_ids=[question.id for question in plan.questions()],
    )


def _inputs(protocol: Protocol, plan: Plan) -> str:
    """The address of everything that a report shows: the protocol, the tables' parts, the report's own code."""
    lake, place = Lake(plan.lake), addresses(plan)
    tables = [lake.table(ANSWERS, place.answers)]
    tables += [lake.table(VERDICTS, address) for address in place.verdicts.values()]
    for store in place.stores:
        tables += [
            lake.table(RECORDS, store.store),
            lake.table(STATES, store.store),
            *(lake.table(SELECTIONS, address) for address in store.selections),
            lake.table(SCORES, store.scores),
        ]
    parts = [[str(part.relative_to(lake.root)) for part in table.parts()] for table in tables]
    made = code("reports", "flows.report")
    return digest({"protocol": protocol.digest, "data": plan.gold, "parts": parts, "code": made})


def results(protocol: Protocol, plan: Plan, dataset: Dataset, seconds: Mapping[str, float]) -> Results:
    """What the lake holds of a plan, as reports take it; `seconds`: what each stage took."""
    arms = [_shown(arm) for arm in plan.arms]
    frames = load.load(Lake(plan.lake), addresses(plan), arms)
    kinds = list(dict.fromkeys(frames.questions["kind"]))
    offline = specs.make(ANSWERERS, plan.answerer, "answerer").offline and all(
        specs.make(JUDGES, judge, "judge").offline for judge in plan.judges
    )
    return Results(
        name=protocol.name,
        title=protocol.title or protocol.name,
        split=protocol.data.split,
        benchmark=protocol.data.benchmark,
        offline=offline,
        arms=arms,
        kinds=kinds,
        apart=[kind for kind in protocol.data.apart if kind in kinds],
        judges=list(plan.judges),
        cells=frames.cells,
        verdicts=frames.verdicts,
        questions=frames.questions,
        records=frames.records,
        selections=frames.selections,
        facts=dataset.facts,
        identity=_identity(protocol, plan),
        reuse=frames.reuse,
        timings=seconds,
        seed=protocol.seed,
        samples=protocol.statistics.samples,
        folds=protocol.data.folds,
        mix_budgets=protocol.report.mix_budgets,
    )


def _shown(arm: planned.Arm) -> Arm:
    """The arm with what bounds its whole evidence: a completion budget alone leaves that to the first set."""
    limits = arm.limits
    bound = arm.budget
    if limits.rounds is not None:
        whole = {"k": limits.records, "t": limits.tokens}
        first = getattr(arm.reader, "init_records", 0)
        bound = next((f"{unit}{most}" for unit, most in whole.items() if most is not None), f"{arm.budget}+{first}")
    return Arm(str(arm), arm.name, arm.budget, arm.budget.removeprefix("k"), arm.store, arm.uses_gold, bound)


_SHOWN = {
    "gold_hit": "gold hit",
    "evidence_recall": "recall",
    "complete_evidence": "complete",
    "session_recall": "sessions",
    "complete_sessions": "all sessions",
}


_REALISED = {"records": "records", "tokens": "tokens", "calls": "calls", "asks": "asks", "over_budget": "stopped"}


def _headline(table: Path, results: Results) -> list[dict[str, Any]]:
    """One row an arm, budget by budget: its overall percentages, as the command prints them."""
    rows = pl.read_csv(table.read_bytes(), schema_overrides={"k": pl.String}).filter(pl.col("kind") == "all")
    values = {(row["arm"], row["metric"]): row["value"] for row in rows.iter_rows(named=True)}
    shown = _SHOWN | {f"{judge}_strict": judge for judge in results.judges}
    realised = [measure for measure in _REALISED if any(values.get((arm.label, measure)) for arm in results.arms)]
    budgets = list(dict.fromkeys(arm.budget for arm in results.arms))
    return [
        {"arm": arm.label + (" (uses gold)" if arm.uses_gold else "")}
        | {title: _percent(values.get((arm.label, metric))) for metric, title in shown.items()}
        | {_REALISED[metric]: _rounded(values.get((arm.label, metric))) for metric in realised}
        for arm in sorted(results.arms, key=lambda arm: budgets.index(arm.budget))
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * value, 1)


def _identity(protocol: Protocol, plan: Plan) -> dict[str, str]:
    named = {
        "protocol": protocol.digest,
        "dataset": plan.dataset,
        "gold": plan.gold,
        "answers": plan.answers,
        **{f"verdicts of {judge}": plan.verdicts(judge) for judge in plan.judges},
        "source code": code("flows", "tasks", "storage", "readers", "reports"),
    }
    for store in plan.stores:
        named |= {
            f"store {store.name}": store.store,
            f"index of {store.name}": store.index,
            f"pool of {store.name}": store.pool,
            f"selections over {store.name}": ", ".join(plan.selection_tables(store)),
            f"writer of {store.name}": store.writer,
            f"encoder of {store.name}": store.encoder,
            f"candidates of {store.name}": f"{store.size}, {store.fusion}",
        }
    return named | {"answerer": plan.answerer, "seed": str(plan.seed), "version": version("suffice")}


@flow(name="report", persist_result=False)
def report(protocol: Protocol, lake: str) -> dict[str, str]:
    """Write the report of what a lake holds for a protocol; returns its paths."""
    log = Log()
    plan, dataset = ingest_stage(protocol, lake, log)
    paths: dict[str, str] = report_stage(protocol, plan, dataset, log)["paths"]
    return paths

"""A run's finished tables to a report."""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import polars as pl
from prefect import flow

from flows.artifacts import keep_artifacts
from flows.compare import comparable
from flows.gate import check_declared, note_report, open_split, sealing_of
from flows.ingest import ingest_stage, labels
from flows.protocol import Protocol
from flows.shards import Log
from reports import load
from reports.calibration import Errors, errors
from reports.optimism import optimism
from reports.results import ABSTENTION, EVIDENCE_METRICS, Arm, Results
from reports.sealing import Sealing
from storage.digests import digest, short
from storage.lake import Lake
from storage.places import read_whole, write_whole
from storage.schemas import (
    ANSWERS,
    HOLDINGS,
    IMPORTED,
    RANKINGS,
    RESIDENT,
    SCORES,
    SELECTIONS,
    STATES,
    SUFFICIENCY,
    VERDICTS,
)
from tasks import arms as planned
from tasks import specs
from tasks.answerers import ANSWERERS
from tasks.calibrate import cases_of, measured
from tasks.frozen import sealed_split
from tasks.ingest import Dataset
from tasks.judges import JUDGES
from tasks.plan import Plan
from tasks.provenance import code
from tasks.sealed import Unsealing
from tasks.sources import BUNDLED, BUNDLED_WORDS


def report_stage(protocol: Protocol, plan: Plan, dataset: Dataset, log: Log) -> dict[str, Any]:
    """Write the report unless one of these very inputs is there; returns its summary with its paths."""
    start = perf_counter()
    if plan.unsealing:
        check_declared(protocol, plan)
    lake = Lake(plan.lake)
    inputs = _inputs(protocol, plan)
    folder = lake.reports / f"{protocol.name}-{short(inputs)}"
    done = folder / "summary.json"
    if done.is_file():
        summary: dict[str, Any] = json.loads(read_whole(done))
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
        "comparable": comparable(protocol, plan),
        "identity": dict(found.identity),
    }
    if found.sealing and plan.unsealing:
        summary |= {"look": plan.unsealing.look, "sealing": found.sealing.lines()}
        note_report(plan, inputs)
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
            load.StoreAddresses(
                store.name, store.store, list(plan.selection_tables(store)), plan.scores(store), plan.rankings(store)
            )
            for store in plan.stores
        ],
        question_ids=[question.id for question in plan.questions()],
        sufficiency=plan.sufficiency if plan.panel else None,
    )


def _inputs(protocol: Protocol, plan: Plan) -> str:
    """The address of everything that a report shows: the protocol, the tables' parts, the report's own code."""
    lake, place = Lake(plan.lake), addresses(plan)
    tables = [lake.table(ANSWERS, place.answers)]
    tables += [lake.table(VERDICTS, address) for address in place.verdicts.values()]
    tables += [lake.table(SUFFICIENCY, place.sufficiency)] if place.sufficiency else []
    for store in place.stores:
        tables += [
            lake.table(HOLDINGS, store.store),
            lake.table(IMPORTED, store.store),
            lake.table(RESIDENT, store.store),
            lake.table(STATES, store.store),
            *(lake.table(SELECTIONS, address) for address in store.selections),
            lake.table(SCORES, store.scores),
            lake.table(RANKINGS, store.rankings),
        ]
    parts = [[str(part.relative_to(lake.root)) for part in table.parts()] for table in tables]
    made = code("reports", "flows.report", "tasks.planted")
    look = plan.unsealing.look if plan.unsealing else None  # each look at a sealed split has a report of its own
    shown = {"protocol": protocol.digest, "data": plan.gold, "wrong labels": labels(protocol, plan)}
    return digest({**shown, "parts": parts, "code": made, "look": look})


def results(protocol: Protocol, plan: Plan, dataset: Dataset, seconds: Mapping[str, float]) -> Results:
    """What the lake holds of a plan, as reports take it; `seconds`: what each stage took."""
    arms = [_shown(arm) for arm in plan.arms]
    frames = frames_of(plan, arms)
    kinds = list(dict.fromkeys(frames.questions["kind"]))
    kinds += [ABSTENTION] * (ABSTENTION not in kinds and frames.questions[ABSTENTION].any())
    offline = specs.make(ANSWERERS, plan.answerer, "answerer").offline and all(
        specs.make(JUDGES, judge, "judge").offline for judge in plan.judges
    )
    first = protocol.comparisons[0] if protocol.comparisons else None
    return Results(
        name=protocol.name,
        title=protocol.title or protocol.name,
        split=protocol.data.split,
        benchmark=protocol.data.benchmark,
        offline=offline,
        arms=arms,
        kinds=kinds,
        sealing=_sealing(protocol, plan, arms, frames) if plan.unsealing else None,
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
        seed=protocol.resampling_seed,
        samples=protocol.statistics.samples,
        folds=protocol.data.folds,
        mix_budgets=protocol.report.mix_budgets,
        primary=(first.against, first.arm) if first else (),
        metric=_measure(first.metric) if first else "complete_evidence",
        secondary=[(each.arm, each.against, _measure(each.metric)) for each in protocol.comparisons[1:]],
        wrong_labels=labels(protocol, plan),
        calibrations=_calibrations(plan),
        data=BUNDLED_WORDS if protocol.data.path in BUNDLED else "",
    )


def _measure(named: str) -> str:
    """The measure that a declared comparison is on: an evidence metric, or a judge's score over every cell."""
    return named if named in EVIDENCE_METRICS else f"{named}_strict"


def frames_of(plan: Plan, arms: Sequence[Arm]) -> load.Frames:
    """What reports show of a plan; a sealed split's questions and gold are decrypted in memory."""
    unsealed = (plan.question_frame(), plan.gold_frame()) if plan.unsealing else None
    return load.load(Lake(plan.lake), addresses(plan), arms, unsealed)


def _sealing(protocol: Protocol, plan: Plan, arms: Sequence[Arm], frames: load.Frames) -> Sealing:
    """The open split's numbers beside the sealed ones: its tables are those that the freeze asked for."""
    data, sealed = protocol.data, sealed_split(plan.lake, plan.benchmark)
    shown = open_split(protocol).plan(plan.lake, sealed.dataset, sealed.gold, seal=sealed.id)
    beside = frames_of(shown, arms).cells if shown.questions() else frames.cells.clear()
    rows = optimism(
        beside, frames.cells, arms, data.apart, samples=protocol.statistics.samples, seed=protocol.resampling_seed
    )
    return sealing_of(plan, rows)


def _calibrations(plan: Plan) -> dict[str, Errors]:
    """The errors of the judges that have judged every planted reply to the run's questions."""
    if not plan.judges:
        return {}
    cases = [case for conversation in plan.conversation_ids() for case in cases_of(plan, conversation)]
    found = {judge: measured(plan, judge, cases) for judge in plan.judges}
    return {judge: errors(each) for judge, each in found.items() if len(each) and each["status"].null_count() == 0}


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


_REALISED = {name: name for name in ("records", "tokens", "resident", "calls", "asks")} | {"over_budget": "stopped"}


def _headline(table: Path, results: Results) -> list[dict[str, Any]]:
    """One row an arm, budget by budget: its overall percentages, as the command prints them."""
    rows = pl.read_csv(read_whole(table), schema_overrides={"k": pl.String}).filter(pl.col("kind") == "all")
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
        "wrong labels": digest(labels(protocol, plan)),
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


@flow(name="report", flow_run_name="report: {protocol.name} ({protocol.data.split})", persist_result=False)
def report(protocol: Protocol, lake: str, freeze: str | None = None, identity: str | None = None) -> dict[str, str]:
    """Write the report of what a lake holds for a protocol; returns its paths."""
    log = Log()
    plan, dataset = ingest_stage(protocol, lake, log, Unsealing.by(freeze, identity))
    summary = report_stage(protocol, plan, dataset, log)
    keep_artifacts(summary)
    paths: dict[str, str] = summary["paths"]
    return paths

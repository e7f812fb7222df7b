"""The main job: all stages in one flow run, from the file to the report."""

from collections.abc import Callable
from typing import Any

from prefect import flow

from flows.artifacts import keep_artifacts
from flows.ending import ends_at_once
from flows.evidence import compose_stage, index_stage, pool_stage, store_stage
from flows.ingest import ingest_stage
from flows.progress_artifact import progress_kept
from flows.protocol import Protocol
from flows.report import report_stage
from flows.runs import begun, ended
from flows.shards import Log
from flows.stages import STAGES
from flows.verdicts import answer_stage, judge_stage, sufficiency_stage
from tasks.candidates import parts_of
from tasks.extraction import batches
from tasks.plan import Plan, StorePlan
from tasks.sealed import Unsealing

_BETWEEN: dict[str, Callable[[Plan, Log], None]] = {
    "store": store_stage,
    "index": index_stage,
    "pool": pool_stage,
    "compose": compose_stage,
    "answer": answer_stage,
    "judge": judge_stage,
    "sufficiency": sufficiency_stage,
}


@flow(name="benchmark", flow_run_name="{protocol.name} ({protocol.data.split})", persist_result=False)
def benchmark(
    protocol: Protocol,
    lake: str,
    stages: tuple[str, ...] = STAGES,
    freeze: str | None = None,
    identity: str | None = None,
) -> dict[str, Any]:
    """Run the named stages of a protocol; the data is always known first, since every address depends on it.

    `freeze` and `identity` are the files of a manifest and of an age identity: a sealed split needs both.
    Returns what each stage made and, where the report stage ran, the report's summary.
    """
    with ends_at_once():  # within the flow, since Prefect's own handlers would wait for the shards under way
        return _run(protocol, lake, stages, Unsealing.by(freeze, identity))


def _run(protocol: Protocol, lake: str, stages: tuple[str, ...], unsealing: Unsealing | None) -> dict[str, Any]:
    run, log = begun(lake, protocol, stages), Log()
    with progress_kept(protocol.name, stages):
        plan, dataset = ingest_stage(protocol, lake, log, unsealing)
        for name, stage in _BETWEEN.items():
            if name in stages:
                stage(plan, log)
        summary: dict[str, Any] = {"protocol": protocol.name, "digest": protocol.digest, "facts": dataset.facts}
        summary["stores"] = [told for store in plan.stores if (told := told_of(plan, store))]
        if "report" in stages:
            reported = report_stage(protocol, plan, dataset, log)
            keep_artifacts(reported)
            summary |= reported
    summary |= {
        "new": log.new,
        "seconds": {stage: round(seconds, 3) for stage, seconds in log.seconds.items()},
    }
    ended(lake, run, protocol, summary)
    return summary


def told_of(plan: Plan, store: StorePlan) -> dict[str, Any]:
    """What became of a store's batches of messages and how often each part of its score took part, where it has any."""
    read, parts = batches(plan, store).to_dicts(), parts_of(plan, store)
    told: dict[str, Any] = {"batches": read} if read else {}
    told |= {"pools": parts._asdict()} if parts else {}
    return {"store": store.name, **told} if told else {}

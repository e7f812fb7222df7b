"""The same answers under all judges: verdicts that other judges lack, and one comparison of them all."""

from typing import Any

import polars as pl
from prefect import flow

from flows.ingest import ingest_stage
from flows.protocol import Protocol
from flows.report import frames_of
from flows.shards import Log
from flows.verdicts import verdict_shards
from reports.agreement import flip_rate, judges_by_arm, pairwise
from reports.results import Arm
from storage.errors import InputError
from storage.lake import Lake
from storage.schemas import VERDICTS
from tasks.judge import answers_to_judge
from tasks.plan import Plan
from tasks.sealed import Unsealing


@flow(name="rejudge", flow_run_name="rejudge: {protocol.name} ({protocol.data.split})", persist_result=False)
def rejudge(protocol: Protocol, lake: str, freeze: str | None = None, identity: str | None = None) -> dict[str, Any]:
    """Judge the answers that the lake holds by those of the protocol's judges that have not; nothing else is touched.

    Returns `arms`: a row an (arm, judge); `agreement`: a row a pair of judges; `judges`: a row a judge with its count
    of verdicts, how many could not be read and its flip rate; `new`: how many verdicts were made.
    Raises `InputError` where the lake holds no answers, and as `flows.gate` does.
    """
    log = Log()
    plan, _ = ingest_stage(protocol, lake, log, Unsealing.by(freeze, identity))
    answers = answers_to_judge(plan)
    if answers.is_empty():
        raise InputError(f"rejudge: answers of protocol {protocol.name} expected, none found; `suffice run` it first")
    new = log.run("judge", verdict_shards(plan))
    frames = frames_of(plan, report_arms(plan))
    verdicts = frames.verdicts.join(
        frames.cells.select("arm", "question_id", "kind", "answer"), on=["arm", "question_id"]
    )
    return {
        "arms": judges_by_arm(verdicts, protocol.data.apart).to_dicts(),
        "agreement": pairwise(verdicts).to_dicts(),
        "judges": [_judge(plan, judge, answers) for judge in plan.judges],
        "new": new,
    }


def report_arms(plan: Plan) -> list[Arm]:
    """A plan's arms as reports know them."""
    return [
        Arm(str(arm), arm.name, arm.budget, arm.budget.removeprefix("k"), arm.store, arm.uses_gold) for arm in plan.arms
    ]


def _judge(plan: Plan, judge: str, answers: pl.DataFrame) -> dict[str, Any]:
    table = Lake(plan.lake).table(VERDICTS, plan.verdicts(judge)).read(["question_id", "answer", "score", "scores"])
    held = table.join(answers, on=["question_id", "answer"], how="semi")
    return {
        "judge": judge,
        "answers": len(answers),
        "verdicts": len(held),
        "not judged": len(answers) - int(held["score"].count()),
        "flip rate": flip_rate(held["scores"].to_list()),
    }

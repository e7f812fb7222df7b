"""Answers, verdicts, evidence metrics and sufficiency."""

from prefect import flow

from flows.evidence import shares
from flows.ingest import ingest_stage
from flows.protocol import Protocol
from flows.shards import Log, Shards
from tasks.adjudicate import adjudicate_task, unadjudicated
from tasks.answer import answer_task, unanswered
from tasks.judge import judge_task, score_task, unjudged, unscored
from tasks.plan import Plan
from tasks.ranked import rank_task, unranked


def answer_stage(plan: Plan, log: Log) -> None:
    """Answer each new evidence state once, if any judge reads answers. Stores follow each other: a state that two
    share is asked once."""
    log.run(
        "answer",
        *(
            [
                (answer_task, (plan, store, conversations))
                for conversations in shares(plan, set(unanswered(plan, store)["question_id"]))
            ]
            for store in (plan.stores if plan.judges else ())
        ),
    )


def judge_stage(plan: Plan, log: Log) -> None:
    """Judge each new answer once, and score each new state against gold."""
    scores = [
        (score_task, (plan, store, conversations))
        for store in plan.stores
        for conversations in shares(plan, set(unscored(plan, store)["question_id"]))
    ]
    ranks = [
        (rank_task, (plan, store, conversations))
        for store in plan.stores
        for conversations in shares(plan, set(unranked(plan, store)["question_id"]))
    ]
    log.run("judge", [*scores, *ranks, *verdict_shards(plan)])


def verdict_shards(plan: Plan) -> Shards:
    """What it takes to judge every answer that lacks a verdict."""
    return [(judge_task, (plan, conversations)) for conversations in shares(plan, unjudged(plan))]


def sufficiency_stage(plan: Plan, log: Log) -> None:
    """Judge each new evidence state's sufficiency once, if the protocol has a panel. A state shared is judged once."""
    log.run(
        "sufficiency",
        *(
            [
                (adjudicate_task, (plan, store, conversations))
                for conversations in shares(plan, set(unadjudicated(plan, store)["question_id"]))
            ]
            for store in plan.stores
        ),
    )


@flow(name="verdicts", flow_run_name="verdicts: {protocol.name} ({protocol.data.split})", persist_result=False)
def verdicts(protocol: Protocol, lake: str) -> dict[str, int]:
    """Answer and judge the evidence that a lake holds for a protocol."""
    log = Log()
    plan, _ = ingest_stage(protocol, lake, log)
    answer_stage(plan, log)
    judge_stage(plan, log)
    sufficiency_stage(plan, log)
    return log.new

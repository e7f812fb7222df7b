"""The benchmark's file to a plan: the first stage, and the addresses of all others."""

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from prefect import flow

from flows.gate import planned, refuse_closed
from flows.protocol import Protocol
from flows.shards import Log
from storage.errors import InputError
from storage.lake import Lake
from storage.records import Question
from storage.rows import from_frame
from tasks.ingest import Dataset, ingest_task
from tasks.labels import Fault, wrong_labels
from tasks.plan import Plan
from tasks.sealed import Unsealing


def ingest_stage(protocol: Protocol, lake: str, log: Log, unsealing: Unsealing | None = None) -> tuple[Plan, Dataset]:
    """Ingest the protocol's data if the lake lacks it, and say where everything of the run lies.

    Raises `InputError` if the protocol names questions that the data does not have, and as `flows.gate` does.
    """
    start = perf_counter()
    refuse_closed(protocol, unsealing)
    data = protocol.data
    root = str(Lake.open(lake).root)
    dataset = ingest_task(root, data.benchmark, data.path, data.sha256 or None, data.split)
    plan = planned(protocol, lake, dataset, unsealing)
    _refuse_none(plan) if plan.seal else _refuse_unknown(plan, data.folds)
    labels(protocol, plan)
    log.end("ingest", dataset.new, perf_counter() - start)
    return plan, dataset


def labels(protocol: Protocol, plan: Plan) -> dict[str, Fault]:
    """Question id → what is known to be wrong of its gold, empty where the protocol names no file of wrong labels.

    Raises `InputError` as `tasks.labels.wrong_labels` does.
    """
    named = protocol.data.wrong_labels
    return wrong_labels(Path(named), _all_questions(plan)) if named else {}


def _all_questions(plan: Plan) -> list[Question]:
    return from_frame(Question, plan.question_frame())


def _refuse_unknown(plan: Plan, folds: Sequence[Sequence[str]]) -> None:
    questions = _all_questions(plan)
    for what, wanted, known in (
        ("data.conversations", plan.conversations, {question.conversation_id for question in questions}),
        ("data.folds", [name for fold in folds for name in fold], {question.conversation_id for question in questions}),
        ("data.kinds", plan.kinds, {question.kind for question in questions}),
        ("data.questions", plan.named, {question.id for question in questions}),
    ):
        unknown = sorted(set(wanted) - known)
        if unknown:
            some = ", ".join(sorted(known)[:20]) + (", …" if len(known) > 20 else "")
            raise InputError(f"{what}: some of {some} expected, {unknown[0]!r} found")


def _refuse_none(plan: Plan) -> None:
    """A split need not hold every conversation and kind that its protocol names, but some question of them."""
    if not plan.questions():
        raise InputError(f"data.split: questions in the {plan.split} split of {plan.benchmark} expected, none found")


@flow(name="ingest", flow_run_name="ingest: {protocol.name} ({protocol.data.split})", persist_result=False)
def ingest(protocol: Protocol, lake: str) -> dict[str, int]:
    """Ingest a protocol's data."""
    log = Log()
    ingest_stage(protocol, lake, log)
    return log.new

"""Records, index, pools and every arm's evidence."""

import math
from time import perf_counter
from typing import Any

from prefect import flow

from flows.ingest import ingest_stage
from flows.protocol import Protocol
from flows.shards import Log
from storage.errors import InputError
from storage.lake import Lake
from storage.schemas import HOLDINGS, IMPORTED, INDEXES
from tasks.candidates import missing_pools, pool_task, refuse_silent_parts
from tasks.compose import compose_task, missing_cells
from tasks.consult import consult_task
from tasks.fit import fit_task
from tasks.imported.bringing import bring
from tasks.index import chunks_to_embed, embed_task, index_task
from tasks.oracle import oracle_task
from tasks.plan import Plan
from tasks.store import store_task
from tasks.warm import warm_task

MOST_SHARDS = 100
"""Prefect keeps its account of a few hundred tasks a stage without delay, and no more."""


def store_stage(plan: Plan, log: Log) -> None:
    """Write the records of each store once, whatever stores share them.

    Pools of another system are read here, since workers may not see their file.
    """
    distinct, start = {store.store: store for store in plan.stores}.values(), perf_counter()
    log.run("store", [(store_task, (plan, store)) for store in distinct if not store.pools])
    if imported := [store for store in plan.stores if store.pools]:
        log.end("store", sum(bring(plan, store) for store in imported), perf_counter() - start)


def index_stage(plan: Plan, log: Log) -> None:
    """Embed what has no vector, while readers compile their kernels; then build each index once."""
    lake = Lake(plan.lake)
    for store in plan.stores:
        if not lake.table(IMPORTED if store.pools else HOLDINGS, store.store).holds_any():
            raise InputError(f"stage index: records of store {store.name} expected, none found; run stage store first")
    distinct = {store.index: store for store in plan.stores}.values()
    chunks = [(embed_task, (plan, store, chunk)) for store in distinct for chunk in chunks_to_embed(plan, store)]
    warm = [(warm_task, (plan,))] if chunks else []
    log.run("index", [*warm, *chunks], [(index_task, (plan, store)) for store in distinct])


def pool_stage(plan: Plan, log: Log) -> None:
    """Collect the candidates of every question."""
    for store in plan.stores:
        if not store.pools and not Lake(plan.lake).table(INDEXES, store.index).holds_any():
            raise InputError(f"stage pool: an index of store {store.name} expected, none found; run stage index first")
    log.run(
        "pool",
        [
            (pool_task, (plan, store, conversations))
            for store in plan.stores
            for conversations in shares(plan, missing_pools(plan, store))
        ],
    )
    for store in plan.stores:
        refuse_silent_parts(plan, store)


def compose_stage(plan: Plan, log: Log) -> None:
    """Let every arm compose its evidence; what arms learn and the oracle are made apart, where gold may be seen.

    Arms that ask a model come after the others have been timed.
    """
    fits: list[tuple[Any, tuple[Any, ...]]] = []
    shards: list[tuple[Any, tuple[Any, ...]]] = []
    asking: list[tuple[Any, tuple[Any, ...]]] = []
    for store in plan.stores:
        if missing_pools(plan, store):
            raise InputError(f"stage compose: pools of store {store.name} expected, some missing; run stage pool first")
        for task, into, belongs in (
            (compose_task, shards, lambda arm: not arm.uses_gold and arm.model is None),
            (oracle_task, shards, lambda arm: arm.uses_gold),
            (consult_task, asking, lambda arm: arm.model is not None),
        ):
            arms = [arm for arm in plan.arms_of(store) if belongs(arm)]
            missing = set(missing_cells(plan, store, arms)["question_id"])
            into += [(task, (plan, store, conversations)) for conversations in shares(plan, missing)]
        if any(arm.learns for arm in plan.arms_of(store)):
            fits.append((fit_task, (plan, store)))
    log.run("compose", fits, shards, asking)


def shares(plan: Plan, question_ids: set[str]) -> list[tuple[str, ...]]:
    """The conversations that some of these questions are about, in benchmark order, in at most `MOST_SHARDS` groups."""
    questions = plan.questions()
    named = list(dict.fromkeys(question.conversation_id for question in questions if question.id in question_ids))
    size = max(1, math.ceil(len(named) / MOST_SHARDS))
    return [tuple(named[start : start + size]) for start in range(0, len(named), size)]


@flow(name="evidence", flow_run_name="evidence: {protocol.name} ({protocol.data.split})", persist_result=False)
def evidence(protocol: Protocol, lake: str) -> dict[str, int]:
    """From a protocol's data to every arm's evidence."""
    log = Log()
    plan, _ = ingest_stage(protocol, lake, log)
    for stage in (store_stage, index_stage, pool_stage, compose_stage):
        stage(plan, log)
    return log.new

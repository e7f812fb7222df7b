"""One conversation's pools and every reader that asks a model to selections and evidence states."""

import logging
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import perf_counter
from typing import Any

from readers.types import ModelFailed, Pool, Query
from tasks.arms import Arm
from tasks.compose import cells_of, held_to, missing_cells, row, states_of, write
from tasks.conversation import Conversation
from tasks.model_access import ModelAccess
from tasks.plan import Plan, StorePlan
from tasks.shard import shard

_LOG = logging.getLogger("suffice")


def consult(plan: Plan, store: StorePlan, conversation_ids: Collection[str]) -> int:
    """Selections that the lake lacks of arms that ask a model; returns how many were made.

    The asks of a question follow each other; questions wait side by side, as many as the model's `concurrency`. A
    question whose model gave no reply is not saved: its cell stays missing, the log says how many there are, and the
    next run asks again, for nothing where the ledger holds the earlier replies. Where asking cannot go on, what was
    read is saved first; then raises as `tasks.llm.ask` does.
    """
    arms = {str(arm): arm for arm in plan.arms_of(store) if arm.model is not None}
    new = 0
    for conversation_id in conversation_ids:
        missing = missing_cells(plan, store, list(arms.values()), conversation_id)
        if not missing.is_empty():
            conversation = Conversation.load(plan, store, conversation_id)
            wanted = cells_of(missing)
            new += sum(_arm(plan, store, conversation, arms[name], asked) for name, asked in wanted.items())
    return new


def _arm(plan: Plan, store: StorePlan, conversation: Conversation, arm: Arm, questions: set[str]) -> int:
    model, stopped = plan.model(arm.model or ""), Event()

    def cell(query: Query, pool: Pool) -> dict[str, Any] | None:
        if stopped.is_set():
            return None
        try:
            return _cell(plan, conversation, arm, query, pool)
        except BaseException:
            stopped.set()
            raise

    with ThreadPoolExecutor(min(model.concurrency, len(questions)), "suffice-reader") as threads:
        futures = [threads.submit(cell, *asked) for asked in conversation.queries(questions)]
    rows = [made for made in (future.result() for future in futures if not future.exception()) if made]
    new = write(plan, store, plan.selections(store, arm), rows, states_of(conversation, rows))
    for future in futures:
        future.result()
    if new < len(futures):
        _LOG.warning(
            "%s: %d questions without a reply of model %s stay missing; run again to ask again",
            *(arm, len(futures) - new, model.name),
        )
    return new


def _cell(plan: Plan, conversation: Conversation, arm: Arm, query: Query, pool: Pool) -> dict[str, Any] | None:
    """The row of one question; None where the model gave no reply.

    Its latency is the reader's own time and what its replies took when they were made: a reply from the ledger counts
    as it did then, a wait for a place at the endpoint not at all.
    """
    library = conversation.library
    access = ModelAccess(library, arm.limits, plan.lake, plan.model(arm.model or ""))
    start = perf_counter()
    try:
        evidence = held_to(arm, query, pool, access, library)
    except ModelFailed:
        return None
    own = perf_counter() - start - access.waited
    latency = 1e3 * (own + access.asked.seconds)
    return row(str(arm), query.id, evidence, latency, conversation.hash_of(query.id, evidence.ids))


consult_task = shard("consult", consult)

"""The pools of some conversations and every reader to selections and evidence states."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl
from threadpoolctl import threadpool_limits

from readers.types import Budget, Evidence, OverBudget, Pool, Query
from storage.lake import Lake
from storage.schemas import SELECTIONS, STATES
from tasks.access import Library, QuestionAccess
from tasks.arms import Arm
from tasks.conversation import Conversation
from tasks.fit import fitted
from tasks.plan import Conversations, Plan, StorePlan
from tasks.sealed import OPEN
from tasks.shard import shard

Read = Callable[[Query, Pool, Library], Evidence]

# Shards that are threads of one process read one after the other: a latency is then the reader's own, without
# the waits for the interpreter's lock that a neighbour would add. For the same reason BLAS has one thread while they
# read: on products as small as a reader's, several wait for each other longer than the product takes.
_ALONE = Lock()


def compose(plan: Plan, store: StorePlan, conversation_ids: Collection[str]) -> int:
    """Selections that the lake lacks, of arms that see no gold and ask no model (`tasks.consult`); returns how many."""
    arms = [arm for arm in plan.arms_of(store) if not arm.uses_gold and arm.model is None]
    missing = missing_cells(plan, store, arms, conversation_ids)

    def reads(conversation: Conversation) -> dict[str, Read]:
        return {str(arm): read_of(fitted(plan, store, arm, conversation.id)) for arm in arms}

    return save(plan, store, conversation_ids, missing, reads)


def missing_cells(
    plan: Plan, store: StorePlan, arms: Sequence[Arm], conversations: Conversations | None = None
) -> pl.DataFrame:
    """Every (arm, question_id) that has no selection yet, of one conversation, of some or of all."""
    names = [str(arm) for arm in arms]
    ids = pl.DataFrame({"question_id": [question.id for question in plan.questions(conversations)]})
    missing = [pl.DataFrame(schema={"arm": pl.String, "question_id": pl.String})]
    for address, held in plan.selection_tables(store).items():
        asked = pl.DataFrame({"arm": [str(arm) for arm in held if str(arm) in names]}, schema={"arm": pl.String})
        expected = asked.join(ids.cast(pl.String), how="cross")
        missing.append(Lake(plan.lake).table(SELECTIONS, address).missing(expected))
    return pl.concat(missing)


def selected(plan: Plan, store: StorePlan, columns: Sequence[str] | None = None, *, where: pl.Expr) -> pl.DataFrame:
    """The rows of a store's selections, of the plan's arms alone."""
    tables = plan.selection_tables(store)
    return pl.concat(
        [
            Lake(plan.lake)
            .table(SELECTIONS, address)
            .read(columns, where=where & pl.col("arm").is_in([str(arm) for arm in arms]))
            for address, arms in tables.items()
        ]
    )


def save(
    plan: Plan,
    store: StorePlan,
    conversation_ids: Collection[str],
    missing: pl.DataFrame,
    reads: Callable[[Conversation], Mapping[str, Read]],
) -> int:
    """Read and write the missing cells of arms without a model; returns how many."""
    wanted = cells_of(missing)
    asked = set(missing["question_id"])
    rows: list[dict[str, Any]] = []
    states: list[dict[str, Any]] = []
    for conversation_id in conversation_ids:
        if asked.isdisjoint(question.id for question in plan.questions(conversation_id)):
            continue
        conversation = Conversation.load(plan, store, conversation_id)
        with _ALONE, threadpool_limits(1, "blas"):
            made = list(_cells(conversation, wanted, reads(conversation)))
        states += states_of(conversation, made)
        rows += made
    return write(plan, store, store.selections(plan.seed), rows, states)


def states_of(conversation: Conversation, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The distinct evidence states that a conversation's selections name."""
    distinct = {(row["question_id"], row["evidence_hash"]): row for row in rows}
    return [conversation.state(row) for row in distinct.values()]


def write(
    plan: Plan,
    store: StorePlan,
    address: str,
    rows: Sequence[dict[str, Any]],
    states: Sequence[dict[str, Any]],
) -> int:
    """Write selections; returns how many. States are written before selections name them."""
    if plan.split != OPEN:  # a cue may be the question's words, which stay sealed in the lake
        rows = [{**row, "trace": [{**step, "cue": ""} for step in row["trace"]]} for row in rows]
    lake = Lake(plan.lake)
    lake.table(STATES, store.store).append(states)
    return lake.table(SELECTIONS, address).append(rows)


def cells_of(missing: pl.DataFrame) -> dict[str, set[str]]:
    """Arm → the ids of its missing questions."""
    return {str(key[0]): set(frame["question_id"]) for key, frame in missing.group_by(["arm"])}


def read_of(arm: Arm) -> Read:
    """What one arm does with a question, held to its budget."""
    limits = arm.limits
    return lambda query, pool, library: held_to(arm, query, pool, QuestionAccess(library, limits), library)


def held_to(arm: Arm, query: Query, pool: Pool, access: QuestionAccess, library: Library) -> Evidence:
    """What the arm's reader selects, metered by `access` and held to the arm's budget."""
    try:
        evidence: Evidence = arm.reader.read(query, pool, arm.limits, access)
    except OverBudget:
        evidence = Evidence(ids=(), stop_reason="over_budget")
    metered = replace(evidence, calls=access.calls, asked=access.asked)
    return _within(metered, arm.limits, library)


def _within(evidence: Evidence, limits: Budget, library: Library) -> Evidence:
    """The evidence cut to what the budget holds, and marked, where a reader returned more."""
    kept = len(evidence.ids) if limits.records is None else min(limits.records, len(evidence.ids))
    if limits.tokens is not None:
        places = np.array([library.places[id] for id in evidence.ids], np.intp)
        kept = len(limits.prefix(places, library.tokens))
    if kept == len(evidence.ids):
        return evidence
    return replace(evidence, ids=evidence.ids[:kept], gains=None, weights=None, stop_reason="over_budget")


def _cells(
    conversation: Conversation, wanted: Mapping[str, set[str]], reads: Mapping[str, Read]
) -> Iterator[dict[str, Any]]:
    """One row a wanted cell. Every arm reads the first pool once untimed: compilation is no part of a latency."""
    for place, (query, pool) in enumerate(conversation.queries(set().union(*wanted.values()))):
        for name, questions in wanted.items():
            if place == 0:
                reads[name](query, pool, conversation.library)
            if query.id in questions:
                start = perf_counter()
                evidence = reads[name](query, pool, conversation.library)
                latency = (perf_counter() - start) * 1e3
                yield row(name, query.id, evidence, latency, conversation.hash_of(query.id, evidence.ids))


def row(arm: str, question_id: str, evidence: Evidence, latency: float, address: str) -> dict[str, Any]:
    """The row of one selection."""
    asked = evidence.asked
    return {
        "arm": arm,
        "question_id": question_id,
        "evidence_hash": address,
        "record_ids": evidence.ids,
        "gains": evidence.gains,
        "weights": evidence.weights,
        "calls": evidence.calls,
        "stop_reason": evidence.stop_reason,
        "latency_ms": latency,
        "trace": [
            {"view": step.view, "cue": step.cue, "returned": step.returned, "kept": step.kept}
            for step in evidence.trace
        ],
        "asks": asked and asked.asks,
        "prompt_tokens": asked and asked.prompt_tokens,
        "completion_tokens": asked and asked.completion_tokens,
        "fallbacks": asked and sum(step.view == "fallback" for step in evidence.trace),
    }


compose_task = shard("compose", compose)

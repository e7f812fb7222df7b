"""One conversation's pools and every reader to selections and evidence states."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

from readers.types import Budget, Evidence, OverBudget, Pool, Query
from storage.lake import Lake
from storage.schemas import SELECTIONS, STATES
from tasks.access import Library, QuestionAccess
from tasks.arms import Arm
from tasks.conversation import Conversation
from tasks.plan import Plan, StorePlan
from tasks.sealed import OPEN
from tasks.shard import shard

Read = Callable[[Query, Pool, Library], Evidence]

# Shards that are threads of one process read one after the other: a latency is then the reader's own, without
# the waits for the interpreter's lock that a neighbour would add.
_ALONE = Lock()


def compose(plan: Plan, store: StorePlan, conversation_id: str) -> int:
    """Selections of every reader's (arm, question) that the lake lacks; returns how many. Sees no gold."""
    arms = [arm for arm in plan.arms_of(store) if not arm.uses_gold]
    missing = missing_cells(plan, store, arms, conversation_id)
    if missing.is_empty():
        return 0
    conversation = Conversation.load(plan, store, conversation_id)
    return save(plan, store, conversation, missing, {str(arm): _read(arm) for arm in arms})


def missing_cells(
    plan: Plan, store: StorePlan, arms: Sequence[Arm], conversation_id: str | None = None
) -> pl.DataFrame:
    """Every (arm, question_id) that has no selection yet, of one conversation or of all."""
    names = pl.DataFrame({"arm": [str(arm) for arm in arms]}, schema={"arm": pl.String})
    ids = [question.id for question in plan.questions(conversation_id)]
    expected = names.join(pl.DataFrame({"question_id": ids}, schema={"question_id": pl.String}), how="cross")
    return Lake(plan.lake).table(SELECTIONS, store.selections(plan.seed)).missing(expected)


def save(
    plan: Plan, store: StorePlan, conversation: Conversation, missing: pl.DataFrame, reads: Mapping[str, Read]
) -> int:
    """Read and write the missing cells; returns how many. States are written before selections name them."""
    wanted = {str(key[0]): set(frame["question_id"]) for key, frame in missing.group_by(["arm"])}
    with _ALONE:
        rows = list(_cells(conversation, wanted, reads))
    if plan.split != OPEN:  # a cue may be the question's words, which stay sealed in the lake
        rows = [{**row, "trace": [{**step, "cue": ""} for step in row["trace"]]} for row in rows]
    states = {(row["question_id"], row["evidence_hash"]): row for row in rows}
    lake = Lake(plan.lake)
    lake.table(STATES, store.store).append([conversation.state(row) for row in states.values()])
    return lake.table(SELECTIONS, store.selections(plan.seed)).append(rows)


def _read(arm: Arm) -> Read:
    limits = arm.limits

    def read(query: Query, pool: Pool, library: Library) -> Evidence:
        access = QuestionAccess(library, limits)
        try:
            evidence: Evidence = arm.reader.read(query, pool, limits, access)
        except OverBudget:
            return Evidence(ids=(), stop_reason="over_budget", calls=access.calls)
        return _within(replace(evidence, calls=access.calls), limits, library)

    return read


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
                yield _row(name, query.id, evidence, latency, conversation.hash_of(evidence.ids))


def _row(arm: str, question_id: str, evidence: Evidence, latency: float, address: str) -> dict[str, Any]:
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
    }


compose_task = shard("compose", compose)

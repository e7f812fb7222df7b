"""What does the pursuit change on one conversation's annotated questions?

The measurements behind figures 3, 4b, 7 and 8 of Feng & Fan, arXiv 2610.15642v1. They see gold and belong to no reader.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from readers.mem_pursuit import mem_pursuit
from readers.reconstruction import simplex_residual
from readers.types import Pool, Query
from storage.records import Gold
from tasks.conversation import Conversation
from tasks.metrics import evidence_metrics
from tasks.missing_evidence import missing_preference
from tasks.plan import Plan, StorePlan
from tasks.shard import shard

OVERLAP_BUDGETS = (10, 20)
ADAPTIVE_TAU = 1e-5
ADAPTIVE_MOST = 50

Sets = Mapping[str, frozenset[str]]


def pursue(plan: Plan, store: StorePlan, conversation_id: str) -> list[dict[str, Any]]:
    """One row for every question with gold of a conversation whose pools exist.

    `question_id, conversation_id, kind`; `pool`, `adaptive_size`: candidates, and records that the adaptive pursuit
    takes. `gold_records, gold_in_pool, gold_residual, hybrid_residual, residual_advantage`: see `reconstruction`.
    `gold_sessions, evidence_sessions, sessions_in_pool, comparisons, preference, cosine_preference`: see `preference`.
    `replaced_k10`, `hybrid_session_recall_k10`, `mem_pursuit_session_recall_k10`, the same at 20, and
    `hybrid_complete_at, hybrid_sessions_at, mem_pursuit_complete_at, mem_pursuit_sessions_at`: see `coverage`.

    All but the first five are None where some record of the conversation has unknown sources: then nobody can say
    which records are gold.
    """
    gold = {id: row for id, row in plan.gold_of(conversation_id).items() if row.turn_ids}
    conversation = Conversation.load(plan, store, conversation_id)
    turns = {record.id: frozenset(record.source_turn_ids) for record in conversation.records}
    session_of = _session_of(plan, conversation_id)
    known = all(turns.values())
    rows = []
    for query, pool in conversation.queries(set(gold)):
        path = mem_pursuit(query.vector, pool.vectors, len(pool)).order
        adaptive = mem_pursuit(query.vector, pool.vectors, ADAPTIVE_MOST, tau=ADAPTIVE_TAU).order
        row = {
            "question_id": query.id,
            "conversation_id": conversation_id,
            "kind": conversation.questions[query.id].kind,
            "pool": len(pool),
            "adaptive_size": len(adaptive),
        }
        if known:
            own = gold[query.id]
            order = [pool.ids[place] for place in path]
            row |= reconstruction(query, pool, own, turns, conversation.places, conversation.vectors)
            row |= preference(query, pool, own, turns, session_of)
            row |= coverage(own, pool.ids, order, turns, session_of)
        rows.append(row)
    return rows


def reconstruction(
    query: Query,
    pool: Pool,
    gold: Gold,
    turns: Sets,
    places: Mapping[str, int],
    vectors: NDArray[np.float32],
) -> dict[str, Any]:
    """Eq. 28: by how much the gold records reconstruct the query better than as many of the hybrid order.

    Gold records are all records of the store that were made from a gold turn; they need not lie in the pool, of which
    `gold_in_pool` says how many do. `places`: record id to row of `vectors`. Equal sets have an advantage of exactly
    0, since both are refitted in time order. The advantage is None where no record was made from a gold turn, or
    where the pool has fewer candidates than there are gold records, so that no equal size can be compared.
    """
    wanted = set(gold.turn_ids)
    own = [id for id, made_from in turns.items() if made_from & wanted]
    row: dict[str, Any] = {"gold_records": len(own), "gold_in_pool": len(set(own) & set(pool.ids))}
    if 0 < len(own) <= len(pool):
        sets = {"gold": own, "hybrid": pool.ids[: len(own)]}
        norms = {
            name: simplex_residual(query.vector, vectors[sorted(places[id] for id in ids)])
            for name, ids in sets.items()
        }
        row |= {f"{name}_residual": norm for name, norm in norms.items()}
        row["residual_advantage"] = norms["hybrid"] - norms["gold"]
    return row


def preference(query: Query, pool: Pool, gold: Gold, turns: Sets, session_of: Mapping[str, str]) -> dict[str, Any]:
    """Eq. 29 over the gold records of the pool, and what decides whether the paper would have kept the question.

    `gold_sessions`: annotated; `sessions_in_pool`: of these, how many have any candidate; `evidence_sessions`: how
    many sessions the gold records of the pool lie in. The paper asks for two or more evidence sessions and for every
    annotated session in the pool.
    """
    facts = [turns[id] & frozenset(gold.turn_ids) for id in pool.ids]
    present = {session_of[turn] for id in pool.ids for turn in turns[id]}
    found = missing_preference(query.vector, pool.vectors, facts, pool.sessions, query.generator())
    return {
        "gold_sessions": len(set(gold.session_ids)),
        "sessions_in_pool": len(present & set(gold.session_ids)),
        "evidence_sessions": len({session_of[turn] for own in facts for turn in own}),
        "comparisons": found.comparisons if found else 0,
        "preference": found.residual if found else None,
        "cosine_preference": found.cosine if found else None,
    }


def coverage(
    gold: Gold, hybrid: Sequence[str], pursuit: Sequence[str], turns: Sets, session_of: Mapping[str, str]
) -> dict[str, Any]:
    """What the first K records of two orders cover, for every K.

    `…_complete_at`, `…_sessions_at`: the smallest K that holds all gold turns, all gold sessions; None if none does.
    `replaced_kK`: share of the first K of `hybrid` that the first K of `pursuit` do not hold.
    """
    sources = {id: sorted(own) for id, own in turns.items()}
    sessions = {id: frozenset(session_of[turn] for turn in own) for id, own in turns.items()}
    row: dict[str, Any] = {}
    for name, order in (("hybrid", hybrid), ("mem_pursuit", pursuit)):
        row[f"{name}_complete_at"] = covered_at(gold.turn_ids, order, turns)
        row[f"{name}_sessions_at"] = covered_at(gold.session_ids, order, sessions)
        for k in OVERLAP_BUDGETS:
            metrics = evidence_metrics(gold, order[:k], sources, session_of, {})
            row[f"{name}_session_recall_k{k}"] = metrics["session_recall"]
    for k in OVERLAP_BUDGETS:
        base = set(hybrid[:k])
        row[f"replaced_k{k}"] = len(base - set(pursuit[:k])) / len(base) if base else None
    return row


def covered_at(wanted: Iterable[str], order: Sequence[str], holds: Sets) -> int | None:
    """The smallest K such that the first K of `order` hold all of `wanted`; None if all of them do not."""
    missing = set(wanted)
    for size, id in enumerate(order, start=1):
        missing -= holds[id]
        if not missing:
            return size
    return None


def _session_of(plan: Plan, conversation_id: str) -> dict[str, str]:
    return dict(plan.turns(conversation_id).select("id", "session_id").iter_rows())


pursuit_task = shard("pursuit analysis", pursue)

"""The ceiling: gold turns first, then the pool's order. It sees gold and is no reader."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from readers.types import Budget, Evidence, Pool, Query
from tasks.access import Library
from tasks.arms import Arm
from tasks.compose import Read, missing_cells, save
from tasks.conversation import Conversation
from tasks.plan import Plan, StorePlan
from tasks.shard import shard


def compose_oracle(plan: Plan, store: StorePlan, conversation_ids: Collection[str]) -> int:
    """Selections of the oracle's (arm, question) that the lake lacks; returns how many."""
    arms = [arm for arm in plan.arms_of(store) if arm.uses_gold]
    missing = missing_cells(plan, store, arms, conversation_ids)
    if missing.is_empty():
        return 0
    gold = {id: row.turn_ids for id, row in plan.gold_of(conversation_ids).items()}

    def reads(conversation: Conversation) -> dict[str, Read]:
        return {str(arm): _read(arm, conversation, gold) for arm in arms}

    return save(plan, store, conversation_ids, missing, reads)


def assemble(
    gold_turn_ids: Collection[str],
    pool_ids: Sequence[str],
    sources: Mapping[str, Sequence[str]],
    tokens: Mapping[str, int],
    budget: Budget,
) -> Evidence:
    """Evidence with every record of a gold turn first, then the pool, within `budget`.

    Of the records of gold turns, those come first that together hold every gold turn: at each step the one with the
    most gold turns that are still missing, ties in the order of `sources` (greedy, so a smaller set may exist where
    records have several source turns). `sources`: record id → source turn ids, in time order; `tokens`: record id →
    token count.
    """
    gold = {id: held for id, turns in sources.items() if (held := set(gold_turn_ids).intersection(turns))}
    order = list(dict.fromkeys([*_cover(gold), *gold, *pool_ids]))
    size, spent = 0, 0
    for id in order if budget.records is None else order[: budget.records]:
        spent += tokens[id]
        if budget.tokens is not None and spent > budget.tokens:
            break
        size += 1
    return Evidence(ids=tuple(order[:size]), stop_reason="budget" if size < len(order) else "pool_exhausted")


def _cover(gold: Mapping[str, set[str]]) -> Iterator[str]:
    """Records until no further one holds a gold turn that is missing. `gold`: record id → its gold turns."""
    missing = set[str]().union(*gold.values())
    while missing:
        best = max(gold, key=lambda id: len(gold[id] & missing))
        missing -= gold[best]
        yield best


def _read(arm: Arm, conversation: Conversation, gold: Mapping[str, Sequence[str]]) -> Read:
    sources = {record.id: record.source_turn_ids for record in conversation.records}
    tokens = dict(zip(sources, conversation.tokens.tolist(), strict=True))
    limits = arm.limits

    def read(query: Query, pool: Pool, library: Library) -> Evidence:
        return assemble(gold[query.id], pool.ids, sources, tokens, limits)

    return read


oracle_task = shard("oracle", compose_oracle)

"""How early each selection has its gold: what depends on the order in which an arm selected."""

import polars as pl

from storage.lake import Lake
from storage.schemas import RANKINGS
from tasks.compose import selected
from tasks.metrics import rank_metrics
from tasks.plan import Conversations, Plan, StorePlan
from tasks.shard import shard


def rank(plan: Plan, store: StorePlan, conversations: Conversations) -> int:
    """Rank metrics of the conversations' selections that the lake lacks; returns how many."""
    lake = Lake(plan.lake)
    missing = unranked(plan, store, conversations)
    if missing.is_empty():
        return 0
    gold = plan.gold_of(conversations)
    sources = {record.id: record.source_turn_ids for record in plan.records(store, conversations)}
    speakers = dict(plan.turns(conversations).select("id", "speaker").iter_rows())
    sizes = {str(arm): arm.limits.records for arm in plan.arms_of(store)}
    chosen = pl.col("question_id").is_in(list(gold))
    orders = selected(plan, store, ["arm", "question_id", "record_ids"], where=chosen).join(missing, on=missing.columns)
    rows = []
    for arm, question_id, ids in orders.iter_rows():
        ranking = [sources[id] for id in ids]
        found = rank_metrics(gold[question_id], ranking, speakers, sizes[arm] or len(ids))
        rows.append({"arm": arm, "question_id": question_id, **found})
    return lake.table(RANKINGS, plan.rankings(store)).append(rows)


def unranked(plan: Plan, store: StorePlan, conversations: Conversations | None = None) -> pl.DataFrame:
    """The (arm, question_id) of the run's selections without rank metrics."""
    ids = [question.id for question in plan.questions(conversations)]
    held = selected(plan, store, ["arm", "question_id"], where=pl.col("question_id").is_in(ids))
    return Lake(plan.lake).table(RANKINGS, plan.rankings(store)).missing(held)


rank_task = shard("rank", rank)

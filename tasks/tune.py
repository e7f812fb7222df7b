"""What does each setting of a reader find of one conversation's gold?

It sees gold and belongs to no reader: the readers have selected before gold is read.
"""

from collections.abc import Sequence
from typing import Any

from tasks.arms import arms
from tasks.compose import read_of
from tasks.conversation import Conversation
from tasks.metrics import evidence_metrics
from tasks.plan import Plan, StorePlan
from tasks.shard import shard

METRICS = ("complete_evidence", "evidence_recall", "gold_hit", "session_recall", "complete_sessions")


def measure(
    plan: Plan, store: StorePlan, conversation_id: str, forms: Sequence[str], metric: str
) -> list[dict[str, Any]]:
    """One row for every question of a conversation whose `metric` is defined, in benchmark order.

    `question_id, kind`; `values`: the metric, in [0, 1], of each of `forms` (arms with their budgets).
    """
    conversation = Conversation.load(plan, store, conversation_id)
    reads = [read_of(arm) for arm in arms(forms, (), [store.name])]
    selected = {
        query.id: [read(query, pool, conversation.library).ids for read in reads]
        for query, pool in conversation.queries(set(conversation.questions))
    }
    sources = {record.id: record.source_turn_ids for record in conversation.records}
    turns = plan.turns(conversation_id)
    sessions = dict(turns.select("id", "session_id").iter_rows())
    speakers = dict(turns.select("id", "speaker").iter_rows())
    gold = plan.gold_of(conversation_id)
    rows = []
    for question in conversation.questions.values():
        # Settings often agree: each distinct selection is scored once.
        scored = {
            ids: evidence_metrics(gold[question.id], ids, sources, sessions, speakers)[metric]
            for ids in dict.fromkeys(selected[question.id])
        }
        if None not in scored.values():
            values = [scored[ids] for ids in selected[question.id]]
            rows.append({"question_id": question.id, "kind": question.kind, "values": values})
    return rows


tune_task = shard("tune", measure)

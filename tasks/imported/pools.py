"""The pools of a conversation's questions as another system ranked them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from storage.errors import InputError
from storage.lake import Lake
from storage.records import Question
from storage.schemas import LISTS
from tasks.index import embedded, haystack
from tasks.plan import Plan, StorePlan
from tasks.pool import Lexicon


def given_pools(
    plan: Plan, store: StorePlan, conversation_id: str, questions: Sequence[Question]
) -> list[dict[str, Any]]:
    """Rows of the pools table for a conversation's questions: the system's order and score, the first `store.size`.

    Cosine and BM25 are ours, over all candidates of the conversation. Raises `InputError` for a question that neither
    the pool nor its `queries.parquet` names: whether the system found nothing or was not asked cannot be told.
    """
    records = plan.record_frame(store, conversation_id)
    place = {id: row for row, id in enumerate(records["id"])}
    asked = pl.col("question_id").is_in([question.id for question in questions])
    lists = Lake(plan.lake).table(LISTS, store.store).read(where=asked)
    listed = {row["question_id"]: row for row in lists.iter_rows(named=True)}
    for question in questions:
        if question.id not in listed:
            raise InputError(
                f"pools of store {store.name}: candidates of {question.id} expected, none found; name it in "
                f"queries.parquet if the system found nothing, or run others with --set data.questions"
            )
    vectors = haystack(plan, store, records).astype(np.float64) if len(records) else np.zeros((0, 0))
    lexicon = Lexicon(records["text"].to_list())
    queries = embedded(plan, store, [question.text for question in questions]).astype(np.float64)
    rows = []
    for question, query in zip(questions, queries, strict=True):
        ids = listed[question.id]["record_ids"][: store.size]
        at = np.array([place[id] for id in ids], np.intp)
        rows.append(
            {
                "question_id": question.id,
                "record_ids": ids,
                "native": listed[question.id]["native"][: store.size],
                "dense": np.einsum("nd,d->n", vectors[at], query) if len(at) else [],
                "lexical": lexicon.scores(question.text)[at],
                "boost": None,
            }
        )
    return rows

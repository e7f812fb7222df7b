"""How a pool that holds becomes the records, lists, resident context and vectors of a store."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from storage import holdings
from storage.errors import InputError
from storage.lake import Lake
from storage.pool_files import pool_digest
from storage.schemas import EMBEDDINGS, IMPORTED, LISTS, RESIDENT
from tasks.encoders.minilm import count_tokens
from tasks.imported.checks import Checked, Known, checked
from tasks.index import text_address
from tasks.plan import Plan, StorePlan


def bring(plan: Plan, store: StorePlan) -> int:
    """Check the store's pool and write it into the lake unless it is there; returns the number of its records.

    Raises `InputError` for a pool that does not hold, and for one without embeddings whose store asks for them.
    """
    lake = Lake(plan.lake)
    if lake.table(LISTS, store.store).holds_any() and not _vectors_missing(plan, store):
        return 0
    if pool_digest(store.pools) != store.pools_digest:
        raise InputError(f"pools: {store.pools} changed while it was read; run again")
    found = checked(store.pools, known(plan))
    if store.own_vectors:
        kept = lake.table(EMBEDDINGS, store.encoding)
        known_texts = kept.keys()
        kept.append([row for row in _vectors(plan, store, found) if row["text"] not in known_texts])
    made = lake.table(IMPORTED, store.store).append(_records(found.pool))
    lake.table(RESIDENT, store.store).append(_resident(found.resident))
    lake.table(LISTS, store.store).append(list(_lists(found)))
    return made


def known(plan: Plan) -> Known:
    """What the whole benchmark has, whatever part of it the plan runs; of its questions those of the plan's split."""
    every = replace(plan, kinds=(), conversations=(), named=(), limit=None)
    turns = holdings.turns(Lake(plan.lake), plan.dataset).group_by("conversation_id").agg("id", "session_id")
    return Known(
        plan.benchmark,
        {question.id: question.conversation_id for question in every.questions()},
        dict(turns.select("conversation_id", "id").iter_rows()),
        dict(turns.select("conversation_id", "session_id").iter_rows()),
        sealed=bool(plan.seal),
    )


def record_id(conversation_id: str, candidate_id: str) -> str:
    """Ids of systems are unique within a conversation, ids of records within the store."""
    return f"{conversation_id}/{candidate_id}"


def _records(pool: pl.DataFrame) -> list[dict[str, Any]]:
    """Each conversation's candidates once, dated ones first, oldest first; the others as the pool first names them.

    Where a system names no session, each record is one of its own.
    """
    rows = pool.unique(["conversation_id", "candidate_id"], keep="first", maintain_order=True)
    rows = rows.sort("conversation_id", "timestamp", nulls_last=True, maintain_order=True)
    rows = rows.with_columns(position=pl.int_range(pl.len()).over("conversation_id"))
    made = [_record(row) for row in rows.iter_rows(named=True)]
    tokens = count_tokens([row["text"] for row in made])
    return [{**row, "tokens": count} for row, count in zip(made, tokens, strict=True)]


def _record(row: dict[str, Any]) -> dict[str, Any]:
    id = record_id(row["conversation_id"], row["candidate_id"])
    return {
        "id": id,
        "conversation_id": row["conversation_id"],
        "session_id": row["session_id"] or id,
        "position": row["position"],
        "speaker": row["speaker"] or "",
        "said_at": row["timestamp"],
        "text": row["text"],
        "source_turn_ids": row["source_turn_ids"],
        "source_session_ids": row["source_session_ids"],
    }


def _lists(found: Checked) -> Iterator[dict[str, Any]]:
    """Each question's candidates in the system's order; a question that only `queries.parquet` names has none."""
    ranked = found.pool.sort("question_id", "native_rank")
    listed: set[str] = set()
    for (question,), rows in ranked.group_by("question_id", maintain_order=True):
        listed.add(str(question))
        ids = rows.select("conversation_id", "candidate_id").iter_rows()
        yield {
            "question_id": question,
            "record_ids": [record_id(*pair) for pair in ids],
            "native": _native(rows),
        }
    for question in found.queries["question_id"] if found.queries is not None else ():
        if question not in listed:
            yield {"question_id": question, "record_ids": [], "native": []}


def _native(rows: pl.DataFrame) -> list[float]:
    """Scores of which higher is better; minus the rank where one is missing or they are of several kinds."""
    scores = rows["native_score"]
    if scores.null_count() or rows["score_kind"].n_unique() > 1:
        return [-float(rank) for rank in rows["native_rank"]]
    better = rows["higher_is_better"].to_list()
    return [score if up else -score for score, up in zip(scores, better, strict=True)]


def _resident(rows: pl.DataFrame) -> list[dict[str, Any]]:
    tokens = count_tokens(rows["text"].to_list())
    return [
        {
            "id": f"{row['conversation_id']}/resident/{place}",
            "conversation_id": row["conversation_id"],
            "question_id": row["question_id"],
            "place": place,
            "text": row["text"],
            "tokens": count,
        }
        for place, (row, count) in enumerate(zip(rows.iter_rows(named=True), tokens, strict=True))
    ]


def _vectors_missing(plan: Plan, store: StorePlan) -> bool:
    """Whether a question lacks its vector; those of a sealed split are known only when it is opened."""
    kept = Lake(plan.lake).table(EMBEDDINGS, store.encoding).keys() if store.own_vectors else {}
    return store.own_vectors and any(text_address(question.text) not in kept for question in plan.questions())


def _vectors(plan: Plan, store: StorePlan, found: Checked) -> list[dict[str, Any]]:
    """Rows of the embeddings table: the first vector of each text, of unit length.

    Raises `InputError` unless every candidate and every question has one, of one embedder and one dimension.
    """
    texts = {question.id: question.text for question in replace(plan, kinds=(), named=(), limit=None).questions()}
    asked = found.queries if found.queries is not None else pl.DataFrame(schema={"question_id": pl.String})
    if "embedding" not in asked.columns:
        raise InputError(f"{store.pools}: queries.parquet with embeddings expected, as {_WHY}; none found")
    lacking = set(found.pool["question_id"]) - set(asked["question_id"])
    if lacking:
        raise InputError(f"queries.parquet of {store.pools}: an embedding of {min(lacking)} expected, as {_WHY}")
    vectors: dict[str, np.ndarray] = {}
    embedders: set[tuple[str, int]] = set()
    asked = asked.select(pl.col("question_id").replace_strict(texts, default=None), "embedding", "embedder_id")
    for name, rows in (("the pool", found.pool.select("text", "embedding", "embedder_id")), (_QUERIES, asked)):
        for place, (text, vector, embedder) in enumerate(rows.iter_rows(), 1):
            if vector is None:
                raise InputError(f"{name}: row {place}, column embedding: a vector expected, as {_WHY}; none found")
            embedders.add((embedder, len(vector)))
            if text is not None:
                vectors.setdefault(text_address(text), np.asarray(vector, np.float64))
    if len(embedders) > 1:
        raise InputError(f"{store.pools}: one embedder expected, {', '.join(map(str, sorted(embedders)))} found")
    return [{"text": address, "vector": _unit(vector)} for address, vector in vectors.items()]


_QUERIES = "queries.parquet"
_WHY = "encoder imported asks for the system's own vectors"


def _unit(vector: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(vector)
    return np.asarray(vector / (norm or 1.0), np.float32)


def facts(place: str | Path, found: Checked, plan: Plan) -> dict[str, Any]:
    """What a pool holds, in counts. Tokens are WordPieces; `resident tokens` are the mean a question of the pool."""
    pool, resident = found.pool, found.resident
    tokens = dict(zip(range(len(resident)), count_tokens(resident["text"].to_list()), strict=True))
    owners = dict(pool.select("question_id", "conversation_id").unique().iter_rows())
    shown = [
        sum(
            tokens[place]
            for place, row in enumerate(resident.iter_rows(named=True))
            if row["conversation_id"] == owner and row["question_id"] in (None, question)
        )
        for question, owner in owners.items()
    ]
    lacking = pool["embedding"].null_count()
    embedded = not lacking and found.queries is not None and not found.queries["embedding"].null_count()
    return {
        "pools": str(place),
        "system": f"{pool['system'][0]} {pool['system_version'][0]}".strip(),
        "questions": len(owners),
        "questions of the benchmark": len(known(plan).questions),
        "rows": len(pool),
        "candidates": pool.select("conversation_id", "candidate_id").n_unique(),
        "largest pool": int(pool["native_rank"].max() or 0) + 1,  # type: ignore[arg-type]
        "rows without source turns": int((pool["source_turn_ids"].list.len() == 0).sum()),
        "rows without a date": pool["timestamp"].null_count(),
        "rows without an embedding": lacking,
        "encoder": "imported" if embedded else "minilm",
        "resident rows": len(resident),
        "resident tokens": round(sum(shown) / len(shown), 1) if shown else 0.0,
    }

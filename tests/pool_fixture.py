"""A small pool of another system over the conversation of `tests.conftest`."""

from pathlib import Path
from typing import Any

from storage import pool_files
from storage.pool_files import POOL, QUERIES, RESIDENT

VECTORS = {"a": [2.0, 0.0, 0.0], "b": [1.0, 1.0, 0.0], "c": [0.0, 0.0, 5.0]}
TEXTS = {"a": "Ada adopted a parrot.", "b": "The parrot is called Kiwi.", "c": "Bo likes rain."}
SOURCES = {"a": ["D1:1"], "b": ["c1/D2:2"], "c": []}


def row(question: str, candidate: str, rank: int, score: float | None, **changes: Any) -> dict[str, Any]:
    """One row of the pool; cosine unless changed."""
    said = {
        "schema_version": 1,
        "benchmark": "locomo",
        "conversation_id": "c1",
        "question_id": f"c1/{question}",
        "system": "Attic",
        "system_version": "1",
        "run_id": "r1",
        "candidate_id": candidate,
        "native_rank": rank,
        "native_score": score,
        "score_kind": "none" if score is None else "cosine",
        "higher_is_better": None if score is None else True,
        "text": TEXTS[candidate],
        "kind": "fact",
        "source_turn_ids": SOURCES[candidate],
        "source_session_ids": [],
        "channels": ["semantic"],
    }
    return {**said, **changes}


def pool(**changes: Any) -> list[dict[str, Any]]:
    """Two questions of three and two candidates; the third question has none."""
    rows = [row("q0", "b", 0, 0.9), row("q0", "a", 1, 0.8), row("q0", "c", 2, 0.1)]
    rows += [row("q1", "a", 0, 0.7), row("q1", "b", 1, 0.6)]
    return [{**each, **changes} for each in rows]


def queries(*, vectors: bool = False) -> list[dict[str, Any]]:
    """All three questions."""
    given = {"embedding": [1.0, 0.0, 1.0], "embedder_id": "attic"} if vectors else {}
    return [{"question_id": f"c1/q{place}", **given} for place in range(3)]


def resident() -> list[dict[str, Any]]:
    """A profile for every question, and a summary for the second."""
    return [
        {"conversation_id": "c1", "question_id": None, "kind": "profile", "text": "Ada keeps birds."},
        {"conversation_id": "c1", "question_id": "c1/q1", "kind": "summary", "text": "They spoke of Kiwi."},
    ]


def write_pool(
    folder: Path, rows: list[dict[str, Any]], asked: list[dict[str, Any]] | None = None, *, shown: bool = False
) -> Path:
    """The files of a pool in `folder`."""
    pool_files.write(folder, POOL, rows)
    if asked is not None:
        pool_files.write(folder, QUERIES, asked)
    if shown:
        pool_files.write(folder, RESIDENT, resident())
    return folder

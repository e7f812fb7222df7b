"""Whether a neutral candidate pool can be trusted, row by row."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from storage import pool_files
from storage.errors import InputError
from storage.pool_files import QUERIES, RESIDENT

SCORE_KINDS = {"cosine": True, "dot": True, "bm25": True, "l2": False, "distance": False, "hybrid": None, "none": None}
"""How a system scores → whether a higher score is better; None where the system says, or has none."""
KINDS = ("turn", "note", "fact", "chunk", "page", "summary", "profile")


@dataclass(frozen=True)
class Known:
    """What a pool may speak of: question id → conversation id, and conversation id → ids of its turns and sessions.

    `sealed`: whether questions of the benchmark are sealed, so that others than these may be named.
    """

    benchmark: str
    questions: Mapping[str, str]
    turns: Mapping[str, Collection[str]]
    sessions: Mapping[str, Collection[str]]
    sealed: bool = False


@dataclass(frozen=True)
class Checked:
    """A pool that holds, with its sidecars; the ids of sources are the benchmark's own. `queries`: None if absent."""

    pool: pl.DataFrame
    queries: pl.DataFrame | None
    resident: pl.DataFrame


_OWNER = "conversation_id"
_SCORED = pl.col("native_score").is_not_null()
_SIGNED = pl.when("higher_is_better").then("native_score").otherwise(-pl.col("native_score"))
_BEFORE = (
    _SIGNED.cum_min().shift(1).forward_fill().over("question_id", "score_kind", order_by="native_rank").fill_null(1e308)
)
_MUST = pl.col("score_kind").replace_strict(SCORE_KINDS, default=None, return_dtype=pl.Boolean)
_WIDTH = pl.col("embedding").list.len()

CHECKS: tuple[tuple[str, str, pl.Expr], ...] = (
    ("schema_version", str(pool_files.SCHEMA_VERSION), pl.col("schema_version") != pool_files.SCHEMA_VERSION),
    ("score_kind", "one of " + ", ".join(SCORE_KINDS), ~pl.col("score_kind").is_in(list(SCORE_KINDS))),
    ("kind", "one of " + ", ".join(KINDS), ~pl.col("kind").is_in(KINDS)),
    ("candidate_id", "an id", pl.col("candidate_id") == ""),
    ("text", "a text", pl.col("text").str.strip_chars() == ""),
    (
        "candidate_id",
        "each candidate of a question once",
        ~pl.struct("question_id", "run_id", "candidate_id").is_first_distinct(),
    ),
    (
        "native_rank",
        "ranks from 0 without gap or repeat within a question",
        ~pl.col("native_rank").is_between(0, pl.len().over("question_id", "run_id") - 1)
        | ~pl.struct("question_id", "run_id", "native_rank").is_first_distinct(),
    ),
    ("native_score", "no score where score_kind is none", _SCORED & (pl.col("score_kind") == "none")),
    ("native_score", "a finite score", ~pl.col("native_score").is_finite()),
    ("higher_is_better", "true or false beside a score", _SCORED & pl.col("higher_is_better").is_null()),
    (
        "higher_is_better",
        "true for cosine, dot and bm25, false for l2 and distance",
        _SCORED & (pl.col("higher_is_better") != _MUST),
    ),
    ("native_score", "no better score than those of earlier ranks", _SIGNED - _BEFORE > 0),
    ("embedder_id", "a name beside an embedding", pl.col("embedding").is_not_null() & pl.col("embedder_id").is_null()),
    ("embedding", "finite numbers", ~pl.col("embedding").list.eval(pl.element().is_finite()).list.all()),
    ("embedding", "one dimension for each embedder", _WIDTH.drop_nulls().first().over("embedder_id") != _WIDTH),
    (
        "text",
        "one text for each candidate of a conversation",
        pl.col("text").first().over("conversation_id", "candidate_id") != pl.col("text"),
    ),
    (
        "source_turn_ids",
        "the same sources for each candidate of a conversation",
        pl.col("source_turn_ids").list.join("\n")
        != pl.col("source_turn_ids").list.join("\n").first().over("conversation_id", "candidate_id"),
    ),
)
"""Column, what is expected of it, and where it is not so. The first wrong row of the first check is reported."""


def checked(place: str | Path, known: Known) -> Checked:
    """The pool at `place` with its sidecars. Raises `InputError` naming file, row (from 1), column and what was found.

    Ids of sources may be written as the benchmark's file has them (`D1:3`) or in full (`conv-26/D1:3`).
    """
    path = pool_files.pool_file(place)
    pool = pool_files.read(path)
    if pool is None or pool.is_empty():
        raise InputError(f"{path}: at least one row expected, none found")
    _refuse(path, pool, "benchmark", known.benchmark, pl.col("benchmark") != known.benchmark)
    _refuse(path, pool, "run_id", "one run (keep one with --run)", pl.col("run_id") != pool["run_id"][0])
    _refuse_questions(path, pool, known)
    for column, expected, wrong in CHECKS:
        _refuse(path, pool, column, expected, wrong)
    for column, ids in (("source_turn_ids", known.turns), ("source_session_ids", known.sessions)):
        pool = _in_full(path, pool, column, ids)
    return Checked(pool, _queries(path, known), _resident(path, known))


def _queries(path: Path, known: Known) -> pl.DataFrame | None:
    rows, at = pool_files.read(path, QUERIES), path.with_name(QUERIES)
    if rows is None:
        return None
    _refuse(at, rows, "question_id", "each question once", ~pl.col("question_id").is_first_distinct())
    _refuse(at, rows, "question_id", f"a question of {known.benchmark}", _unknown(known))
    unnamed = pl.col("embedding").is_not_null() & pl.col("embedder_id").is_null()
    _refuse(at, rows, "embedder_id", "a name beside an embedding", unnamed)
    return rows


def _resident(path: Path, known: Known) -> pl.DataFrame:
    rows, at = pool_files.read(path, RESIDENT), path.with_name(RESIDENT)
    if rows is None:
        return pl.DataFrame(schema=dict.fromkeys(pool_files.SCHEMAS[RESIDENT].names, pl.String))
    expected = f"a conversation of {known.benchmark}"
    _refuse(at, rows, "conversation_id", expected, ~_is_in("conversation_id", known.turns))
    asked = pl.col("question_id").is_not_null()
    expected = f"a question of {known.benchmark}"
    _refuse(at, rows, "question_id", expected, asked & _unknown(known))
    _refuse(at, rows, "conversation_id", "the question's conversation", asked & (_asked(known) != pl.col(_OWNER)))
    return rows


def _refuse_questions(path: Path, pool: pl.DataFrame, known: Known) -> None:
    expected = f"a question of {known.benchmark}"
    _refuse(path, pool, "question_id", expected, _unknown(known))
    _refuse(path, pool, _OWNER, "the question's conversation", _asked(known) != pl.col(_OWNER))
    _refuse(path, pool, _OWNER, f"a conversation of {known.benchmark}", ~_is_in(_OWNER, known.turns))


def _unknown(known: Known) -> pl.Expr:
    """Whether a row names a question that cannot be; a sealed one can."""
    return pl.lit(value=False) if known.sealed else ~_is_in("question_id", known.questions)


def _asked(known: Known) -> pl.Expr:
    """The conversation of each row's question."""
    return pl.col("question_id").replace_strict(dict(known.questions), default=None, return_dtype=pl.String)


def _is_in(column: str, names: Collection[str]) -> pl.Expr:
    return pl.col(column).is_in(list(names))


def _in_full(path: Path, pool: pl.DataFrame, column: str, ids: Mapping[str, Collection[str]]) -> pl.DataFrame:
    """`pool` with the benchmark's own ids in a column of lists."""
    owned = [(owner, id) for owner, of in ids.items() for id in set(of)]
    own = pl.DataFrame(owned, schema={_OWNER: pl.String, "id": pl.String}, orient="row").with_columns(known=True)
    named = pool.select(_OWNER, id=column).with_row_index("row").explode("id").drop_nulls("id")
    named = named.join(own, on=[_OWNER, "id"], how="left", maintain_order="left")
    written = pl.when("known").then("id").otherwise(pl.concat_str(_OWNER, pl.lit("/"), "id"))
    full = named.select("row", _OWNER, name="id", id=written).join(
        own, on=[_OWNER, "id"], how="left", maintain_order="left"
    )
    for row, owner, name in full.filter(pl.col("known").is_null()).select("row", _OWNER, "name").head(1).iter_rows():
        raise InputError(f"{path}: row {row + 1}, column {column}: ids of {owner} expected, {name!r} found")
    lists = full.group_by("row", maintain_order=True).agg(pl.col("id").alias(column))
    kept = pool.with_row_index("row").drop(column).join(lists, on="row", how="left", maintain_order="left")
    return kept.with_columns(pl.col(column).fill_null([])).select(pool.columns)


def _refuse(path: Path, rows: pl.DataFrame, column: str, expected: str, wrong: pl.Expr) -> None:
    """Raise `InputError` for the first row where `wrong` is true."""
    places = rows.select(wrong.fill_null(False).alias("wrong"))["wrong"].arg_true()
    if len(places):
        found = str(rows[column][places[0]])[:80]
        raise InputError(f"{path}: row {places[0] + 1}, column {column}: {expected} expected, {found!r} found")

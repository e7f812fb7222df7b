"""What the files of a neutral candidate pool hold: one row a question and candidate, with two sidecars."""

from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from storage.digests import tree_digest
from storage.errors import InputError
from storage.places import write_whole

SCHEMA_VERSION = 1
POOL, QUERIES, RESIDENT = "pool.parquet", "queries.parquet", "resident.parquet"
GOLD_WORDS = ("gold", "answer", "evidence", "label", "relevan", "rubric", "reference")

_TEXT, _IDS, _VECTOR, _TIME = pa.string(), pa.list_(pa.string()), pa.list_(pa.float32()), pa.timestamp("us")


def _schema(needed: dict[str, pa.DataType], optional: dict[str, pa.DataType]) -> pa.Schema:
    return pa.schema(
        [pa.field(name, kind, nullable=False) for name, kind in needed.items()]
        + [pa.field(name, kind) for name, kind in optional.items()]
    )


SCHEMAS = {
    POOL: _schema(
        {
            "schema_version": pa.int16(),
            "benchmark": _TEXT,
            "conversation_id": _TEXT,
            "question_id": _TEXT,
            "system": _TEXT,
            "system_version": _TEXT,
            "run_id": _TEXT,
            "candidate_id": _TEXT,
            "native_rank": pa.int32(),
            "score_kind": _TEXT,
            "text": _TEXT,
            "kind": _TEXT,
            "source_turn_ids": _IDS,
            "source_session_ids": _IDS,
            "channels": _IDS,
        },
        {
            "native_score": pa.float64(),
            "higher_is_better": pa.bool_(),
            "speaker": _TEXT,
            "timestamp": _TIME,
            "timestamp_raw": _TEXT,
            "session_id": _TEXT,
            "embedding": _VECTOR,
            "embedder_id": _TEXT,
            "group_id": _TEXT,
            "extra_json": _TEXT,
        },
    ),
    QUERIES: _schema(
        {"question_id": _TEXT},
        {"text": _TEXT, "embedding": _VECTOR, "embedder_id": _TEXT, "question_time": _TIME},
    ),
    RESIDENT: _schema(
        {"conversation_id": _TEXT, "kind": _TEXT, "text": _TEXT},
        {"question_id": _TEXT},
    ),
}
"""File → its columns. Those that are nullable may be left out; times are local, without a zone."""


def pool_file(place: str | Path) -> Path:
    """The pool that `place` names: the file, or the folder that holds it. Raises `InputError` where there is none."""
    path = Path(place).expanduser()
    path = path / POOL if path.is_dir() else path
    if not path.is_file():
        raise InputError(f"pools: a Parquet file or a folder with {POOL} expected at {place}, none found")
    return path


def pool_digest(place: str | Path) -> str:
    """The address of a pool with its sidecars. Raises `InputError` where there is none."""
    path = pool_file(place)
    beside = [(name, path.with_name(name)) for name in (QUERIES, RESIDENT)]
    return tree_digest([(POOL, path), *((name, file) for name, file in beside if file.is_file())])


def read(place: str | Path, name: str = POOL) -> pl.DataFrame | None:
    """The rows of the pool or of a sidecar, its columns in order; None for a sidecar that is not there.

    Raises `InputError` for a file that is no Parquet, and for a column that is missing, unknown, of another type, or
    null where it must not be; it names the file, the column and the row, counted from 1.
    """
    path = pool_file(place)
    path = path if name == POOL else path.with_name(name)
    if not path.is_file():
        return None
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: a Parquet file expected, {str(error).splitlines()[0]}") from error
    _refuse_unknown(path, table.schema.names, SCHEMAS[name])
    columns = [_column(path, table, field) for field in SCHEMAS[name]]
    return pl.DataFrame(pl.from_arrow(pa.Table.from_arrays(columns, SCHEMAS[name].names)))


def write(place: str | Path, name: str, rows: pl.DataFrame | list[dict[str, object]]) -> None:
    """Write the pool or a sidecar into the folder `place`; columns that the rows lack are null."""
    schema = SCHEMAS[name]
    table = rows.to_arrow() if isinstance(rows, pl.DataFrame) else pa.Table.from_pylist(rows, schema=schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table.select(schema.names).cast(schema), sink, compression="zstd")
    write_whole(Path(place) / name, sink.getvalue().to_pybytes())


def _refuse_unknown(path: Path, found: list[str], schema: pa.Schema) -> None:
    for name in found:
        if name not in schema.names and any(word in name.lower() for word in GOLD_WORDS):
            raise InputError(f"{path}: column {name}: no gold expected in a pool, found; remove the column")
        if name not in schema.names:
            raise InputError(f"{path}: column {name}: unknown; what else a system says belongs in extra_json")
    for field in schema:
        if field.name not in found and not field.nullable:
            raise InputError(f"{path}: column {field.name}: expected, none found")


def _column(path: Path, table: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    if field.name not in table.schema.names:
        return pa.nulls(table.num_rows, field.type)
    column = table[field.name]
    try:
        cast = column.cast(field.type)
    except (pa.ArrowException, ValueError) as error:
        raise InputError(f"{path}: column {field.name}: {field.type} expected, {column.type} found") from error
    if cast.null_count and not field.nullable:
        row = cast.is_null().to_pylist().index(True) + 1
        raise InputError(f"{path}: row {row}, column {field.name}: a value expected, null found")
    return cast

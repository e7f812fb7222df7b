"""Which tables a lake has, with their columns, units and keys."""

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class TableSpec:
    """One table: its Arrow schema and the columns that name a row. Rows with equal keys are one row."""

    name: str
    schema: pa.Schema
    key: tuple[str, ...]


def _field(name: str, type: pa.DataType, unit: str | None = None, *, null: bool = False) -> pa.Field:
    return pa.field(name, type, nullable=null, metadata={"unit": unit} if unit else None)


_TEXT = pa.string()
_IDS = pa.list_(pa.string())
_TIME = pa.timestamp("us")
_STEP = pa.struct([("view", _TEXT), ("cue", _TEXT), ("returned", _IDS), ("kept", _IDS)])

DATASETS = TableSpec(
    "datasets",
    pa.schema(
        [
            _field("source", _TEXT),
            _field("benchmark", _TEXT),
            _field("dataset", _TEXT),
            _field("gold", _TEXT),
            _field("facts", _TEXT, "JSON"),
        ]
    ),
    ("source",),
)
CONVERSATIONS = TableSpec(
    "conversations",
    pa.schema(
        [
            _field("id", _TEXT),
            _field("conversation_id", _TEXT),
            _field("session_id", _TEXT),
            _field("position", pa.int32(), "turns from the start of the conversation"),
            _field("speaker", _TEXT),
            _field("text", _TEXT),
            _field("caption", _TEXT, null=True),
            _field("said_at", _TIME, "local time of the session", null=True),
        ]
    ),
    ("id",),
)
QUESTIONS = TableSpec(
    "questions",
    pa.schema(
        [
            _field("id", _TEXT),
            _field("conversation_id", _TEXT),
            _field("kind", _TEXT),
            _field("asked_at", _TIME, "local time", null=True),
            _field("text", _TEXT),
            _field("place", pa.int32(), "place in the benchmark's order"),
        ]
    ),
    ("id",),
)
GOLD = TableSpec(
    "gold",
    pa.schema(
        [
            _field("question_id", _TEXT),
            _field("answer", _TEXT, null=True),
            _field("turn_ids", _IDS),
            _field("session_ids", _IDS),
            _field("rubric", _IDS),
            _field("abstention", pa.bool_(), "whether the right reply declines to answer"),
        ]
    ),
    ("question_id",),
)
RECORDS = TableSpec(
    "records",
    pa.schema(
        [
            _field("id", _TEXT),
            _field("conversation_id", _TEXT),
            _field("session_id", _TEXT),
            _field("position", pa.int32(), "records from the start of the conversation"),
            _field("speaker", _TEXT),
            _field("said_at", _TIME, "local time of the session", null=True),
            _field("text", _TEXT),
            _field("source_turn_ids", _IDS),
            _field("tokens", pa.int32(), "tokens of the rendered record"),
        ]
    ),
    ("id",),
)
EMBEDDINGS = TableSpec(
    "embeddings",
    pa.schema(
        [
            _field("text", _TEXT, "SHA-256 of the text"),
            _field("vector", pa.list_(pa.float32()), "unit length"),
        ]
    ),
    ("text",),
)
INDEXES = TableSpec(
    "indexes",
    pa.schema([_field("index", _TEXT), _field("rows", pa.int64(), "records"), _field("tag", _TEXT)]),
    ("index",),
)
POOLS = TableSpec(
    "pools",
    pa.schema(
        [
            _field("question_id", _TEXT),
            _field("record_ids", _IDS, "native rank order"),
            _field("native", pa.list_(pa.float64()), "fused score"),
            _field("dense", pa.list_(pa.float64()), "cosine"),
            _field("lexical", pa.list_(pa.float64()), "BM25"),
        ]
    ),
    ("question_id",),
)
STATES = TableSpec(
    "states",
    pa.schema(
        [
            _field("question_id", _TEXT),
            _field("evidence_hash", _TEXT),
            _field("record_ids", _IDS, "oldest first"),
            _field("tokens", pa.int64(), "tokens of the rendered records"),
        ]
    ),
    ("question_id", "evidence_hash"),
)
SELECTIONS = TableSpec(
    "selections",
    pa.schema(
        [
            _field("arm", _TEXT),
            _field("question_id", _TEXT),
            _field("evidence_hash", _TEXT),
            _field("record_ids", _IDS, "selection order"),
            _field("gains", pa.list_(pa.float64()), null=True),
            _field("weights", pa.list_(pa.float64()), null=True),
            _field("calls", pa.int32(), "retrieval calls beyond the pool"),
            _field("stop_reason", _TEXT),
            _field("latency_ms", pa.float64(), "milliseconds"),
            _field("trace", pa.list_(_STEP)),
        ]
    ),
    ("arm", "question_id"),
)
ANSWERS = TableSpec(
    "answers",
    pa.schema(
        [
            _field("question_id", _TEXT),
            _field("evidence_hash", _TEXT),
            _field("text", _TEXT, null=True),
            _field("status", _TEXT),
            _field("raw", _TEXT, null=True),
        ]
    ),
    ("question_id", "evidence_hash"),
)
VERDICTS = TableSpec(
    "verdicts",
    pa.schema(
        [
            _field("question_id", _TEXT),
            _field("answer", _TEXT, "SHA-256 of the answer's text"),
            _field("score", pa.float64(), "in [0, 1]", null=True),
            _field("label", _TEXT, null=True),
            _field("status", _TEXT),
            _field("raw", _TEXT, null=True),
        ]
    ),
    ("question_id", "answer"),
)
_SHARE = [
    _field(name, pa.float64(), "in [0, 1]", null=True)
    for name in ("gold_hit", "evidence_recall", "complete_evidence", "session_recall", "complete_sessions")
]
SCORES = TableSpec(
    "scores",
    pa.schema([_field("question_id", _TEXT), _field("evidence_hash", _TEXT), *_SHARE]),
    ("question_id", "evidence_hash"),
)
RUNS = TableSpec(
    "runs",
    pa.schema(
        [
            _field("run", _TEXT),
            _field("protocol", _TEXT, "name"),
            _field("digest", _TEXT, "protocol digest"),
            _field("started_at", _TIME, "UTC"),
            _field("summary", _TEXT, "JSON: counts, reuse, timings in seconds"),
        ]
    ),
    ("run",),
)

TABLES = {spec.name: spec for spec in list(globals().values()) if isinstance(spec, TableSpec)}

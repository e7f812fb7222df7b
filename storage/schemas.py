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
SESSIONS = TableSpec(
    "sessions",
    pa.schema(
        [
            _field("session", _TEXT, "address of the content"),
            _field("place", pa.int32(), "turns from the start of the session"),
            _field("name", _TEXT, "what follows the prefix in a turn's id"),
            _field("speaker", _TEXT),
            _field("text", _TEXT),
            _field("caption", _TEXT, null=True),
        ]
    ),
    ("session", "place"),
)
CONVERSATIONS = TableSpec(
    "conversations",
    pa.schema(
        [
            _field("conversation_id", _TEXT),
            _field("place", pa.int32(), "sessions from the start of the conversation"),
            _field("session", _TEXT, "address of the content"),
            _field("session_id", _TEXT),
            _field("prefix", _TEXT, "what stands before a turn's name in its id"),
            _field("position", pa.int32(), "turns from the start of the conversation"),
            _field("turns", pa.int32(), "turns of the session"),
            _field("said_at", _TIME, "local time of the session", null=True),
        ]
    ),
    ("conversation_id", "place"),
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
            _field("unit", _TEXT, "address of the session that the writer saw"),
            _field("place", pa.int32(), "records from the start of the unit"),
            _field("name", _TEXT, "what follows the prefix in the record's id"),
            _field("speaker", _TEXT),
            _field("text", _TEXT),
            _field("sources", _IDS, "names of the source turns"),
            _field("tokens", pa.int32(), "tokens of the text"),
        ]
    ),
    ("unit", "place"),
)
HOLDINGS = TableSpec(
    "holdings",
    pa.schema(
        [
            _field("conversation_id", _TEXT),
            _field("place", pa.int32(), "sessions from the start of the conversation"),
            _field("unit", _TEXT, "address of the session that the writer saw"),
            _field("session_id", _TEXT),
            _field("prefix", _TEXT, "what stands before a record's name in its id"),
            _field("position", pa.int32(), "records from the start of the conversation"),
            _field("records", pa.int32(), "records of the unit"),
            _field("said_at", _TIME, "local time of the session", null=True),
        ]
    ),
    ("conversation_id", "place"),
)
OBSERVATIONS = TableSpec(
    "observations",
    pa.schema(
        [
            _field("id", _TEXT),
            _field("conversation_id", _TEXT),
            _field("session_id", _TEXT),
            _field("position", pa.int32(), "facts from the start of the conversation"),
            _field("speaker", _TEXT),
            _field("said_at", _TIME, "local time of the session", null=True),
            _field("text", _TEXT),
            _field("source_turn_ids", _IDS),
        ]
    ),
    ("id",),
)
IMPORTED = TableSpec(
    "imported",
    pa.schema(
        [
            _field("id", _TEXT),
            _field("conversation_id", _TEXT),
            _field("session_id", _TEXT),
            _field("position", pa.int32(), "records from the start of the conversation"),
            _field("speaker", _TEXT),
            _field("said_at", _TIME, "local time", null=True),
            _field("text", _TEXT),
            _field("tokens", pa.int32(), "tokens of the text"),
            _field("source_turn_ids", _IDS),
            _field("source_session_ids", _IDS, "sessions that another system names as the record's sources"),
        ]
    ),
    ("id",),
)
LISTS = TableSpec(
    "lists",
    pa.schema(
        [
            _field("question_id", _TEXT),
            _field("record_ids", _IDS, "another system's order, best first"),
            _field("native", pa.list_(pa.float64()), "its score, higher is better; minus the rank where it has none"),
        ]
    ),
    ("question_id",),
)
RESIDENT = TableSpec(
    "resident",
    pa.schema(
        [
            _field("id", _TEXT),
            _field("conversation_id", _TEXT),
            _field("question_id", _TEXT, "null: shown with every question of the conversation", null=True),
            _field("place", pa.int32(), "order in which it is shown"),
            _field("text", _TEXT),
            _field("tokens", pa.int32(), "tokens of the text"),
        ]
    ),
    ("id",),
)
EXTRACTIONS = TableSpec(
    "extractions",
    pa.schema(
        [
            _field("conversation_id", _TEXT),
            _field("first_turn_id", _TEXT, "of the batch"),
            _field("turns", pa.int32(), "messages of the batch"),
            _field("status", _TEXT),
            _field("facts", pa.int32(), "records made"),
            _field("repeated", pa.int32(), "facts dropped, as a record says the same"),
            _field("unplaced", pa.int32(), "records whose sources are the whole batch, as the reply named none"),
            _field("raw", _TEXT, "a reply that could not be read", null=True),
        ]
    ),
    ("first_turn_id",),
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
            _field("boost", pa.list_(pa.float64()), "entity boost; null: a fusion without it", null=True),
        ]
    ),
    ("question_id",),
)
FITS = TableSpec(
    "fits",
    pa.schema(
        [
            _field("reader", _TEXT, "printed form"),
            _field("conversation_id", _TEXT, "the conversation that is read with these weights"),
            _field("weights", pa.list_(pa.float64())),
            _field("trained_on", _IDS, "conversations whose gold was seen; never the one that is read"),
        ]
    ),
    ("reader", "conversation_id"),
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
            _field("asks", pa.int32(), "requests to a model; null: the reader asks none", null=True),
            _field("prompt_tokens", pa.int64(), "tokens of those requests", null=True),
            _field("completion_tokens", pa.int64(), "tokens of their replies", null=True),
            _field("fallbacks", pa.int32(), "replies that could not be used; null as in asks", null=True),
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
            _field("score", pa.float64(), "in [0, 1]; mean of the repeats that were judged", null=True),
            _field("label", _TEXT, "majority of the repeats", null=True),
            _field("status", _TEXT),
            _field("raw", _TEXT, null=True),
            _field("scores", pa.list_(pa.float64()), "one a repeat; null: not judged"),
        ]
    ),
    ("question_id", "answer"),
)
SUFFICIENCY = TableSpec(
    "sufficiency",
    pa.schema(
        [
            _field("question_id", _TEXT),
            _field("evidence_hash", _TEXT),
            _field("label", _TEXT, "sufficient, insufficient, uncertain", null=True),
            _field("status", _TEXT),
            _field("votes", _IDS, "of the judges in order, then of the adjudicator if asked; null: not read"),
            _field("raw", _TEXT, null=True),
        ]
    ),
    ("question_id", "evidence_hash"),
)
_SHARE = [
    _field(name, pa.float64(), "in [0, 1]", null=True)
    for name in (
        "gold_hit",
        "evidence_recall",
        "complete_evidence",
        "session_recall",
        "complete_sessions",
        "turn_hit",
        "user_recall_any",
        "user_recall_all",
    )
]
SCORES = TableSpec(
    "scores",
    pa.schema([_field("question_id", _TEXT), _field("evidence_hash", _TEXT), *_SHARE]),
    ("question_id", "evidence_hash"),
)
_TOKEN = pa.struct([("token", _TEXT), ("logprob", pa.float64())])
CALLS = TableSpec(
    "calls",
    pa.schema(
        [
            _field("request", _TEXT, "digest of model, messages, sampling, prompt and repeat"),
            _field("model", _TEXT),
            _field("endpoint", _TEXT),
            _field("prompt", _TEXT, "digest of the prompt file"),
            _field("repeat", pa.int32()),
            _field("purpose", _TEXT),
            _field("text", _TEXT, null=True),
            _field("status", _TEXT),
            _field("finish_reason", _TEXT, "null: no reply was had", null=True),
            _field("characters", pa.int64(), "characters sent"),
            _field("prompt_tokens", pa.int64(), "tokens", null=True),
            _field("completion_tokens", pa.int64(), "tokens", null=True),
            _field("cost", pa.float64(), "US dollars; null: unknown price", null=True),
            _field("latency_s", pa.float64(), "seconds", null=True),
            _field("attempts", pa.int32()),
            _field("error", _TEXT, null=True),
            _field("top_logprobs", pa.list_(_TOKEN), "of the first token", null=True),
            _field("answered_at", _TIME, "UTC"),
        ]
    ),
    ("request", "status"),
)
STARTS = TableSpec(
    "starts",
    pa.schema(
        [
            _field("run", _TEXT),
            _field("protocol", _TEXT, "JSON"),
            _field("stages", _IDS),
            _field("started_at", _TIME, "UTC"),
            _field("host", _TEXT),
            _field("process", pa.int64(), "process id on the host"),
            _field("flow_run", _TEXT, "Prefect's id", null=True),
        ]
    ),
    ("run",),
)
RANKINGS = TableSpec(
    "rankings",
    pa.schema(
        [
            _field("arm", _TEXT),
            _field("question_id", _TEXT),
            _field("ndcg", pa.float64(), "in [0, 1]", null=True),
            _field("user_ndcg_any", pa.float64(), "in [0, 1]", null=True),
        ]
    ),
    ("arm", "question_id"),
)
RUNS = TableSpec(
    "runs",
    pa.schema(
        [
            _field("run", _TEXT),
            _field("protocol", _TEXT, "name"),
            _field("digest", _TEXT, "protocol digest"),
            _field("ended_at", _TIME, "UTC"),
            _field("summary", _TEXT, "JSON: counts, reuse, timings in seconds"),
        ]
    ),
    ("run",),
)

TABLES = {spec.name: spec for spec in list(globals().values()) if isinstance(spec, TableSpec)}

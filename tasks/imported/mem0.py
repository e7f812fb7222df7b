"""What the package `mem0ai` finds in a benchmark's records, as a pool. Nothing leaves the machine but calls to a model.

Each record is one memory as it stands (`infer=False`), or a message from which mem0 extracts facts with a model of the
protocol (`infer=True`). Qdrant runs in this process, our encoder makes the vectors, telemetry is off. Source: mem0ai
2.2.1 (Apache-2.0), which scores dense candidates alone.
"""

import hashlib
import logging
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import snowballstemmer

from storage.errors import InputError
from storage.records import Question, Record
from tasks import specs
from tasks.encoders import ENCODERS
from tasks.imported.dumps import Files, rows
from tasks.imported.formats import Found
from tasks.imported.mem0_extraction import Extractor
from tasks.plan import Plan, StorePlan
from tasks.store import write_store
from tasks.text import STOP_WORDS, tokens

_K1, _B, _MEAN_LENGTH = 1.2, 0.75, 256.0


def export(plan: Plan, store: StorePlan, size: int, run: str, model: str = "") -> tuple[Files, dict[str, str]]:
    """The pool of the plan's questions, `size` candidates at most, and what of the scoring and extraction was active.

    With `model`, a name of the protocol's, records are messages and candidates the facts that mem0 extracts from them;
    a fact's sources are those of the message that was added when it came. Raises `InputError` where mem0ai is not
    installed or already sends telemetry, and where its BM25, which fails silently, scored nothing.
    """
    write_store(plan, store)
    files, seen, asked = Files(), Counter[str](), Counter[str]()
    for conversation in plan.conversation_ids():
        records = {record.id: record for record in plan.records(store, conversation)}
        questions = plan.questions(conversation)
        extractor = Extractor(plan.asking, model, version("mem0ai")) if model else None
        for question, found in _searched(store, list(records.values()), questions, size, extractor):
            seen.update(channel for item in found for channel in item.channels)
            files.pool += rows(found, **_shared(plan, question, run))
            files.queries.append({"question_id": question.id})
        asked += extractor.outcomes if extractor else Counter[str]()
    told = {"extracted by": f"{model}: {asked['read']} replies, {asked['unread']} unreadable"} if model else {}
    if not files.pool:
        raise InputError(f"mem0: facts from some message expected, none extracted by {model}; ask another model")
    if not seen["keyword"]:
        raise InputError("mem0: a BM25 score of some candidate expected, none found; its keyword search did not run")
    active = "dense and BM25" + (" and entities" if seen["entity"] else "; no entities, since spaCy is not installed")
    written = f", facts by {plan.model(model).model}" if model else ""
    for row in files.pool:
        row["system_version"] += f" ({active}{written})"
    return files, {"scored by": active, **told}


@dataclass(frozen=True)
class Sparse:
    """A sparse vector as Qdrant takes it."""

    indices: np.ndarray
    values: np.ndarray


class Bm25:
    """Weights of `Qdrant/bm25` without its download: k1 1.2, b 0.75, a mean length of 256, English Snowball stems.

    Qdrant weighs them by idf. Stop words are our own list's, and a stem's place is its SHA-256 instead of its murmur.
    """

    def __init__(self) -> None:
        self._stemmer = snowballstemmer.stemmer("english")

    def embed(self, texts: Sequence[str]) -> Iterator[Sparse]:
        """One vector a text, in order."""
        for text in texts:
            stems = Counter(self._stemmer.stemWords([token for token in tokens(text) if token not in STOP_WORDS]))
            length = _K1 * (1 - _B + _B * stems.total() / _MEAN_LENGTH)
            places: dict[int, float] = {}
            for stem, count in stems.items():
                places[place_of(stem)] = count * (_K1 + 1) / (count + length)
            yield Sparse(np.array(list(places), np.int64), np.array(list(places.values()), np.float64))


def place_of(stem: str) -> int:
    """Where a stem stands in a sparse vector: 31 bits of its digest."""
    return int.from_bytes(hashlib.sha256(stem.encode("utf-8", "replace")).digest()[:4], "big") >> 1


def _searched(
    store: StorePlan,
    records: Sequence[Record],
    questions: Sequence[Question],
    size: int,
    extractor: Extractor | None,
) -> Iterator[tuple[Question, list[Found]]]:
    with TemporaryDirectory() as folder:
        memory = _memory(Path(folder), store)
        memory.llm = extractor or memory.llm
        try:
            held: dict[str, tuple[str, Record]] = {}
            for record in records:
                for place, made in enumerate(_added(memory, record, extractor)):
                    own = record.id.removeprefix(f"{record.conversation_id}/")
                    held[made["id"]] = (f"{own}/{place}" if extractor else own, record)
            for question in questions:
                hits = memory.search(question.text, filters={"user_id": "all"}, top_k=size, explain=True)["results"]
                yield question, [_found(hit, *held[hit["id"]], "fact" if extractor else "turn") for hit in hits]
        finally:
            memory.close()


def _added(memory: Any, record: Record, extractor: Extractor | None) -> list[dict[str, Any]]:
    """The memories that a record became. Raises what stopped an extraction, which mem0 wraps in words of its own."""
    if extractor:
        extractor.said_at = record.said_at
    try:
        added: list[dict[str, Any]] = memory.add(record.text, user_id="all", infer=extractor is not None)["results"]
    except Exception as error:
        raise (extractor and extractor.failure) or error from None
    return added


def _found(hit: dict[str, Any], name: str, record: Record, kind: str) -> Found:
    details = hit.get("score_details") or {}
    keyword = ("keyword",) if details.get("bm25_score") else ()
    entity = ("entity",) if details.get("entity_boost") else ()
    return Found(
        id=name,
        text=hit["memory"],
        kind=kind,
        score=float(hit["score"]),
        scored="hybrid",
        speaker=record.speaker,
        at=record.said_at.isoformat() if record.said_at else None,
        turns=record.source_turn_ids,
        channels=("semantic", *keyword, *entity),
    )


def _memory(folder: Path, store: StorePlan) -> Any:
    """A memory in `folder` with our encoder and our BM25 in it; the language model that it has is never asked."""
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ["MEM0_DIR"] = str(folder / "home")
    try:
        from mem0 import Memory
        from mem0.memory.telemetry import MEM0_TELEMETRY
    except ImportError as error:
        raise InputError("mem0: the package mem0ai expected, not installed; pip install 'suffice[mem0]'") from error
    if MEM0_TELEMETRY:
        raise InputError("mem0: telemetry off expected, on found, since mem0 was imported before; start a new process")
    logging.getLogger("mem0").setLevel(logging.ERROR)
    encoder = specs.make(ENCODERS, store.encoder, "encoder")
    width = encoder.encode(["width"]).shape[1]
    unused = {"provider": "openai", "config": {"api_key": "never-sent"}}
    place = {"path": str(folder / "qdrant"), "embedding_model_dims": width, "collection_name": "records"}
    memory = Memory.from_config(
        {
            "vector_store": {"provider": "qdrant", "config": place},
            "embedder": unused,
            "llm": unused,
            "history_db_path": str(folder / "history.db"),
        }
    )
    memory.embedding_model = _Encoder(encoder)
    memory.vector_store._bm25_encoder = Bm25()
    return memory


class _Encoder:
    """Our encoder under the names by which mem0 calls one."""

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector: list[float] = self._encoder.encode([text])[0].tolist()
        return vector

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        vectors: list[list[float]] = self._encoder.encode(list(texts)).tolist()
        return vectors


def _shared(plan: Plan, question: Question, run: str) -> dict[str, Any]:
    return {
        "benchmark": plan.benchmark,
        "conversation_id": question.conversation_id,
        "question_id": question.id,
        "system": "mem0",
        "system_version": version("mem0ai"),
        "run_id": run,
    }

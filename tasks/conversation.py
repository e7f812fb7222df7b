"""One conversation as composing needs it: records, vectors, pools, loaded once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from readers.types import Note, Pool, Query
from storage.lake import Lake
from storage.records import Question, Record
from storage.rows import from_frame
from storage.schemas import POOLS
from tasks import specs
from tasks.access import Library
from tasks.encoders import ENCODERS
from tasks.evidence import evidence_hash, line_digest
from tasks.index import embedded, haystack
from tasks.plan import Plan, StorePlan


@dataclass(frozen=True)
class Conversation:
    """Arrays align with `records`, in time order; `places`: record id → place.

    `resident`: question id → ids of what is shown before the records."""

    id: str
    records: list[Record]
    questions: dict[str, Question]
    pools: pl.DataFrame
    vectors: NDArray[np.float32]
    query_vectors: dict[str, NDArray[np.float32]]
    tokens: NDArray[np.int32]
    line_digests: dict[str, str]
    places: dict[str, int]
    library: Library
    seed: int
    resident: dict[str, list[str]]

    @classmethod
    def load(cls, plan: Plan, store: StorePlan, conversation_id: str) -> "Conversation":
        """Read one conversation's records, vectors and pools."""
        lake = Lake(plan.lake)
        frame = plan.record_frame(store, conversation_id)
        records = from_frame(Record, frame)
        questions = {question.id: question for question in plan.questions(conversation_id)}
        resident = plan.resident(store, conversation_id)
        queries = embedded(plan, store, [question.text for question in questions.values()])
        tokens = frame["tokens"].to_numpy().astype(np.int32)
        sessions = _codes([record.session_id for record in records])
        notes = [
            Note(record.id, record.text, record.speaker, int(session), place, seconds(record.said_at), int(count))
            for place, (record, session, count) in enumerate(zip(records, sessions, tokens, strict=True))
        ]
        return cls(
            id=conversation_id,
            records=records,
            questions=questions,
            pools=lake.table(POOLS, store.pool).read(where=pl.col("question_id").is_in(list(questions))),
            vectors=haystack(plan, store, frame) if records else np.zeros((0, queries.shape[1]), np.float32),
            query_vectors=dict(zip(questions, queries, strict=True)),
            tokens=tokens,
            line_digests={
                record.id: line_digest(record) for record in [*records, *chain.from_iterable(resident.values())]
            },
            places={record.id: place for place, record in enumerate(records)},
            library=Library(notes, specs.make(ENCODERS, store.encoder, "encoder").encode),
            seed=plan.seed,
            resident={question: [record.id for record in held] for question, held in resident.items()},
        )

    def queries(self, ids: set[str]) -> Iterator[tuple[Query, Pool]]:
        """Each question with its pool."""
        sessions = _codes([record.session_id for record in self.records])
        speakers = _codes([record.speaker for record in self.records])
        times = np.array([seconds(record.said_at) for record in self.records])
        for row in self.pools.iter_rows(named=True):
            if row["question_id"] not in ids:
                continue
            question = self.questions[row["question_id"]]
            at = np.array([self.places[id] for id in row["record_ids"]], np.intp)
            query = Query(
                question.id,
                question.text,
                self.query_vectors[question.id],
                seconds(question.asked_at),
                self.seed,
            )
            yield (
                query,
                Pool(
                    ids=tuple(row["record_ids"]),
                    native=np.asarray(row["native"], np.float64),
                    dense=np.asarray(row["dense"], np.float64),
                    lexical=np.asarray(row["lexical"], np.float64),
                    vectors=self.vectors[at],
                    tokens=self.tokens[at],
                    positions=at.astype(np.int32),
                    sessions=sessions[at],
                    speakers=speakers[at],
                    times=times[at],
                ),
            )

    def hash_of(self, question_id: str, ids: Sequence[str]) -> str:
        """The address of the evidence text of these records, whatever their order."""
        return evidence_hash(self._shown(question_id, ids), self.line_digests)

    def state(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The row of the states table behind a selection."""
        return {
            "question_id": row["question_id"],
            "evidence_hash": row["evidence_hash"],
            "record_ids": self._shown(row["question_id"], row["record_ids"]),
            "tokens": int(sum(self.tokens[self.places[id]] for id in row["record_ids"])),
        }

    def _shown(self, question_id: str, ids: Sequence[str]) -> list[str]:
        """What is resident, then the records oldest first."""
        return [*self.resident.get(question_id, ()), *sorted(ids, key=self.places.__getitem__)]


def seconds(time: datetime | None) -> float:
    """Seconds since the epoch of a local time, read as UTC on every machine; NaN where it is unknown."""
    return time.replace(tzinfo=UTC).timestamp() if time else float("nan")


def _codes(names: list[str]) -> NDArray[np.int32]:
    table = {name: code for code, name in enumerate(dict.fromkeys(names))}
    return np.array([table[name] for name in names], np.int32)

"""What a run will do, as addresses and printed forms that any worker can read."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import polars as pl

from storage.digests import digest
from storage.lake import Lake
from storage.records import Gold, Question, Record
from storage.rows import from_frame
from storage.schemas import GOLD, QUESTIONS, RECORDS
from tasks import specs
from tasks.answerers import ANSWERERS
from tasks.arms import Arm, arms
from tasks.encoders import ENCODERS
from tasks.judges import JUDGES
from tasks.pool import FUSIONS
from tasks.provenance import code
from tasks.sealed import OPEN, SEALED, StillSealed, Unsealing, opened
from tasks.writers import WRITERS


@dataclass(frozen=True)
class StorePlan:
    """One store with its index and pools. Every property is a content address of what it is made from.

    `conversations` bounds the index, all if empty; records, pools and selections do not depend on it.
    """

    name: str
    dataset: str
    writer: str
    encoder: str
    fusion: str
    size: int
    conversations: tuple[str, ...] = ()

    @cached_property
    def store(self) -> str:
        """The address of the records."""
        writer = specs.make(WRITERS, self.writer, "writer")
        return digest(
            {
                "dataset": self.dataset,
                "writer": [self.writer, specs.parameters(writer)],
                "code": code("tasks.writers", "tasks.store", "tasks.evidence"),
            }
        )

    @cached_property
    def encoding(self) -> str:
        """The address of the encoder: vectors are cached by it and their text."""
        encoder = specs.make(ENCODERS, self.encoder, "encoder")
        return digest({"encoder": encoder.identity(), "code": code("tasks.encoders")})

    @cached_property
    def index(self) -> str:
        """The address of the records with their vectors."""
        return digest({"store": self.store, "encoder": self.encoding, "conversations": list(self.conversations)})

    @cached_property
    def pool(self) -> str:
        """The address of the candidates."""
        fusion = specs.make(FUSIONS, self.fusion, "pool.fusion")
        return digest(
            {
                "store": self.store,
                "encoder": self.encoding,
                "fusion": [type(fusion).__name__, specs.parameters(fusion)],
                "size": self.size,
                "code": code("tasks.pool", "tasks.text"),
            }
        )

    def selections(self, seed: int) -> str:
        """The address of what readers select from the pools."""
        made = code("readers", "tasks.compose", "tasks.access", "tasks.arms", "tasks.oracle")
        return digest({"pool": self.pool, "seed": seed, "code": made})


@dataclass(frozen=True)
class Plan:
    """One run: which questions, stores, arms, answerer and judges. Holds no data, only names and addresses.

    `split`: `open` or `sealed`; `seal` is the address of the lake's sealed split of the benchmark, empty without one.
    A plan of the sealed split cannot be made without an `unsealing`: `StillSealed`. `declared`: JSON of what only the
    protocol knows and a freeze fixes.
    """

    lake: str
    benchmark: str
    dataset: str
    gold: str
    seed: int
    stores: tuple[StorePlan, ...]
    arm_forms: tuple[str, ...]
    budgets: tuple[str, ...]
    answerer: str
    judges: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    conversations: tuple[str, ...] = ()
    limit: int | None = None
    split: str = OPEN
    seal: str = ""
    unsealing: Unsealing | None = None
    declared: str = ""

    def __post_init__(self) -> None:
        if self.split != OPEN and self.unsealing is None:
            raise StillSealed(self.benchmark)

    @cached_property
    def arms(self) -> list[Arm]:
        """Every arm of the run, in the protocol's order."""
        return arms(self.arm_forms, self.budgets, [store.name for store in self.stores])

    def arms_of(self, store: StorePlan) -> list[Arm]:
        """The arms that read one store."""
        return [arm for arm in self.arms if arm.store == store.name]

    @property
    def answers(self) -> str:
        """The address of the answers: what was asked and who answered. Gold has no part in it."""
        return digest({"dataset": self.dataset, "answerer": self._part(ANSWERERS, self.answerer)})

    def verdicts(self, judge: str) -> str:
        """The address of one judge's verdicts."""
        return digest({"gold": self.gold, "judge": self._part(JUDGES, judge)})

    def parts(self) -> dict[str, Any]:
        """The answerer and the judges with all that changes their replies."""
        return {
            "answerer": self._part(ANSWERERS, self.answerer),
            "judges": {judge: self._part(JUDGES, judge) for judge in self.judges},
        }

    @staticmethod
    def _part(table: dict[str, type[Any]], text: str) -> list[Any]:
        """Name, parameters and whatever else the part says changes its replies."""
        part = specs.make(table, text, "part")
        return [part.name, specs.parameters(part), part.spec()]

    def scores(self, store: StorePlan) -> str:
        """The address of the evidence metrics of one store's states."""
        return digest({"gold": self.gold, "store": store.store, "code": code("tasks.metrics")})

    def questions(self, conversation_id: str | None = None) -> list[Question]:
        """The run's questions in benchmark order, of one conversation or of all.

        `limit` takes the first questions of each conversation in turn, so that few questions still span all of
        them.
        """
        asked = (
            _asked(self.lake, self.dataset, self.kinds, self.conversations, self.limit)
            if self.split == OPEN
            else _asked_sealed(self)
        )
        return [question for question in asked if conversation_id in (None, question.conversation_id)]

    def gold_of(self, conversation_id: str) -> dict[str, Gold]:
        """Question id → gold of one conversation. Only metrics, judges and the oracle may call this."""
        ids = [question.id for question in self.questions(conversation_id)]
        frame = self.gold_frame().filter(pl.col("question_id").is_in(ids))
        return {gold.question_id: gold for gold in from_frame(Gold, frame)}

    def question_frame(self) -> pl.DataFrame:
        """Every question of the split as rows of the questions table; a sealed split's are decrypted in memory."""
        if self.split == SEALED:
            return opened(self).questions
        return Lake(self.lake).table(QUESTIONS, self.dataset).read()

    def gold_frame(self) -> pl.DataFrame:
        """Every gold of the split as rows of the gold table, for metrics, judges, the oracle and reports alone."""
        if self.split == SEALED:
            return opened(self).gold
        return Lake(self.lake).table(GOLD, self.gold).read()

    def conversation_ids(self) -> list[str]:
        """The conversations of the run's questions, in benchmark order."""
        return list(dict.fromkeys(question.conversation_id for question in self.questions()))

    def records(self, store: StorePlan, conversation_id: str) -> list[Record]:
        """One conversation's records in time order."""
        return from_frame(Record, self.record_frame(store, conversation_id))

    def record_frame(self, store: StorePlan, conversation_id: str) -> pl.DataFrame:
        """One conversation's rows of the records table in time order."""
        table = Lake(self.lake).table(RECORDS, store.store)
        return table.read(where=pl.col("conversation_id") == conversation_id).sort("position")


@lru_cache(maxsize=8)
def _asked(
    lake: str, dataset: str, kinds: tuple[str, ...], conversations: tuple[str, ...], limit: int | None
) -> tuple[Question, ...]:
    """A run's questions in benchmark order, kept in memory: `dataset` is the address of their content."""
    return _chosen(Lake(lake).table(QUESTIONS, dataset).read(), kinds, conversations, limit)


@lru_cache(maxsize=8)
def _asked_sealed(plan: Plan) -> tuple[Question, ...]:
    """The same of a sealed split, as far as the plan may read it."""
    return _chosen(plan.question_frame(), plan.kinds, plan.conversations, plan.limit)


def _chosen(
    frame: pl.DataFrame, kinds: tuple[str, ...], conversations: tuple[str, ...], limit: int | None
) -> tuple[Question, ...]:
    frame = frame.sort("place")
    if kinds:
        frame = frame.filter(pl.col("kind").is_in(kinds))
    if conversations:
        frame = frame.filter(pl.col("conversation_id").is_in(conversations))
    if limit is not None:
        turn = pl.int_range(pl.len()).over("conversation_id")
        frame = frame.with_columns(turn=turn).sort("turn", "place").head(limit).sort("place")
    return tuple(from_frame(Question, frame))

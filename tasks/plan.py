"""What a run will do, as addresses and printed forms that any worker can read."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import polars as pl

from storage.digests import digest
from storage.lake import Lake
from storage.records import Gold, Question, Record
from storage.rows import from_frame
from storage.schemas import GOLD, QUESTIONS, RECORDS, VERDICTS
from tasks import specs
from tasks.answerers import ANSWERERS
from tasks.arms import Arm, arms
from tasks.asking import Asking
from tasks.encoders import ENCODERS
from tasks.judges import JUDGES
from tasks.llm.model import Model
from tasks.pool import FUSIONS
from tasks.provenance import code
from tasks.sufficiency import SUFFICIENCY_JUDGES
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
    models: tuple[Model, ...] = ()

    @cached_property
    def store(self) -> str:
        """The address of the records."""
        writer = specs.make(WRITERS, self.writer, "writer")
        said = {
            "dataset": self.dataset,
            "writer": [type(writer).__name__, _parameters(writer, Asking("", self.models))],
            "code": code("tasks.writers", "tasks.store", "tasks.evidence"),
        }
        if hasattr(writer, "write_all"):
            said |= {"spec": writer.spec(), "encoder": self.encoding}
        return digest(said)

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
                "code": code("tasks.pool", "tasks.candidates", "tasks.mem0", "tasks.entities", "tasks.text"),
            }
        )

    def selections(self, seed: int) -> str:
        """The address of what readers select from the pools."""
        made = code("readers", "tasks.compose", "tasks.access", "tasks.arms", "tasks.oracle")
        return digest({"pool": self.pool, "seed": seed, "code": made})


@dataclass(frozen=True)
class Plan:
    """One run: which questions, stores, arms, answerer and judges. Holds no data, only names and addresses."""

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
    panel: tuple[str, ...] = ()
    adjudicator: str = ""
    models: tuple[Model, ...] = ()

    def model(self, name: str) -> Model:
        """The protocol's model of that name. Raises `InputError` where there is none."""
        return self.asking.model(name)

    @property
    def asking(self) -> Asking:
        """What a part that asks a model is handed."""
        return Asking(self.lake, self.models)

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
        return digest({"gold": self.gold, "judge": self._part(JUDGES, judge), "columns": VERDICTS.schema.names})

    @property
    def sufficiency(self) -> str:
        """The address of what the panel of sufficiency says."""
        panel = [self._part(SUFFICIENCY_JUDGES, judge) for judge in (*self.panel, *filter(None, [self.adjudicator]))]
        made = code("tasks.adjudicate")
        return digest({"gold": self.gold, "panel": panel, "adjudicated": bool(self.adjudicator), "code": made})

    def _part(self, table: dict[str, type[Any]], text: str) -> list[Any]:
        """Name, parameters and whatever else the part says changes its replies; of a model what changes them."""
        part = specs.make(table, text, "part")
        return [part.name, _parameters(part, self.asking), part.spec()]

    def scores(self, store: StorePlan) -> str:
        """The address of the evidence metrics of one store's states."""
        return digest({"gold": self.gold, "store": store.store, "code": code("tasks.metrics")})

    def questions(self, conversation_id: str | None = None) -> list[Question]:
        """The run's questions in benchmark order, of one conversation or of all.

        `limit` takes the first questions of each conversation in turn, so that few questions still span all of
        them.
        """
        asked = _asked(self.lake, self.dataset, self.kinds, self.conversations, self.limit)
        return [question for question in asked if conversation_id in (None, question.conversation_id)]

    def gold_of(self, conversation_id: str) -> dict[str, Gold]:
        """Question id → gold of one conversation. Only metrics, judges and the oracle may call this."""
        ids = [question.id for question in self.questions(conversation_id)]
        frame = Lake(self.lake).table(GOLD, self.gold).read(where=pl.col("question_id").is_in(ids))
        return {gold.question_id: gold for gold in from_frame(Gold, frame)}

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


def _parameters(part: Any, asking: Asking) -> dict[str, Any]:
    """All parameters of a part; of a model what changes its replies, whatever it is called."""
    said = specs.parameters(part)
    if isinstance(said.get("model"), str):
        said["model"] = asking.model(said["model"]).identity()
    return said


@lru_cache(maxsize=8)
def _asked(
    lake: str, dataset: str, kinds: tuple[str, ...], conversations: tuple[str, ...], limit: int | None
) -> tuple[Question, ...]:
    """A run's questions in benchmark order, kept in memory: `dataset` is the address of their content."""
    frame = Lake(lake).table(QUESTIONS, dataset).read().sort("place")
    if kinds:
        frame = frame.filter(pl.col("kind").is_in(kinds))
    if conversations:
        frame = frame.filter(pl.col("conversation_id").is_in(conversations))
    if limit is not None:
        turn = pl.int_range(pl.len()).over("conversation_id")
        frame = frame.with_columns(turn=turn).sort("turn", "place").head(limit).sort("place")
    return tuple(from_frame(Question, frame))

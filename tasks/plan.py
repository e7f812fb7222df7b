"""What a run will do, as addresses and printed forms that any worker can read."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any

import polars as pl

from storage import holdings
from storage.digests import digest
from storage.lake import Lake
from storage.records import Gold, Question, Record
from storage.rows import from_frame
from storage.schemas import GOLD, QUESTIONS, RESIDENT, VERDICTS
from tasks import specs
from tasks.answerers import ANSWERERS
from tasks.arms import Arm, arms
from tasks.asking import Asking
from tasks.encoders import ENCODERS
from tasks.encoders.minilm import count_tokens
from tasks.evidence import shown_date
from tasks.judges import JUDGES
from tasks.llm.model import Model
from tasks.pool import FUSIONS
from tasks.prompts import load
from tasks.provenance import code
from tasks.sealed import OPEN, SEALED, StillSealed, Unsealing, opened
from tasks.sufficiency import SUFFICIENCY_JUDGES
from tasks.writers import WRITERS

Conversations = str | Collection[str]
"""The id of one conversation, or of several."""
_ASKING = ("tasks.consult", "tasks.model_access", "tasks.llm.rerank")


@dataclass(frozen=True)
class StorePlan:
    """One store with its index and pools. Every property is a content address of what it is made from.

    `conversations` bounds the index, all if empty; records, pools and selections do not depend on it.
    `learned_from`: the address of the gold, questions and folds that learning arms are fitted on, empty without such
    arms; then selections, which depend on it, are the same whatever the gold says. `pools`: where the pools lie that
    another system made, with the address of their content; writer and fusion then have no part.
    """

    name: str
    dataset: str
    writer: str
    encoder: str
    fusion: str
    size: int
    conversations: tuple[str, ...] = ()
    models: tuple[Model, ...] = ()
    learned_from: str = ""
    pools: str = ""
    pools_digest: str = ""

    @property
    def own_vectors(self) -> bool:
        """Whether the vectors are those that the other system gave."""
        return self.encoder == "imported"

    @cached_property
    def store(self) -> str:
        """The address of the records."""
        if self.pools:
            made = code("tasks.imported.bringing", "tasks.imported.checks", "tasks.evidence")
            return digest({"dataset": self.dataset, "pools": self.pools_digest, "code": made})
        writer = specs.make(WRITERS, self.writer, "writer")
        said = {
            "dataset": self.dataset,
            "writer": [type(writer).__name__, _parameters(writer, Asking("", self.models))],
            "code": code("tasks.writers", "tasks.store", "tasks.extraction", "tasks.evidence"),
        }
        if hasattr(writer, "write_all"):
            said |= {"spec": writer.spec(), "encoder": self.encoding}
        return digest(said)

    @cached_property
    def encoding(self) -> str:
        """The address of the encoder: vectors are cached by it and their text."""
        encoder = specs.make(ENCODERS, self.encoder, "encoder")
        given = {"pools": self.pools_digest, "dataset": self.dataset} if self.own_vectors else {}
        return digest({"encoder": encoder.identity(), "code": code("tasks.encoders"), **given})

    @cached_property
    def index(self) -> str:
        """The address of the records with their vectors."""
        return digest({"store": self.store, "encoder": self.encoding, "conversations": list(self.conversations)})

    @cached_property
    def pool(self) -> str:
        """The address of the candidates."""
        if self.pools:
            made = code("tasks.imported.pools", "tasks.pool", "tasks.text")
            return digest({"store": self.store, "encoder": self.encoding, "size": self.size, "code": made})
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
        """The address of what readers without a model select from the pools."""
        made = code("readers", "tasks.compose", "tasks.access", "tasks.arms", "tasks.oracle")
        learned = {"learned from": self.learned_from} if self.learned_from else {}
        return digest({"pool": self.pool, "seed": seed, "code": made, **learned})


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
    named: tuple[str, ...] = ()
    folds: tuple[tuple[str, ...], ...] = ()
    limit: int | None = None
    panel: tuple[str, ...] = ()
    adjudicator: str = ""
    models: tuple[Model, ...] = ()
    split: str = OPEN
    seal: str = ""
    unsealing: Unsealing | None = None
    declared: str = ""

    def __post_init__(self) -> None:
        if self.split != OPEN and self.unsealing is None:
            raise StillSealed(self.benchmark)

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
        named = [model.name for model in self.models]
        return arms(self.arm_forms, self.budgets, [store.name for store in self.stores], named)

    def arms_of(self, store: StorePlan) -> list[Arm]:
        """The arms that read one store."""
        return [arm for arm in self.arms if arm.store == store.name]

    def selections(self, store: StorePlan, arm: Arm) -> str:
        """The address of what one arm selects from a store's pools.

        With a model it depends on what changes the model's replies and on the prompts; without one on neither.
        """
        held = store.selections(self.seed)
        if arm.model is None:
            return held
        prompts = {name: load("readers", name).digest for name in arm.prompts}
        asks = {"model": self.model(arm.model).identity(), "prompts": prompts, "code": code(*_ASKING)}
        return digest({"selections": held, **asks})

    def selection_tables(self, store: StorePlan) -> dict[str, list[Arm]]:
        """Where the selections of a store's arms lie: address → its arms."""
        tables: dict[str, list[Arm]] = {store.selections(self.seed): []}
        for arm in self.arms_of(store):
            tables.setdefault(self.selections(store, arm), []).append(arm)
        return tables

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

    def parts(self) -> dict[str, Any]:
        """The answerer, the judges and the panel of sufficiency with all that changes their replies."""
        return {
            "answerer": self._part(ANSWERERS, self.answerer),
            "judges": {judge: self._part(JUDGES, judge) for judge in self.judges},
            "sufficiency": {
                "panel": {judge: self._part(SUFFICIENCY_JUDGES, judge) for judge in self.panel},
                "adjudicator": self._part(SUFFICIENCY_JUDGES, self.adjudicator) if self.adjudicator else None,
            },
        }

    def _part(self, table: dict[str, type[Any]], text: str) -> list[Any]:
        """Name, parameters and whatever else the part says changes its replies; of a model what changes them."""
        part = specs.make(table, text, "part")
        return [part.name, _parameters(part, self.asking), part.spec()]

    def scores(self, store: StorePlan) -> str:
        """The address of the evidence metrics of one store's states."""
        return digest({"gold": self.gold, "store": store.store, "code": code("tasks.metrics")})

    def rankings(self, store: StorePlan) -> str:
        """The address of the rank metrics of one store's selections."""
        return digest({"scores": self.scores(store), "selections": list(self.selection_tables(store))})

    def questions(self, conversations: Conversations | None = None) -> list[Question]:
        """The run's questions in benchmark order, of one conversation, of some or of all: those `named`, if any are.

        `limit` takes the first questions of each conversation in turn, so that few questions still span all of
        them.
        """
        asked = (
            _asked(self.lake, self.dataset, self.kinds, self.conversations, self.named, self.limit)
            if self.split == OPEN
            else _asked_sealed(self)
        )
        if conversations is None:
            return [question for held in asked.values() for question in held]
        return [question for id in _several(conversations) for question in asked.get(id, ())]

    def gold_of(self, conversations: Conversations) -> dict[str, Gold]:
        """Question id → gold of one conversation or of some. Only metrics, judges and the oracle may call this."""
        chosen = pl.col("question_id").is_in([question.id for question in self.questions(conversations)])
        frame = (
            Lake(self.lake).table(GOLD, self.gold).read(where=chosen)
            if self.split == OPEN
            else self.gold_frame().filter(chosen)
        )
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

    def records(self, store: StorePlan, conversations: Conversations) -> list[Record]:
        """The records of one conversation or of some, each conversation's in time order."""
        return from_frame(Record, self.record_frame(store, conversations))

    def record_frame(self, store: StorePlan, conversations: Conversations) -> pl.DataFrame:
        """The columns of `Record`, with `tokens` of the record as it is shown and the `unit` that it is shared by.

        Another system's records have no unit, but `source_session_ids`.
        """
        made = holdings.imported if store.pools else holdings.records
        frame = made(Lake(self.lake), store.store, _several(conversations))
        dates = frame["said_at"].unique()
        shown = pl.DataFrame({"said_at": dates, "more": [_date_tokens(date) for date in dates]})
        more = frame.select("said_at").join(shown, on="said_at", how="left", nulls_equal=True, maintain_order="left")
        return frame.with_columns(tokens=pl.col("tokens") + more["more"].cast(pl.Int32))

    def turns(self, conversations: Conversations) -> pl.DataFrame:
        """`id, conversation_id, session_id, speaker` of the turns of one conversation or of some."""
        return holdings.turns(Lake(self.lake), self.dataset, _several(conversations))

    def resident(self, store: StorePlan, conversations: Conversations) -> dict[str, list[Record]]:
        """Question id → what is shown before the records, whatever an arm selects."""
        if not store.pools:
            return {}
        chosen = pl.col("conversation_id").is_in(_several(conversations))
        frame = Lake(self.lake).table(RESIDENT, store.store).read(where=chosen)
        shown: dict[str, list[Record]] = {}
        for row in frame.sort("place").iter_rows(named=True):
            record = Record(row["id"], row["conversation_id"], "", row["place"], "", row["text"], None, ())
            for question in self.questions(row["conversation_id"]):
                if row["question_id"] in (None, question.id):
                    shown.setdefault(question.id, []).append(record)
        return shown

    def shown(self, store: StorePlan, conversations: Conversations) -> dict[str, Record]:
        """Id → record, of all that a state of the conversations may show."""
        resident = [record for held in self.resident(store, conversations).values() for record in held]
        return {record.id: record for record in [*resident, *self.records(store, conversations)]}


def _several(conversations: Conversations) -> tuple[str, ...]:
    return (conversations,) if isinstance(conversations, str) else tuple(conversations)


@lru_cache(maxsize=1 << 16)
def _date_tokens(said_at: datetime | None) -> int:
    """Tokens that the shown form of a record has beyond its text: WordPiece splits at white space, so they add up."""
    return count_tokens([shown_date(said_at)])[0] if said_at else 0


def _parameters(part: Any, asking: Asking) -> dict[str, Any]:
    """All parameters of a part; of a model what changes its replies, whatever it is called."""
    said = specs.parameters(part)
    if isinstance(said.get("model"), str):
        said["model"] = asking.model(said["model"]).identity()
    return said


@lru_cache(maxsize=8)
def _asked(
    lake: str,
    dataset: str,
    kinds: tuple[str, ...],
    conversations: tuple[str, ...],
    named: tuple[str, ...],
    limit: int | None,
) -> dict[str, list[Question]]:
    """Conversation → its questions, in benchmark order, kept in memory: `dataset` is the address of their content."""
    return _chosen(Lake(lake).table(QUESTIONS, dataset).read(), kinds, conversations, named, limit)


@lru_cache(maxsize=8)
def _asked_sealed(plan: Plan) -> dict[str, list[Question]]:
    """The same of a sealed split, as far as the plan may read it."""
    return _chosen(plan.question_frame(), plan.kinds, plan.conversations, plan.named, plan.limit)


def _chosen(
    frame: pl.DataFrame,
    kinds: tuple[str, ...],
    conversations: tuple[str, ...],
    named: tuple[str, ...],
    limit: int | None,
) -> dict[str, list[Question]]:
    frame = frame.sort("place")
    if kinds:
        frame = frame.filter(pl.col("kind").is_in(kinds))
    if conversations:
        frame = frame.filter(pl.col("conversation_id").is_in(conversations))
    if named:
        frame = frame.filter(pl.col("id").is_in(named))
    if limit is not None:
        turn = pl.int_range(pl.len()).over("conversation_id")
        frame = frame.with_columns(turn=turn).sort("turn", "place").head(limit).sort("place")
    asked: dict[str, list[Question]] = {}
    for question in from_frame(Question, frame):
        asked.setdefault(question.conversation_id, []).append(question)
    return asked

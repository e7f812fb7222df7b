"""The protocol: one TOML file that says all a run does, validated, with a digest."""

import difflib
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from flows.misfit import misfit
from reports.results import EVIDENCE_METRICS
from storage.digests import digest
from storage.errors import InputError
from storage.pool_files import pool_digest
from tasks import specs
from tasks.answerers import ANSWERERS
from tasks.arms import arms
from tasks.encoders import ENCODERS
from tasks.judges import JUDGES
from tasks.llm.local import LOCAL, NAME
from tasks.llm.model import KEY_VARIABLE, Model
from tasks.plan import Plan, StorePlan
from tasks.pool import FUSIONS
from tasks.sealed import Unsealing
from tasks.sources import SOURCES
from tasks.sufficiency import SUFFICIENCY_JUDGES
from tasks.writers import WRITERS

FAILURES = "strict: an answer that was not judged is wrong; judged: it is left out"
"""How cells without a verdict count, in the words that a freeze fixes."""

SHIPPED = Path(__file__).parent / "protocols"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Data(_Part):
    """Which benchmark file, and which of its questions."""

    benchmark: str = Field(description="format of the file: a source's name")
    path: str = Field("", description="file, folder or the name of bundled data; --data sets it")
    sha256: str = Field("", description="expected SHA-256 of the file; empty accepts any")
    split: str = Field("open", pattern="^(open|sealed)$", description="which split is run; --split sets it")
    kinds: tuple[str, ...] = Field((), description="question kinds to run; empty means all")
    apart: tuple[str, ...] = Field((), description="kinds with rows of their own that stay out of the overall row")
    conversations: tuple[str, ...] = Field((), description="conversations to run; empty means all")
    questions: tuple[str, ...] = Field((), description="ids of the questions to run; empty means all")
    wrong_labels: str = Field("", description="JSON file of labels known to be wrong, for the report; empty: none")
    folds: tuple[tuple[str, ...], ...] = Field(
        (),
        description="conversations reported together, whose gold none of them learns from; the rest is pooled alone",
    )
    limit: int | None = Field(None, ge=1, description="run this many questions, taken from all conversations in turn")

    @field_validator("benchmark")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in SOURCES:
            raise ValueError(f"one of {', '.join(SOURCES)} expected, {name!r} found")
        return name

    @field_validator("questions", "folds")
    @classmethod
    def _once(cls, named: tuple[Any, ...]) -> tuple[Any, ...]:
        items = [item for each in named for item in ([each] if isinstance(each, str) else each)]
        twice = next((item for item in items if items.count(item) > 1), None)
        if twice is not None:
            raise ValueError(f"each once expected, {twice!r} found twice")
        return named


class Pool(_Part):
    """The candidates of a question."""

    size: int = Field(200, ge=1, description="candidates a question")
    fusion: str = Field("minmax", description="how dense and BM25 scores become one")


class Store(_Part):
    """One memory store with its index and pool."""

    name: str = Field("turns", pattern=r"^[\w-]+$")
    writer: str = "turns"
    encoder: str = "minilm"
    pool: Pool = Pool()
    pools: str = Field("", description="pools of another system: a Parquet file or its folder; no writer, no fusion")

    @model_validator(mode="after")
    def _parts_exist(self) -> "Store":
        specs.make(WRITERS, self.writer, "writer")
        specs.make(ENCODERS, self.encoder, "encoder")
        specs.make(FUSIONS, self.pool.fusion, "pool.fusion")
        if self.pools and self.writer != "turns":
            raise ValueError("pools: no writer expected beside pools of another system, one found")
        if self.encoder == "imported" and not self.pools:
            raise ValueError("encoder: imported expected only beside pools of another system; name them with pools")
        return self


class Sufficiency(_Part):
    """Who judges whether evidence suffices."""

    judges: tuple[str, ...] = Field((), description="a panel, usually of two; empty: sufficiency is not judged")
    adjudicator: str = Field("", description="decides where the panel disagrees; empty: such a state is uncertain")

    @model_validator(mode="after")
    def _disagreement_can_be(self) -> "Sufficiency":
        if self.adjudicator and len(self.judges) < 2:
            raise ValueError("two judges or more expected beside an adjudicator, fewer found")
        return self


class ModelSpec(_Part):
    """A model at an OpenAI-compatible endpoint. Its key is named, never said."""

    model: str = Field(min_length=1, description="name sent to the endpoint")
    base_url: str = Field(
        "",
        pattern=rf"^(https?://\S+|{LOCAL})?$",
        description=f"empty: OPENAI_BASE_URL or the public API; {LOCAL}: in this process",
    )
    temperature: float | None = Field(None, ge=0, description="left out of the request where not given, as are all")
    top_p: float | None = Field(None, gt=0, le=1)
    max_tokens: int | None = Field(None, ge=1)
    seed: int | None = None
    extra: dict[str, Any] = Field({}, description="merged into the request")
    key_variable: str = Field(
        KEY_VARIABLE,
        pattern=r"^([A-Za-z_]\w*|prefect:[\w-]+)$",
        description="where the key is: prefect:NAME is a block",
    )
    concurrency: int = Field(8, ge=1, le=1000, description="calls at a time to the endpoint")
    requests_per_minute: int | None = Field(None, ge=1)
    tokens_per_minute: int | None = Field(None, ge=1)
    timeout_s: float = Field(120.0, gt=0, description="seconds until a whole reply must be there")
    batch: bool = Field(False, description="through the Batch API: half the price, within a day")
    prompt_price: float | None = Field(None, ge=0, description="US dollars a million tokens")
    completion_price: float | None = Field(None, ge=0, description="US dollars a million tokens")

    @field_validator("extra")
    @classmethod
    def _new(cls, extra: dict[str, Any]) -> dict[str, Any]:
        taken = sorted(_OWN_PARAMETERS & set(extra))
        if taken:
            raise ValueError(f"parameters of its own expected, {taken[0]!r} found; it is set elsewhere")
        return extra

    @model_validator(mode="after")
    def _prices_together(self) -> "ModelSpec":
        if (self.prompt_price is None) != (self.completion_price is None):
            raise ValueError("prompt_price and completion_price expected together, one found")
        return self

    @model_validator(mode="after")
    def _is_here(self) -> "ModelSpec":
        if self.base_url == LOCAL and (self.model != NAME or self.batch):
            raise ValueError(f"model {NAME} without batch expected where base_url is {LOCAL}, {self.model!r} found")
        return self


_OWN_PARAMETERS = {"model", "messages", "temperature", "top_p", "max_tokens", "seed", "n", "stream"}


class Statistics(_Part):
    """How uncertainty is estimated."""

    samples: int = Field(10_000, ge=100, description="resamples of bootstrap and sign-flip tests")
    seed: int | None = Field(None, ge=0, description="where resamples begin; the protocol's own seed if none is given")


class Comparison(_Part):
    """One comparison that was decided on before the data were looked at."""

    arm: str = Field(description="printed form of an arm of the protocol: mem_pursuit@k10")
    against: str = Field(description="the arm that it is compared with: hybrid@k10")
    metric: str = Field("complete_evidence", description="an evidence metric, or a judge's name")


class Report(_Part):
    """What the report may show."""

    mix_budgets: bool = Field(False, description="also rank arms of all budgets in one table")


class Protocol(_Part):
    """All that a run depends on. Unknown keys are refused."""

    name: str = Field(pattern=r"^[\w.-]+$")
    title: str = ""
    seed: int = Field(20261129, ge=0)
    data: Data
    stores: tuple[Store, ...] = Field((Store(),), min_length=1)
    arms: tuple[str, ...] = Field(min_length=1, description="reader(parameter=value)@budget:store")
    budgets: tuple[str, ...] = Field((), description="budgets of the arms that name none: k10, t2000, all")
    answerer: str = "extractive"
    judges: tuple[str, ...] = Field(("stem_f1", "lexical_match"), description="without one nothing is answered")
    sufficiency: Sufficiency = Sufficiency()
    models: dict[Annotated[str, Field(pattern=r"^[\w.-]+$")], ModelSpec] = Field({}, description="models by name")
    statistics: Statistics = Statistics()
    comparisons: tuple[Comparison, ...] = Field((), description="declared before a freeze, the primary one first")
    report: Report = Report()

    @model_validator(mode="after")
    def _parts_exist(self) -> "Protocol":
        names = [store.name for store in self.stores]
        if len(set(names)) < len(names):
            raise ValueError(f"stores: different names expected, {', '.join(names)} found")
        named = arms(self.arms, self.budgets, names, tuple(self.models))
        parts = [specs.make(WRITERS, store.writer, "writer") for store in self.stores]
        parts += [specs.make(ANSWERERS, self.answerer, "answerer")]
        parts += [specs.make(JUDGES, judge, "judge") for judge in self.judges]
        panel = (*self.sufficiency.judges, *filter(None, [self.sufficiency.adjudicator]))
        parts += [specs.make(SUFFICIENCY_JUDGES, judge, "sufficiency judge") for judge in panel]
        for part in parts:
            name = getattr(part, "model", None)
            if name is not None and name not in self.models:
                raise ValueError(f"models: a table [models.{name}] expected, as {part.name} names it; none found")
        known = {str(arm) for arm in named}
        for name in [name for each in self.comparisons for name in (each.arm, each.against)]:
            if name not in known:
                raise ValueError(f"comparisons: an arm of the protocol such as {min(known)} expected, {name!r} found")
        measures = [*EVIDENCE_METRICS, *self.judges]
        for metric in [each.metric for each in self.comparisons]:
            if metric not in measures:
                raise ValueError(f"comparisons: one of {', '.join(measures)} expected, metric {metric!r} found")
        return self

    @property
    def resampling_seed(self) -> int:
        """Where resamples begin."""
        return self.seed if self.statistics.seed is None else self.statistics.seed

    @property
    def digest(self) -> str:
        """The address of everything the file says but where the data lies and how models are reached."""
        said = self._said()
        said["data"].pop("path")
        said["data"].pop("wrong_labels")
        return digest(said)

    @property
    def declared(self) -> dict[str, Any]:
        """What a freeze fixes beside the plan: the same for every split of the protocol."""
        said = self._said()
        comparisons = said["comparisons"]
        said["data"] = {key: value for key, value in said["data"].items() if key not in ("path", "split", "sha256")}
        return {
            "protocol": digest(said),
            "statistics": {**said["statistics"], "seed": self.resampling_seed},
            "failure policy": FAILURES,
            "denominators": {"kinds": list(self.data.kinds), "apart": list(self.data.apart)},
            "primary comparison": comparisons[0] if comparisons else None,
            "comparisons": comparisons,
        }

    def _said(self) -> dict[str, Any]:
        """What the file says, with what pools hold and what changes a model's replies in place of how they are had."""
        said = self.model_dump(mode="json")
        for store in said["stores"]:
            if place := store.pop("pools"):
                store["pools"] = pool_digest(place)
        said["models"] = {model.name: model.identity() for model in self.named_models}
        return said

    @property
    def named_models(self) -> tuple[Model, ...]:
        """The models under their names."""
        return tuple(Model(name=name, **dict(said)) for name, said in self.models.items())

    def plan(self, lake: str, dataset: str, gold: str, *, seal: str = "", unsealing: Unsealing | None = None) -> Plan:
        """The addresses that a run of this protocol over an ingested dataset reads and writes.

        Raises `StillSealed` for the sealed split without an unsealing.
        """
        learned = {
            arm.store
            for arm in arms(self.arms, self.budgets, [store.name for store in self.stores], self.models)
            if arm.learns
        }
        chosen = [list(self.data.kinds), list(self.data.conversations), list(self.data.questions), self.data.limit]
        folds = {"folds": [list(fold) for fold in self.data.folds]} if self.data.folds else {}
        learned_from = digest({"gold": gold, "questions": chosen, **folds})
        return Plan(
            lake=lake,
            benchmark=self.data.benchmark,
            dataset=dataset,
            gold=gold,
            seed=self.seed,
            stores=tuple(
                StorePlan(
                    name=store.name,
                    dataset=dataset,
                    writer=store.writer,
                    encoder=store.encoder,
                    fusion=store.pool.fusion,
                    size=store.pool.size,
                    conversations=self.data.conversations,
                    pools=store.pools,
                    pools_digest=pool_digest(store.pools) if store.pools else "",
                    models=self.named_models,
                    learned_from=learned_from if store.name in learned else "",
                )
                for store in self.stores
            ),
            arm_forms=self.arms,
            budgets=self.budgets,
            answerer=self.answerer,
            judges=self.judges,
            kinds=self.data.kinds,
            conversations=self.data.conversations,
            named=self.data.questions,
            folds=self.data.folds,
            limit=self.data.limit,
            split=self.data.split,
            seal=seal,
            unsealing=unsealing,
            declared=json.dumps(self.declared, sort_keys=True),
            panel=self.sufficiency.judges,
            adjudicator=self.sufficiency.adjudicator,
            models=self.named_models,
        )


def load(name: str, changes: dict[str, Any] | None = None) -> Protocol:
    """The protocol in the file `name`, or shipped under that bare name, with `changes` (dotted key → value) made.

    A change of arms or budgets takes the file's comparisons with it: they were declared of the file's own arms.
    Raises `InputError` for a missing or malformed file, an unknown key, or a value that does not fit.
    """
    path = Path(name)
    if not path.is_file():
        path = SHIPPED / f"{name}.toml"
    if not path.is_file():
        close = difflib.get_close_matches(path.stem, shipped(), 1)
        near = f" (did you mean {close[0]}?)" if close else ""
        raise InputError(f"protocol: a TOML file or one of {', '.join(shipped())}{near} expected, {name!r} found")
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"protocol {path}: TOML expected, {error} found") from error
    if any(key.partition(".")[0] in ("arms", "budgets") for key in changes or ()):
        said.pop("comparisons", None)
    for key, value in (changes or {}).items():
        _change(said, key, value)
    try:
        return Protocol.model_validate(said)
    except ValidationError as error:
        raise InputError(f"protocol {path}: {misfit(error, Protocol)}") from error


def with_judges(protocol: Protocol, judges: Sequence[str]) -> Protocol:
    """`protocol` with further judges, each once. Raises `InputError` for one that it cannot have."""
    said = protocol.model_dump() | {"judges": tuple(dict.fromkeys((*protocol.judges, *judges)))}
    try:
        return Protocol.model_validate(said)
    except ValidationError as error:
        raise InputError(misfit(error, Protocol)) from error


def shipped() -> list[str]:
    """The bare names of the shipped protocols."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def setting(text: str) -> tuple[str, Any]:
    """`key=value` of --set: the value is TOML, and a bare word is itself. Raises `InputError` without a `=`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f"--set: key=value expected, {text!r} found")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value


def _change(said: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key; a number steps into a list."""
    *parents, last = key.split(".")
    place: Any = said
    try:
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if isinstance(place, list):
            place[int(last)] = value
        else:
            place[last] = value
    except (ValueError, IndexError, TypeError, AttributeError) as error:
        raise InputError(f"--set {key}: a key of the protocol expected, stores counted from 0: {error}") from error

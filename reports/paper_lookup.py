"""Where does a run hold what a cell of a published table asks for?"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from reports.coordinates import ABSENT, METRICS, STAND_FOR, Coordinates
from reports.intervals import Floats, Integers
from reports.published import FIRST_SET
from reports.results import Arm, Results

NOT_RUN = "this arm was not run"
COUNT = "how many questions, no result: no difference is taken"
BENCH = {"pools": "LoCoMo", "d": 1536}


@dataclass(frozen=True)
class Ran:
    """A run with what `Results` does not hold.

    `sufficiency`: `arm, question_id: String`, `sufficient: Float64?` (uncertain or not judged is null). `judge`: the
    verdicts' first judge that asks a model, `panel` the sufficiency judges where they ask one, empty where none does.
    `answerer`: its printed form with its model's name. `encoders`: store → encoder. `stores`: store → how it is made.
    `models`: alias → model. `bench`: what `suffice bench readers --json` printed; `pursuit`: numbers.csv of `suffice
    analyse pursuit`.
    """

    results: Results
    sufficiency: pl.DataFrame
    judge: str
    panel: str
    answerer: str
    offline_answers: bool
    encoders: Mapping[str, str]
    stores: Mapping[str, str] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    bench: Mapping[str, Any] | None = None
    pursuit: pl.DataFrame | None = None


class Values(NamedTuple):
    """A cell's values, one for each question of its group, NaN where undefined; `rows` are the group's places."""

    values: Floats
    rows: Integers
    arm: str


class Held(NamedTuple):
    """A number that needs no more arithmetic, or `why` there is none; not `comparable` where it is no result."""

    ours: float | None = None
    n: int = 0
    why: str = ""
    arm: str = ""
    comparable: bool = True


class Lookup:
    """Where a run holds what coordinates ask for."""

    def __init__(self, ran: Ran) -> None:
        self.ran, self.results = ran, ran.results
        self.ids = list(ran.results.questions["question_id"])
        self.columns: dict[tuple[str, str], Floats] = {}

    def find(self, at: Coordinates) -> Values | Held:
        """The values of a cell, or a cell that is finished: with a number from elsewhere, or with why there is none."""
        source = METRICS[at.metric].source
        if source == "bench":
            return self._benched(at)
        read = self.results.reads
        if at.benchmark and at.benchmark != read:
            return Held(why=f"this run reads {read}, not {at.benchmark}")
        if source == "pursuit":
            return self._pursued(at)
        rows = self._rows(at)
        if source == "count":
            return Held(float(len(rows)), n=len(rows), why=COUNT, comparable=False)
        if not len(rows):
            where = " ".join(filter(None, [at.conversation, *at.kinds]))
            return Held(why=f"no {where} questions in this run")
        return self._measured(at, source, rows)

    def _measured(self, at: Coordinates, source: str, rows: Integers) -> Values | Held:
        lacking = self._lacking(at, source)
        arms = [self._arm(wanted, at) for wanted in at.arms]
        absent = next((own for own in arms if isinstance(own, str)), lacking)
        if absent:
            return Held(why=absent)
        columns = [self._column(own, at) for own in arms if isinstance(own, Arm)]
        values = columns[0] if len(columns) == 1 else columns[0] - columns[1]
        return Values(values[rows], rows, " - ".join(own.label for own in arms if isinstance(own, Arm)))

    def _lacking(self, at: Coordinates, source: str) -> str:
        """What the run has no part for; empty where it has all."""
        ran = self.ran
        if source == "judge" and not ran.judge:
            return "needs a judge that asks a model"
        if source == "panel" and not ran.panel:
            return "needs a sufficiency panel that asks a model"
        if source == "answers" and METRICS[at.metric].column not in self.results.judges:
            return f"needs the judge {METRICS[at.metric].column}"
        if at.answerer and at.answerer not in ran.answerer.lower():
            return f"answered by {ran.answerer}, not {at.answerer}"
        return ""

    def _arm(self, wanted: str, at: Coordinates) -> Arm | str:
        """The arm that stands for `wanted`, or why none does. Without a budget the largest stands."""
        match = re.fullmatch(r"([^@:]+)(?:@(\w+))?(?::([\w-]+))?", wanted)
        name, budget, store = match.groups() if match else (wanted, None, None)
        if name in ABSENT:
            return ABSENT[name]
        budget = budget or at.budget
        if at.encoder and not any(at.encoder in own.lower() for own in self.ran.encoders.values()):
            return f"no store of this run is encoded by {at.encoder}"
        if store and store not in self.ran.encoders:
            return f"no store {store} in this run"
        fitting = [
            arm
            for arm in self.results.arms
            if budget in (None, "", arm.budget)
            and arm.store in self._stores(store, at)
            and re.fullmatch(STAND_FOR.get(name, rf"{re.escape(name)}(_model)?(\(.*\))?"), self._told(arm))
        ]
        if not fitting and (name, budget) == (FIRST_SET, "k10"):  # a completion of no calls is its first set
            fitting = [
                arm for arm in self.results.arms if arm.reader.endswith(f"(init={FIRST_SET})") and arm.budget == "C0"
            ]
        return min(fitting, key=lambda arm: _likeness(arm, name)) if fitting else NOT_RUN

    def _stores(self, store: str | None, at: Coordinates) -> list[str]:
        """The stores an arm may read: the one that is named, those of the encoder, or else the protocol's first."""
        if store:
            return [store]
        of_encoder = [name for name, encoder in self.ran.encoders.items() if at.encoder in encoder.lower()]
        return of_encoder if at.encoder else of_encoder[:1]

    def _told(self, arm: Arm) -> str:
        """An arm's reader with its model's own name for the protocol's."""
        return re.sub(r"model=([\w-]+)", lambda own: f"model={self.ran.models.get(own[1], own[1]).lower()}", arm.reader)

    def _rows(self, at: Coordinates) -> Integers:
        questions = self.results.questions
        kind, apart = pl.col("kind"), list(self.results.apart)
        kept = kind.is_in(list(at.kinds)) if at.kinds else ~kind.is_in(apart)
        if at.conversation:
            kept &= pl.col("conversation_id") == at.conversation
        return questions.with_row_index("at").filter(kept)["at"].to_numpy().astype(np.int64)

    def _column(self, arm: Arm, at: Coordinates) -> Floats:
        """(questions,) values of one arm."""
        key = (arm.label, at.metric)
        if key not in self.columns:
            order = pl.DataFrame({"question_id": self.ids}, schema={"question_id": pl.String})
            own = self._frame(at.metric).filter(pl.col("arm") == arm.label).drop("arm")
            joined = order.join(own, on="question_id", how="left", maintain_order="left")
            self.columns[key] = joined["value"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return self.columns[key]

    def _frame(self, metric: str) -> pl.DataFrame:
        """`arm, question_id, value` of one metric."""
        name, keys = METRICS[metric].column, ["arm", "question_id"]
        cells = self.results.cells
        if metric in ("f1", "judge"):
            return self._strict(name or self.ran.judge)
        if metric == "suff":
            return self.ran.sufficiency.select(*keys, value="sufficient")
        if metric == "turn_hit":  # what is not annotated is missed
            known = pl.col("evidence_hash").is_not_null()
            return cells.select(*keys, value=pl.when(known).then(pl.col(name).fill_null(0.0)))
        return cells.select(*keys, value=pl.col(name).cast(pl.Float64))

    def _strict(self, judge: str) -> pl.DataFrame:
        """A judge's scores, 0 where it could not judge; nothing of an arm that nobody has judged."""
        own = self.results.verdicts.filter(pl.col("judge") == judge)
        score = pl.when(pl.col("status") == "ok").then("score").fill_null(0.0)
        judged = (pl.col("status") != "missing").any().over("arm")
        return own.select("arm", "question_id", value=pl.when(judged).then(score))

    def _benched(self, at: Coordinates) -> Held:
        name = at.arms[0].partition("@")[0]
        if name != "mem_pursuit":
            return Held(why=ABSENT.get(name, "`suffice bench readers` times no scorer that is a model"))
        if self.ran.bench is None:
            return Held(why="needs --bench, the file that `suffice bench readers --json` prints")
        wanted = {**BENCH, "P": at.size, "K": at.k}
        column = METRICS[at.metric].column
        for row in self.ran.bench.get("cells", []):
            if column in row and all(row.get(name) == value for name, value in wanted.items()):
                return Held(float(row[column]), arm="mem_pursuit")
        return Held(why=f"the bench file has no cell of P = {at.size}, K = {at.k}, d = {BENCH['d']}")

    def _pursued(self, at: Coordinates) -> Held:
        if self.ran.pursuit is None:
            return Held(why="needs `suffice analyse pursuit`")
        figure, group, measure = METRICS[at.metric].column.split("/")
        own = self.ran.pursuit.filter((pl.col("figure") == figure) & (pl.col("group") == group))
        row = own.filter(pl.col("measure") == measure) if measure != "n" else own.sort("n", descending=True).head(1)
        value = None if row.is_empty() else row.row(0, named=True)["n" if measure == "n" else "value"]
        if value is None:
            return Held(why="undefined in this run: no question of the kind")
        scale = METRICS[at.metric].scale
        return Held(value * scale, n=row["n"][0], arm="mem_pursuit")


def _likeness(arm: Arm, name: str) -> tuple[bool, bool, int, int]:
    """Least for the arm most like the paper's: completion begins with its first set; defaults; the largest budget."""
    size = int(re.sub(r"\D", "", arm.budget) or 0)
    return (f"(init={FIRST_SET})" not in arm.reader, arm.reader != name, -size, len(arm.reader))

"""What a finished run hands to its report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from reports.calibration import Errors
from reports.sealing import Sealing

ABSTENTION = "abstention"
EVIDENCE_METRICS: Mapping[str, str] = {
    "gold_hit": "Gold Hit: any gold turn is in the evidence",
    "evidence_recall": "Evidence Recall: share of the gold turns in the evidence",
    "complete_evidence": "Complete Evidence Recall: all gold turns are in the evidence",
    "session_recall": "Session recall: share of the gold sessions in the evidence",
    "complete_sessions": "Complete sessions: all gold sessions are in the evidence",
    "ndcg": "nDCG: how early the selection has its gold turns",
    "turn_hit": "Turn Hit: Gold Hit over all questions with evidence sessions; no annotated turn is a miss",
    "user_recall_any": "LongMemEval's recall_any: any gold turn that the user said is in the evidence",
    "user_recall_all": "LongMemEval's recall_all: all gold turns that the user said are in the evidence",
    "user_ndcg_any": "LongMemEval's ndcg_any: over the turns that the user said alone",
}


@dataclass(frozen=True)
class Arm:
    """One arm as a report shows it. `label` is its printed form, `k` its budget's (`10`, `t2000`, `all`).

    `bound` is what the whole evidence is held to: `k10`, `t2000`, `all`, or a completion budget with the size of the
    first set, `C6+10`. Only arms of one bound may be ranked together; empty stands for the budget itself.
    """

    label: str
    reader: str
    budget: str
    k: str
    store: str
    uses_gold: bool
    bound: str = ""

    @property
    def held_to(self) -> str:
        """The bound, under which arms are compared."""
        return self.bound or self.budget


@dataclass(frozen=True)
class Results:
    """One run's finished tables.

    `cells`: one row for every expected (arm, question): `arm, question_id, conversation_id, kind: String`;
    `evidence_hash: String?`; `records, tokens, calls: Int64?`; `latency_ms: Float64?`; `stop_reason: String?`
    (`over_budget`: the reader asked for more than its budget and was stopped); `asks: Int64?` of a model, if any;
    `resident: Int64?` tokens that an imported store shows before the evidence, if any, which are not in `tokens`;
    the names of `EVIDENCE_METRICS: Float64?` in [0, 1], null where undefined (no gold) or missing;
    `replaced: Float64?` in [0, 1], share of the evidence that `hybrid` at the same budget does not hold;
    `sufficiency: String?` (sufficient, insufficient, uncertain), null where no panel judged the evidence;
    `answer: String?`, `answer_status: String?` (ok, parse_failed, refused, truncated, failed).
    `verdicts`: one row for every expected (arm, question, judge): `arm, question_id, judge, status: String`
    (`ok`, …, or `missing`), `score: Float64?` in [0, 1].
    `questions`: `question_id, conversation_id, kind, text: String`, `asked_at: Datetime?`, `answer: String?` (gold),
    `gold_turn_ids: List(String)`, in benchmark order; where it has `abstention: Boolean`, the questions for which it
    is true have rows of their own, named `abstention`, beside those of their kind.
    `records`: `store, id, conversation_id, session_id: String`, `position: Int64`, `speaker: String`,
    `said_at: Datetime?`, `text: String`, `source_turn_ids: List(String)`.
    `selections`: `arm, question_id: String`, `record_ids: List(String)` in selection order; `trace`: list of
    `view, cue: String`, `returned, kept: List(String)`, one a step, where the run kept any.
    `facts`: data facts and irregularities, label → number or text. `identity`: name → full digest or spec.
    `apart`: kinds that have rows of their own and stay out of the overall row. `folds`: conversations that are reported
    together. `mix_budgets`: whether arms of all budgets may also stand in one ranking. `primary`: baseline and arm, by
    label, that the protocol declared as the one comparison it is about, on the measure `metric`; empty: none was.
    `secondary`: arm, baseline and measure of each comparison that it declared beside that one.
    `wrong_labels`: question id → `answer` or `citation`, whichever is known to be wrong of its gold; of all the
    benchmark's questions, also those that this run does not ask. `calibrations`: judge → its errors on planted replies,
    of judges that were measured on all of them. `sealing`: under what a sealed split was opened, None for an open one.
    `reuse`: counts of states, cells, answers and verdicts and what sharing saved. `timings`: stage → seconds.
    `data`: what the run reads where that is not the benchmark itself; no number of it may stand beside a paper's.
    """

    name: str
    title: str
    split: str
    benchmark: str
    offline: bool
    arms: Sequence[Arm]
    kinds: Sequence[str]
    judges: Sequence[str]
    cells: pl.DataFrame
    verdicts: pl.DataFrame
    questions: pl.DataFrame
    records: pl.DataFrame
    selections: pl.DataFrame
    facts: Mapping[str, Any]
    identity: Mapping[str, str]
    reuse: Mapping[str, int]
    timings: Mapping[str, float]
    seed: int
    samples: int
    apart: Sequence[str] = ()
    folds: Sequence[Sequence[str]] = ()
    mix_budgets: bool = False
    sealing: Sealing | None = None
    primary: Sequence[str] = ()
    metric: str = "complete_evidence"
    secondary: Sequence[tuple[str, str, str]] = ()
    wrong_labels: Mapping[str, str] = field(default_factory=dict)
    calibrations: Mapping[str, Errors] = field(default_factory=dict)
    data: str = ""

    @property
    def reads(self) -> str:
        """The benchmark, or what the run reads instead of it."""
        return self.data or self.benchmark

"""What a finished run hands to its report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from reports.sealing import Sealing

EVIDENCE_METRICS: Mapping[str, str] = {
    "gold_hit": "Gold Hit: any gold turn is in the evidence",
    "evidence_recall": "Evidence Recall: share of the gold turns in the evidence",
    "complete_evidence": "Complete Evidence Recall: all gold turns are in the evidence",
    "session_recall": "Session recall: share of the gold sessions in the evidence",
    "complete_sessions": "Complete sessions: all gold sessions are in the evidence",
}


@dataclass(frozen=True)
class Arm:
    """One arm as a report shows it. `label` is its printed form, `k` its budget's (`10`, `t2000`, `all`)."""

    label: str
    reader: str
    budget: str
    k: str
    store: str
    uses_gold: bool


@dataclass(frozen=True)
class Results:
    """One run's finished tables.

    `cells`: one row for every expected (arm, question): `arm, question_id, conversation_id, kind: String`;
    `evidence_hash: String?`; `records, tokens, calls: Int64?`; `latency_ms: Float64?`; `stop_reason: String?`;
    the names of `EVIDENCE_METRICS: Float64?` in [0, 1], null where undefined (no gold) or missing;
    `replaced: Float64?` in [0, 1], share of the evidence that `hybrid` at the same budget does not hold;
    `answer: String?`, `answer_status: String?` (ok, parse_failed, refused, truncated, failed).
    `verdicts`: one row for every expected (arm, question, judge): `arm, question_id, judge, status: String`
    (`ok`, …, or `missing`), `score: Float64?` in [0, 1].
    `questions`: `question_id, conversation_id, kind, text: String`, `asked_at: Datetime?`, `answer: String?` (gold),
    `gold_turn_ids: List(String)`, in benchmark order.
    `records`: `store, id, conversation_id, session_id: String`, `position: Int64`, `speaker: String`,
    `said_at: Datetime?`, `text: String`, `source_turn_ids: List(String)`.
    `selections`: `arm, question_id: String`, `record_ids: List(String)` in selection order.
    `facts`: data facts and irregularities, label → number or text. `identity`: name → full digest or spec.
    `apart`: kinds that have rows of their own and stay out of the overall row.
    `sealing`: under what a sealed split was opened, None for an open one.
    `reuse`: counts of states, cells, answers and verdicts and what sharing saved. `timings`: stage → seconds.
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
    sealing: "Sealing | None" = None

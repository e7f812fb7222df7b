"""Where does every measure of every arm and question stand?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from reports.intervals import Floats, Integers
from reports.measures import STOPPED, costs, judged_measures
from reports.results import ABSTENTION, EVIDENCE_METRICS, Arm, Results

ALL = "all"


def begun() -> pl.Expr:
    """Of a judge's verdicts: whether it has judged any answer of the row's arm; else the arm has no score, not 0."""
    return (pl.col("status") != "missing").any().over("arm")


@dataclass(frozen=True)
class Grid:
    """Every measure's (questions, arms) matrix, NaN where not in the denominator."""

    arms: Sequence[Arm]
    kinds: Sequence[tuple[str, ...]]
    apart: Sequence[str]
    conversations: Integers
    matrices: Mapping[str, Floats]
    latency: Floats
    stopped: Floats

    @classmethod
    def of(cls, results: Results) -> "Grid":
        place = _Placer(results)
        at = place(results.cells, "cells")
        matrices = {name: place.matrix(results.cells, name, at) for name in (*EVIDENCE_METRICS, *costs(results))}
        for judge in results.judges:
            verdicts = results.verdicts.filter(pl.col("judge") == judge)
            strict, judged = judged_measures(judge)
            at_judge = place(verdicts, f"verdicts of {judge}")
            scored = verdicts.with_columns(judged=pl.when(pl.col("status") == "ok").then(pl.col("score"))).with_columns(
                strict=pl.when(begun()).then(pl.col("judged").fill_null(0.0))
            )
            matrices[strict.name] = place.matrix(scored, "strict", at_judge)
            matrices[judged.name] = place.matrix(scored, "judged", at_judge)
        questions = results.questions
        codes = {c: i for i, c in enumerate(questions["conversation_id"].unique(maintain_order=True))}
        conversations = np.array([codes[c] for c in questions["conversation_id"]], dtype=np.int64)
        latency = place.matrix(results.cells, "latency_ms", at)
        kinds: list[tuple[str, ...]] = [(kind,) for kind in questions["kind"]]
        if ABSTENTION in questions.columns:
            kinds = [(*own, ABSTENTION) if it else own for own, it in zip(kinds, questions[ABSTENTION], strict=True)]
        halted = results.cells.with_columns(halted=pl.col("stop_reason") == STOPPED)
        stopped = place.matrix(halted, "halted", at)
        return cls(results.arms, kinds, results.apart, conversations, matrices, latency, stopped)

    def rows(self, kind: str) -> Integers:
        """Questions of a kind; the overall row leaves out the kinds that stay apart."""
        apart = self.apart if kind == ALL else ()
        wanted = [i for i, own in enumerate(self.kinds) if kind in (ALL, *own) and own[0] not in apart]
        return np.array(wanted, dtype=np.int64)

    def columns(self) -> dict[tuple[str, str], Floats]:
        """(arm label, measure) to its (questions,) column."""
        return {
            (arm.label, name): matrix[:, i] for i, arm in enumerate(self.arms) for name, matrix in self.matrices.items()
        }


class _Placer:
    """Where a row of a long table belongs in a (questions, arms) matrix."""

    def __init__(self, results: Results) -> None:
        self.questions = {q: i for i, q in enumerate(results.questions["question_id"])}
        self.arms = {arm.label: i for i, arm in enumerate(results.arms)}
        _refuse_repeats("questions", results.questions["question_id"])
        _refuse_repeats("arms", [arm.label for arm in results.arms])

    def __call__(self, frame: pl.DataFrame, what: str) -> Integers:
        keys = list(zip(frame["question_id"], frame["arm"], strict=True))
        unknown = sorted({f"{a} / {q}" for q, a in keys if q not in self.questions or a not in self.arms})
        if unknown:
            raise ValueError(f"{what}: {len(unknown)} rows of no known arm and question, first {unknown[0]!r}")
        flat = [self.questions[q] * len(self.arms) + self.arms[a] for q, a in keys]
        _refuse_repeats(what, flat)
        return np.array(flat, dtype=np.int64)

    def matrix(self, frame: pl.DataFrame, column: str, at: Integers) -> Floats:
        full = np.full((len(self.questions), len(self.arms)), np.nan)
        if column in frame.columns:
            full.flat[at] = frame[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return full


def _refuse_repeats(what: str, keys: Iterable[object]) -> None:
    found = list(keys)
    if len(set(found)) != len(found):
        raise ValueError(f"{what}: {len(found)} rows hold {len(set(found))} distinct keys; each may appear once")

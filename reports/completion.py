"""What did completion add to the first set of evidence?"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from reports.grid import ALL
from reports.intervals import bootstrap_means
from reports.results import Arm, Results
from reports.tables import Estimate, estimates_of, overall

FIRST = "init"
MEASURES = ("gold_hit", "complete_evidence")


@dataclass(frozen=True)
class Completed:
    """One arm before and after completion. Each mapping is by measure; `gained` is after less before, paired."""

    arm: Arm
    first_records: float
    before: Mapping[str, Estimate]
    after: Mapping[str, Estimate]
    gained: Mapping[str, Estimate]


def completed(results: Results) -> tuple[Completed, ...]:
    """Every arm whose traces begin with a first set, in the run's order, over the questions of the overall row.

    The first set is what the step `init` kept. Its measures follow the metrics' definitions: a gold turn is found by
    any record made from it; undefined without gold or where a record's sources are unknown. Resamples are those of the
    report's tables, so `after` has the very intervals that they show.
    """
    if "trace" not in results.selections.columns:
        return ()
    firsts = _firsts(results)
    arms = [arm for arm in results.arms if arm.label in set(firsts["arm"])]
    if not arms:
        return ()
    asked = overall(results).select("question_id", "conversation_id")
    columns = {arm.label: _columns(results, firsts, asked, arm) for arm in arms}
    values = np.column_stack([column for own in columns.values() for column in own])
    codes = asked["conversation_id"].cast(pl.Enum(asked["conversation_id"].unique(maintain_order=True))).to_physical()
    rng = np.random.default_rng([results.seed, zlib.crc32(ALL.encode())])
    means = bootstrap_means(values, codes.to_numpy().astype(np.int64), samples=results.samples, rng=rng)
    found = iter(estimates_of(means))
    told = []
    for arm in arms:
        before, after, gained = ({name: next(found) for name in MEASURES} for _ in range(3))
        told.append(Completed(arm, _size(firsts, arm), before, after, gained))
    return tuple(told)


def _firsts(results: Results) -> pl.DataFrame:
    """`arm, question_id, ids`: the records of every first set, of the overall row's questions."""
    step = pl.col("trace").list.first()
    return (
        results.selections.filter(pl.col("trace").list.len() > 0)
        .filter(step.struct.field("view") == FIRST)
        .join(overall(results).select("question_id"), on="question_id")
        .select("arm", "question_id", ids=step.struct.field("kept"))
    )


def _columns(results: Results, firsts: pl.DataFrame, asked: pl.DataFrame, arm: Arm) -> Sequence[np.ndarray]:
    """Before, after and gain of each measure, (questions,) each, NaN where undefined or missing."""
    measured = _measured(results, firsts.filter(pl.col("arm") == arm.label), arm.store)
    cells = results.cells.filter(pl.col("arm") == arm.label).select("question_id", *MEASURES)
    rows = asked.join(measured, on="question_id", how="left", maintain_order="left").join(
        cells, on="question_id", how="left", suffix="_after", maintain_order="left"
    )
    before = [_floats(rows[name]) for name in MEASURES]
    after = [_floats(rows[f"{name}_after"]) for name in MEASURES]
    return [*before, *after, *(late - early for early, late in zip(before, after, strict=True))]


def _measured(results: Results, firsts: pl.DataFrame, store: str) -> pl.DataFrame:
    """`question_id` and the measures of the first sets."""
    sources = results.records.filter(pl.col("store") == store).select(record="id", source="source_turn_ids")
    held = (
        firsts.select("question_id", record="ids")
        .explode("record")
        .join(sources, on="record", how="left")
        .group_by("question_id")
        .agg(
            pl.col("source").explode().drop_nulls().unique().alias("held"),
            known=((pl.col("source").list.len() > 0) | pl.col("record").is_null()).all(),
        )
    )
    gold = results.questions.select("question_id", wanted="gold_turn_ids")
    found = pl.col("wanted").list.set_intersection("held").list.len()
    size = pl.col("wanted").list.len()
    defined = pl.col("known") & (size > 0)
    return held.join(gold, on="question_id").select(
        "question_id",
        gold_hit=pl.when(defined).then((found > 0).cast(pl.Float64)),
        complete_evidence=pl.when(defined).then((found == pl.col("wanted").list.n_unique()).cast(pl.Float64)),
    )


def _size(firsts: pl.DataFrame, arm: Arm) -> float:
    mean = firsts.filter(pl.col("arm") == arm.label)["ids"].list.len().mean()
    return float(mean) if isinstance(mean, (int, float)) else 0.0


def _floats(column: pl.Series) -> np.ndarray:
    return column.cast(pl.Float64).fill_null(float("nan")).to_numpy()

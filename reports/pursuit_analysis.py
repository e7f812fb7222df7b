"""Which numbers do the pursuit's analyses state?

Figures 3, 4b, 7 and 8 of Feng & Fan, arXiv 2610.15642v1, over one store of one run.
"""

import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from reports.grid import ALL
from reports.intervals import Floats, Integers, bootstrap_means
from reports.tables import Estimate

POLICIES = ("hybrid", "mem_pursuit")
OVERLAP_BUDGETS = (10, 20)
CURVE_BUDGETS = (5, 10, 20, 50, 100, 200)
CURVES: Mapping[str, str] = {"complete": "complete evidence", "sessions": "complete sessions"}
DIFFERENCE = "difference"
ROUNDING = 1e-12  # equal sets give exactly 0; sets of equal vectors may differ by rounding alone
PAPER_GROUP = "gold in two or more sessions"
PAIRS_GROUP = "two or more gold records"

COLUMNS: Mapping[str, pl.DataType] = {
    "question_id": pl.String(),
    "conversation_id": pl.String(),
    "kind": pl.String(),
    "pool": pl.Int64(),
    "gold_records": pl.Int64(),
    "gold_in_pool": pl.Int64(),
    "gold_residual": pl.Float64(),
    "hybrid_residual": pl.Float64(),
    "residual_advantage": pl.Float64(),
    "gold_sessions": pl.Int64(),
    "sessions_in_pool": pl.Int64(),
    "evidence_sessions": pl.Int64(),
    "comparisons": pl.Int64(),
    "preference": pl.Float64(),
    "cosine_preference": pl.Float64(),
    **{f"replaced_k{k}": pl.Float64() for k in OVERLAP_BUDGETS},
    **{f"{policy}_session_recall_k{k}": pl.Float64() for policy in POLICIES for k in OVERLAP_BUDGETS},
    **{f"{policy}_{curve}_at": pl.Int64() for policy in POLICIES for curve in CURVES},
    "adaptive_size": pl.Int64(),
}


@dataclass(frozen=True)
class Study:
    """What was measured of one store.

    `rows`: one row for every question with gold, `COLUMNS`; a null is undefined, never 0. `questions`: how many the
    run has, with gold or without. `apart`: kinds that stay out of every row but their own. `setting`: label → value
    of what differs between studies (store, encoder, pool). `identity`: name → digest.
    """

    name: str
    title: str
    benchmark: str
    split: str
    rows: pl.DataFrame
    questions: int
    apart: Sequence[str]
    setting: Mapping[str, str]
    identity: Mapping[str, str]
    adaptive: str
    seed: int
    samples: int


class Key(NamedTuple):
    """`figure`: overlap, curve, reconstruction or preference; `group`: which questions or which budget."""

    figure: str
    group: str
    measure: str


Found = Mapping[Key, Estimate]


def estimate(study: Study) -> dict[Key, Estimate]:
    """Every number of the four figures, each with intervals over questions and over conversations.

    Resamples depend on the study's seed and on which questions a group has, so that no group moves another's interval.
    """
    chosen = overall(study)
    found: dict[Key, Estimate] = {}
    for figure, groups, columns in (
        ("overlap", {ALL: chosen}, _overlap),
        ("curve", {ALL: chosen}, _curve),
        ("reconstruction", _reconstruction_groups(study.rows, chosen), _reconstruction),
        ("preference", _preference_groups(study.rows, chosen), _preference),
    ):
        for group, rows in groups.items():
            rng = np.random.default_rng([study.seed, zlib.crc32(group.encode())])
            named = {Key(figure, own or group, name): values for (own, name), values in columns(rows)}
            found |= _bootstrapped(named, rows, study.samples, rng)
    return found


def estimate_rows(found: Found) -> pl.DataFrame:
    """numbers.csv: a row for every number; null is undefined."""
    columns = ["figure", "group", "measure", "value", "low", "high", "cluster_low", "cluster_high", "n", "clusters"]
    kinds = [pl.String] * 3 + [pl.Float64] * 5 + [pl.Int64] * 2
    rows = [
        (*key, own.value, own.low, own.high, own.cluster_low, own.cluster_high, own.n, own.clusters)
        for key, own in found.items()
    ]
    return pl.DataFrame(rows, schema=dict(zip(columns, kinds, strict=True)), orient="row")


def preferring(rows: pl.DataFrame, group: str) -> pl.DataFrame:
    """The questions that have an Eq. 29, all or those the paper would have kept.

    Its condition: gold records of the pool lie in two or more sessions, and every annotated session is in the pool.
    """
    defined = rows.filter(pl.col("preference").is_not_null())
    kept = (pl.col("evidence_sessions") >= 2) & (pl.col("sessions_in_pool") == pl.col("gold_sessions"))
    return defined.filter(kept) if group == PAPER_GROUP else defined


def overall(study: Study) -> pl.DataFrame:
    """The questions that are no kind apart."""
    return study.rows.filter(~pl.col("kind").is_in(list(study.apart)))


def budgets(rows: pl.DataFrame) -> list[int]:
    """The budgets at which the curve is tabulated: those that the largest pool fills, or that pool's size."""
    largest = int(rows["pool"].to_numpy().max(initial=1))
    return [k for k in CURVE_BUDGETS if k <= largest] or [largest]


def nested_curve(rows: pl.DataFrame) -> pl.DataFrame:
    """curve.csv: `k, policy, measure, value` at every K up to the largest pool; null where nothing is defined."""
    found = [
        (k, policy, title, float(np.nanmean(covered)) if np.isfinite(covered).any() else None)
        for policy in POLICIES
        for curve, title in CURVES.items()
        for k in range(1, int(rows["pool"].to_numpy().max(initial=0)) + 1)
        for covered in [_covered(rows, policy, curve, k)]
    ]
    schema = {"k": pl.Int64, "policy": pl.String, "measure": pl.String, "value": pl.Float64}
    return pl.DataFrame(found, schema=schema, orient="row")


def _reconstruction_groups(rows: pl.DataFrame, chosen: pl.DataFrame) -> dict[str, pl.DataFrame]:
    return {
        ALL: chosen,
        "one gold record": chosen.filter(pl.col("gold_records") == 1),
        PAIRS_GROUP: chosen.filter(pl.col("gold_records") >= 2),
        "all gold records in the pool": chosen.filter(pl.col("gold_in_pool") == pl.col("gold_records")),
        **_by_kind(rows),
    }


def _preference_groups(rows: pl.DataFrame, chosen: pl.DataFrame) -> dict[str, pl.DataFrame]:
    return {
        PAPER_GROUP: preferring(chosen, PAPER_GROUP),
        PAIRS_GROUP: preferring(chosen, PAIRS_GROUP),
        **_by_kind(preferring(rows, PAIRS_GROUP)),
    }


def _by_kind(rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
    return {kind: rows.filter(pl.col("kind") == kind) for kind in rows["kind"].unique(maintain_order=True)}


Columns = Iterator[tuple[tuple[str, str], Floats]]  # ((group, or empty for the caller's), measure) to (n,) values


def _overlap(rows: pl.DataFrame) -> Columns:
    for k in OVERLAP_BUDGETS:
        group = f"k{k}"
        yield (group, "replaced"), _floats(rows, f"replaced_k{k}")
        recall = [_floats(rows, f"{policy}_session_recall_k{k}") for policy in POLICIES]
        complete = [_covered(rows, policy, "sessions", k) for policy in POLICIES]
        yield from _paired(group, "session recall", recall)
        yield from _paired(group, "complete sessions", complete)


def _curve(rows: pl.DataFrame) -> Columns:
    sizes = _floats(rows, "adaptive_size")
    yield ("adaptive", "records"), sizes
    for curve, title in CURVES.items():
        yield from _paired("adaptive", title, [_covered(rows, policy, curve, sizes) for policy in POLICIES])
        for k in budgets(rows):
            yield from _paired(f"k{k}", title, [_covered(rows, policy, curve, k) for policy in POLICIES])


def _reconstruction(rows: pl.DataFrame) -> Columns:
    yield from _signs(_floats(rows, "residual_advantage"), ("gold closer", "hybrid closer", "equal"))
    yield ("", "mean advantage"), _floats(rows, "residual_advantage")
    yield ("", "gold residual"), _floats(rows, "gold_residual")
    yield ("", "hybrid residual"), _floats(rows, "hybrid_residual")


def _preference(rows: pl.DataFrame) -> Columns:
    yield from _signs(_floats(rows, "preference"), ("missing preferred", "comparator preferred", "equal"))
    yield ("", "mean preference"), _floats(rows, "preference")
    yield ("", "mean by cosine alone"), _floats(rows, "cosine_preference")
    yield ("", "added by the residual"), _floats(rows, "preference") - _floats(rows, "cosine_preference")
    yield ("", "comparisons"), _floats(rows, "comparisons")


def _paired(group: str, measure: str, values: Sequence[Floats]) -> Columns:
    """Both policies and mem_pursuit minus hybrid on the same questions."""
    for policy, own in zip(POLICIES, values, strict=True):
        yield (group, f"{policy} {measure}"), own
    yield (group, f"{DIFFERENCE} {measure}"), values[1] - values[0]


def _signs(values: Floats, names: tuple[str, str, str]) -> Columns:
    """Shares of values above 0, below 0 and at 0, of those that are defined."""
    sides = (values > ROUNDING, values < -ROUNDING, np.abs(values) <= ROUNDING)
    for name, side in zip(names, sides, strict=True):
        yield ("", name), np.where(np.isnan(values), np.nan, side)


def _covered(rows: pl.DataFrame, policy: str, curve: str, k: int | Floats) -> Floats:
    """(n,) 1 where the first `k` records of a policy's order hold all gold, else 0; NaN where that is undefined."""
    at = _floats(rows, f"{policy}_{curve}_at")
    covered = np.nan_to_num(at, nan=np.inf) <= k
    return np.where(np.isnan(_floats(rows, "gold_records")), np.nan, covered)


def _floats(rows: pl.DataFrame, column: str) -> Floats:
    return rows[column].cast(pl.Float64).fill_null(float("nan")).to_numpy()


def _bootstrapped(
    columns: Mapping[Key, Floats], rows: pl.DataFrame, samples: int, rng: np.random.Generator
) -> dict[Key, Estimate]:
    if rows.is_empty():
        return dict.fromkeys(columns, Estimate())
    means = bootstrap_means(np.column_stack(list(columns.values())), _clusters(rows), samples=samples, rng=rng)
    ends = (means.mean, means.low, means.high, means.cluster_low, means.cluster_high)
    values = [[None if math.isnan(each) else each for each in end.tolist()] for end in ends]
    counts = means.n.tolist(), means.clusters.tolist()
    return {key: Estimate(*own) for key, *own in zip(columns, *values, *counts, strict=True)}


def _clusters(rows: pl.DataFrame) -> Integers:
    codes = {id: code for code, id in enumerate(rows["conversation_id"].unique(maintain_order=True))}
    return np.array([codes[id] for id in rows["conversation_id"]], dtype=np.int64)

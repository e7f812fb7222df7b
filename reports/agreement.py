"""How far judges agree with each other, and with themselves."""

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def cohen_kappa(one: Floats, other: Floats) -> float | None:
    """Cohen's kappa of two judges' labels of the same items, in [-1, 1].

    `one`, `other`: (n,) labels as numbers, NaN where an item was not judged; only items that both judged count. None
    where there are none, or where both give one and the same label throughout, so that chance alone would agree.
    Source: Cohen 1960. Raises `ValueError` if the lengths differ.
    """
    if one.shape != other.shape:
        raise ValueError(f"labels of both judges ({one.shape}, {other.shape}) must align")
    both = ~np.isnan(one) & ~np.isnan(other)
    left, right = one[both], other[both]
    if not len(left):
        return None
    labels = np.union1d(left, right)
    chance = float(sum((left == label).mean() * (right == label).mean() for label in labels))
    return None if chance == 1 else (float((left == right).mean()) - chance) / (1 - chance)


def krippendorff_alpha(values: Floats, level: Literal["nominal", "interval"] = "nominal") -> float | None:
    """Krippendorff's alpha of m judges over n items, at most 1; 0 is what chance gives.

    `values`: (n, m) labels or scores as numbers, NaN where a judge did not judge an item. Items with fewer than two
    values say nothing and are left out. `nominal`: two values differ or do not; `interval`: squared difference. None
    where no item has two values or all values are equal. Source: Krippendorff 2011, "Computing Krippendorff's
    Alpha-Reliability". Raises `ValueError` if `values` is not 2-D or `level` is another.
    """
    if values.ndim != 2:
        raise ValueError(f"values must be 2-D (items, judges), got {values.ndim}-D")
    if level not in ("nominal", "interval"):
        raise ValueError(f"level must be nominal or interval, got {level!r}")
    labels, codes = np.unique(values[~np.isnan(values)], return_inverse=True)
    counts = np.zeros((len(values), len(labels)))
    np.add.at(counts, (np.nonzero(~np.isnan(values))[0], codes), 1)
    counts = counts[counts.sum(axis=1) >= 2]
    totals = counts.sum(axis=0)
    n = totals.sum()
    differ = (labels[:, None] - labels) ** 2 if level == "interval" else 1.0 - np.eye(len(labels))
    expected = totals @ differ @ totals / (n - 1) if n > 1 else 0.0
    if not expected:
        return None
    within = ((counts @ differ) * counts).sum(axis=1)
    return float(1 - (within / (counts.sum(axis=1) - 1)).sum() / expected)


def flip_rate(scores: Sequence[Sequence[float | None]]) -> float | None:
    """The share of items whose repeats do not all score alike, among items with at least two judged repeats.

    `scores`: for each item its repeats, None where one was not judged. None where no item has two.
    """
    judged = [[score for score in item if score is not None] for item in scores]
    repeated = [item for item in judged if len(item) >= 2]
    return sum(len(set(item)) > 1 for item in repeated) / len(repeated) if repeated else None


def judges_by_arm(verdicts: pl.DataFrame, apart: Sequence[str] = ()) -> pl.DataFrame:
    """The same answers under all judges: one row an arm and judge, in the frame's order.

    `verdicts`: `arm, question_id, kind, judge, status, score?`, one row for every expected cell. Gives
    `arm, judge, strict, judged, n, n_judged`: the mean score with a cell that was not judged as 0, the mean over
    judged cells (null if none), and both counts. Kinds in `apart` are left out.
    """
    inside = verdicts.filter(~pl.col("kind").is_in(list(apart)))
    return inside.group_by("arm", "judge", maintain_order=True).agg(
        strict=pl.col("score").fill_null(0.0).mean(),
        judged=pl.col("score").mean(),
        n=pl.len().cast(pl.Int64),
        n_judged=pl.col("score").count().cast(pl.Int64),
    )


def pairwise(verdicts: pl.DataFrame) -> pl.DataFrame:
    """How each two judges agree over distinct answers: one row a pair, then one named "all" where there are three.

    `verdicts`: `question_id, answer, judge, score?`; rows that repeat a (question, answer, judge) count once. Gives
    `one, other, n, agreement, kappa, alpha_nominal, alpha_interval`: over the answers that both judged, the share of
    equal decisions, kappa and nominal alpha of the decisions (a score above 0.5 is right), and interval alpha of the
    scores. The last row has the alphas alone; its n counts answers that two judges or more judged.
    """
    key = ["question_id", "answer"]
    judges = verdicts["judge"].unique(maintain_order=True).to_list()
    distinct = verdicts.unique([*key, "judge"], keep="first", maintain_order=True)
    wide = distinct.pivot("judge", index=key, values="score").select(judges)
    scores = wide.select(pl.col(judges).cast(pl.Float64).fill_null(float("nan"))).to_numpy()
    rows = [
        {"one": judges[a], "other": judges[b], **_agreed(scores[:, [a, b]])}
        for a, b in combinations(range(len(judges)), 2)
    ]
    if len(judges) > 2:
        rows.append({"one": "all", "other": "all", **_agreed(scores), "agreement": None, "kappa": None})
    numbers = ("agreement", "kappa", "alpha_nominal", "alpha_interval")
    schema = {"one": pl.String, "other": pl.String, "n": pl.Int64, **dict.fromkeys(numbers, pl.Float64)}
    return pl.DataFrame(rows, schema=schema)


def _agreed(scores: Floats) -> dict[str, float | int | None]:
    missing = np.isnan(scores)
    decisions = np.where(missing, np.nan, (scores > 0.5).astype(np.float64))
    several = (~missing).sum(axis=1) >= 2
    same = (decisions[several, 0] == decisions[several, 1]).mean() if several.any() else None
    return {
        "n": int(several.sum()),
        "agreement": None if same is None else float(same),
        "kappa": cohen_kappa(decisions[:, 0], decisions[:, 1]),
        "alpha_nominal": krippendorff_alpha(decisions, "nominal"),
        "alpha_interval": krippendorff_alpha(scores, "interval"),
    }

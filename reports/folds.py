"""Does a result hold in every fold of conversations?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from reports.results import Results
from reports.tables import Estimate, overall


@dataclass(frozen=True)
class Fold:
    """Conversations that are scored together. `found`: (arm, metric) → mean and n; no entry where none is known."""

    conversations: tuple[str, ...]
    found: Mapping[tuple[str, str], Estimate]


def by_fold(results: Results, metrics: Sequence[str]) -> tuple[Fold, ...]:
    """Each fold's mean of each metric, over the questions of the overall row for which it is defined.

    A fold is a set of conversations that the protocol names: every arm reads all questions, and a fold is a part of
    the same run, not a run of its own. A reader that learns from gold is trained on the other folds.
    """
    asked = overall(results).select("question_id", "conversation_id")
    cells = results.cells.select("arm", "question_id", *metrics).join(asked, on="question_id")
    long = cells.unpivot(metrics, index=["arm", "conversation_id"], variable_name="metric").drop_nulls("value")
    found = []
    for fold in results.folds:
        own = long.filter(pl.col("conversation_id").is_in(list(fold)))
        means = own.group_by("arm", "metric").agg(pl.col("value").mean(), n=pl.len())
        estimates = {(arm, metric): Estimate(value, n=n) for arm, metric, value, n in means.iter_rows()}
        found.append(Fold(tuple(fold), estimates))
    return tuple(found)


def fold_rows(results: Results, metrics: Sequence[str]) -> pl.DataFrame:
    """folds.csv: `arm, fold (1 …), conversations, metric, value, n` for every arm, fold and metric; null is missing."""
    folds = by_fold(results, metrics)
    rows = []
    for arm in results.arms:
        for number, fold in enumerate(folds, start=1):
            for metric in metrics:
                own = fold.found.get((arm.label, metric), Estimate())
                rows.append((arm.label, number, " ".join(fold.conversations), metric, own.value, own.n))
    text, number_, whole = pl.String, pl.Float64, pl.Int64
    schema = {"arm": text, "fold": whole, "conversations": text, "metric": text, "value": number_, "n": whole}
    return pl.DataFrame(rows, schema=schema, orient="row")

"""Where an answer failed: in the evidence or in its use."""

from collections.abc import Mapping, Sequence

import polars as pl

DIAGNOSES: Mapping[str, str] = {
    "absent": "some gold turn is missing from the evidence, which was judged not to suffice; answered wrong",
    "insufficient": "all gold turns are there, yet the evidence was judged not to suffice; answered wrong",
    "misread": "the evidence suffices; answered wrong",
    "lucky": "right without sufficient evidence",
    "sound": "right with sufficient evidence",
    "undecided": "sufficiency or verdict missing or uncertain, or no gold turns to look for",
}
"""Every (arm, question) is one of these."""


def diagnosed(cells: pl.DataFrame) -> pl.DataFrame:
    """`cells` with the column `diagnosis`, one of `DIAGNOSES`.

    Needs `sufficiency: String?` (sufficient, insufficient, uncertain), `score: Float64?` of one judge (above 0.5 is
    right) and `complete_evidence: Float64?` (1 if all gold turns are in the evidence).
    """
    right, enough = pl.col("score") > 0.5, pl.col("sufficiency") == "sufficient"
    known = pl.col("score").is_not_null() & pl.col("sufficiency").is_in(["sufficient", "insufficient"])
    present = pl.col("complete_evidence") == 1
    return cells.with_columns(
        diagnosis=pl.when(~known.fill_null(False))
        .then(pl.lit("undecided"))
        .when(right & enough)
        .then(pl.lit("sound"))
        .when(right)
        .then(pl.lit("lucky"))
        .when(enough)
        .then(pl.lit("misread"))
        .when(present)
        .then(pl.lit("insufficient"))
        .when(present.is_not_null())
        .then(pl.lit("absent"))
        .otherwise(pl.lit("undecided"))
    )


def scored_by(judge: str, cells: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    """`Results.cells` with the `score: Float64?` that one judge gave, as `diagnosed` needs it."""
    scores = verdicts.filter(pl.col("judge") == judge).select("arm", "question_id", "score")
    return cells.join(scores, on=["arm", "question_id"], how="left", maintain_order="left")


def diagnosis_table(cells: pl.DataFrame, apart: Sequence[str] = ()) -> pl.DataFrame:
    """One row an arm, in the frame's order: `arm, n`, then how many cells have each of `DIAGNOSES`.

    `cells`: as for `diagnosed`, with `arm` and `kind`; kinds in `apart` are left out.
    """
    found = diagnosed(cells.filter(~pl.col("kind").is_in(list(apart))))
    counts = [(pl.col("diagnosis") == name).sum().cast(pl.Int64).alias(name) for name in DIAGNOSES]
    return found.group_by("arm", maintain_order=True).agg(pl.len().cast(pl.Int64).alias("n"), *counts)


def sufficiency_table(cells: pl.DataFrame, apart: Sequence[str] = ()) -> pl.DataFrame:
    """One row an arm: `arm, n, sufficient, insufficient, uncertain, missing: Int64`, `share: Float64?`.

    `share` is sufficient / (sufficient + insufficient): what is uncertain or not judged leaves the denominator and is
    counted. Null where nothing was decided. `cells`: `arm, kind, sufficiency?`; kinds in `apart` are left out.
    """
    inside = cells.filter(~pl.col("kind").is_in(list(apart)))
    labels = ("sufficient", "insufficient", "uncertain")
    counts = [(pl.col("sufficiency") == label).sum().cast(pl.Int64).alias(label) for label in labels]
    table = inside.group_by("arm", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("n"), *counts, missing=pl.col("sufficiency").null_count().cast(pl.Int64)
    )
    decided = pl.col("sufficient") + pl.col("insufficient")
    return table.with_columns(share=pl.when(decided > 0).then(pl.col("sufficient") / decided))

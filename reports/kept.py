"""What does a report keep of every question, so that two runs can be paired later?"""

import io
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from reports.results import ABSTENTION, EVIDENCE_METRICS, Arm, Results
from storage.errors import InputError
from storage.places import read_whole, write_whole

FILE = "cells.parquet"
_OWN = ("arm", "question_id", "conversation_id", "kind")
_COSTS = ("records", "tokens", "resident", "calls", "asks", "replaced", "latency_ms", "stop_reason")
_MEASURED = (*EVIDENCE_METRICS, *_COSTS)
_SETTINGS = ("name", "title", "split", "benchmark", "offline", "seed", "samples", "metric")
_LISTS = ("kinds", "judges", "apart", "primary")


def keep_cells(results: Results, folder: Path) -> Path:
    """Write cells.parquet: what an open run measured in every cell, its arms and settings in the file's metadata.

    Columns: `arm, question_id, conversation_id, kind`, the measured columns of `Results.cells`, `abstention` where
    known, and `status of JUDGE`, `score of JUDGE`. No text of a question, of gold or of an answer.
    """
    frame = results.cells.select([name for name in (*_OWN, *_MEASURED) if name in results.cells.columns])
    if ABSTENTION in results.questions.columns:
        asked = results.questions.select("question_id", ABSTENTION)
        frame = frame.join(asked, on="question_id", how="left", maintain_order="left")
    for judge in results.judges:
        said = results.verdicts.filter(pl.col("judge") == judge)
        said = said.select("arm", "question_id", pl.col("status", "score").name.suffix(f" of {judge}"))
        frame = frame.join(said, on=["arm", "question_id"], how="left", maintain_order="left")
    run = {name: getattr(results, name) for name in _SETTINGS} | {name: list(getattr(results, name)) for name in _LISTS}
    run |= {"arms": [asdict(arm) for arm in results.arms]}
    file = io.BytesIO()
    frame.write_parquet(file, metadata={"run": json.dumps(run)})
    write_whole(folder / FILE, file.getvalue())
    return folder / FILE


def kept_cells(folder: Path) -> Results | None:
    """The run of a report's folder as far as comparing needs it; None where it keeps no cells (sealed, or older).

    Texts, gold, records and selections are empty. Raises `InputError` for a file that is not such a one.
    """
    path = folder / FILE
    if not path.is_file():
        return None
    data = read_whole(path)
    try:
        run = json.loads(pl.read_parquet_metadata(io.BytesIO(data))["run"])
        return _run(run, pl.read_parquet(io.BytesIO(data)))
    except (pl.exceptions.PolarsError, KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: a report's cells expected, another file found; write the report again") from error


def _run(run: dict[str, Any], frame: pl.DataFrame) -> Results:
    arms = [Arm(**arm) for arm in run.pop("arms")]
    asked = [name for name in ("question_id", "conversation_id", "kind", ABSTENTION) if name in frame.columns]
    verdicts = [
        frame.select(
            "arm",
            "question_id",
            judge=pl.lit(judge),
            status=pl.col(f"status of {judge}").fill_null("missing"),
            score=f"score of {judge}",
        )
        for judge in run["judges"]
    ]
    return Results(
        **run,
        arms=arms,
        cells=frame,
        verdicts=pl.concat(verdicts) if verdicts else pl.DataFrame(schema=_VERDICTS),
        questions=frame.select(asked).unique("question_id", keep="first", maintain_order=True),
        records=pl.DataFrame(),
        selections=pl.DataFrame(),
        facts={},
        identity={},
        reuse={},
        timings={},
    )


_VERDICTS = {"arm": pl.String, "question_id": pl.String, "judge": pl.String, "status": pl.String, "score": pl.Float64}

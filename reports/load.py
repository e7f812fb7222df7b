"""A lake's finished tables to the `Results` of one run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from reports.results import Arm
from storage.digests import digest
from storage.holdings import imported, records
from storage.lake import Lake
from storage.schemas import (
    ANSWERS,
    GOLD,
    QUESTIONS,
    RANKINGS,
    RESIDENT,
    SCORES,
    SELECTIONS,
    STATES,
    SUFFICIENCY,
    VERDICTS,
)

BASELINE = "hybrid"


@dataclass(frozen=True)
class StoreAddresses:
    """Where one store's tables lie; the selections of arms that ask a model have tables of their own."""

    name: str
    store: str
    selections: Sequence[str]
    scores: str
    rankings: str


@dataclass(frozen=True)
class Addresses:
    """Where a run's tables lie; `verdicts`: judge → address. `question_ids` are expected, in benchmark order.

    `sufficiency`: of what the panel said, None where no panel judges it.
    """

    dataset: str
    gold: str
    answers: str
    verdicts: Mapping[str, str]
    stores: Sequence[StoreAddresses]
    question_ids: Sequence[str]
    sufficiency: str | None = None


@dataclass(frozen=True)
class Frames:
    """The tables of `Results`, by the same names, with the reuse that they show."""

    cells: pl.DataFrame
    verdicts: pl.DataFrame
    questions: pl.DataFrame
    records: pl.DataFrame
    selections: pl.DataFrame
    reuse: dict[str, int]


def load(
    lake: Lake, addresses: Addresses, arms: Sequence[Arm], unsealed: tuple[pl.DataFrame, pl.DataFrame] | None = None
) -> Frames:
    """Every expected cell with what the lake holds of it; what is missing is null.

    `unsealed`: rows of the questions and of the gold table where the lake has none in the clear.
    Reads only. The frames' columns are those that `Results` documents.
    """
    questions = _questions(lake, addresses, unsealed)
    expected = pl.DataFrame({"arm": [arm.label for arm in arms]}, schema={"arm": pl.String}).join(
        questions.select("question_id", "conversation_id", "kind"), how="cross"
    )
    owners = questions.select("question_id", "conversation_id")
    per_store = [
        _selected(lake, store, arms, addresses).join(_resident(lake, store, owners), on="question_id", how="left")
        for store in addresses.stores
    ]
    selected = pl.concat(per_store) if per_store else pl.DataFrame()
    cells = expected.join(selected.drop("trace"), on=["arm", "question_id"], how="left", maintain_order="left")
    cells = cells.join(_replaced(selected, arms), on=["arm", "question_id"], how="left", maintain_order="left")
    cells = _sufficient(lake, addresses, cells)
    cells = _answered(lake, addresses, cells) if addresses.verdicts else _unasked(cells)
    verdicts = _verdicts(lake, addresses, cells)
    return Frames(
        cells=cells.drop("record_ids"),
        verdicts=verdicts,
        questions=questions,
        records=_records(lake, addresses),
        selections=selected.select("arm", "question_id", "record_ids", "trace"),
        reuse=_reuse(cells, verdicts),
    )


def _questions(lake: Lake, addresses: Addresses, unsealed: tuple[pl.DataFrame, pl.DataFrame] | None) -> pl.DataFrame:
    tables = (lake.table(QUESTIONS, addresses.dataset), lake.table(GOLD, addresses.gold))
    asked, answers = unsealed or (tables[0].read(), tables[1].read())
    order = pl.DataFrame({"id": list(addresses.question_ids)}, schema={"id": pl.String})
    rows = order.join(asked, on="id", how="left", maintain_order="left")
    gold = answers.select("question_id", "answer", "turn_ids", "abstention")
    return (
        rows.rename({"id": "question_id"})
        .join(gold, on="question_id", how="left", maintain_order="left")
        .select(
            "question_id",
            "conversation_id",
            "kind",
            "text",
            "asked_at",
            "answer",
            "abstention",
            gold_turn_ids="turn_ids",
        )
    )


def _selected(lake: Lake, store: StoreAddresses, arms: Sequence[Arm], addresses: Addresses) -> pl.DataFrame:
    """Selections of one store's arms with the size and the metrics of their states."""
    wanted = [arm.label for arm in arms if arm.store == store.name]
    columns = ["arm", "question_id", "evidence_hash", "record_ids", "calls", "latency_ms", "stop_reason", "trace"]
    columns += ["asks"] if "asks" in SELECTIONS.schema.names else []
    chosen = pl.col("arm").is_in(wanted) & pl.col("question_id").is_in(list(addresses.question_ids))
    selections = pl.concat([lake.table(SELECTIONS, each).read(columns, where=chosen) for each in store.selections])
    key = ["question_id", "evidence_hash"]
    states = lake.table(STATES, store.store).read([*key, "tokens"])
    scores = lake.table(SCORES, store.scores).read()
    rankings = lake.table(RANKINGS, store.rankings).read()
    return (
        selections.with_columns(
            records=pl.col("record_ids").list.len().cast(pl.Int64), calls=pl.col("calls").cast(pl.Int64)
        )
        .join(states, on=key, how="left")
        .join(scores, on=key, how="left")
        .join(rankings, on=["arm", "question_id"], how="left")
    )


def _resident(lake: Lake, store: StoreAddresses, owners: pl.DataFrame) -> pl.DataFrame:
    """Tokens that a store shows before the evidence of each question; null where it holds no such context at all."""
    rows = lake.table(RESIDENT, store.store).read(["conversation_id", "question_id", "tokens"])
    if rows.is_empty():
        return owners.select("question_id", resident=pl.lit(None, pl.Int64))
    every = rows.filter(pl.col("question_id").is_null()).group_by("conversation_id").agg(every=pl.col("tokens").sum())
    own = rows.drop_nulls("question_id").group_by("question_id").agg(own=pl.col("tokens").sum())
    shown = owners.join(every, on="conversation_id", how="left").join(own, on="question_id", how="left")
    return shown.select("question_id", resident=pl.sum_horizontal("every", "own").cast(pl.Int64))


def _replaced(selected: pl.DataFrame, arms: Sequence[Arm]) -> pl.DataFrame:
    """Share of each selection that the baseline held to the same bound over the same store does not hold."""
    place = pl.DataFrame(
        {"arm": [arm.label for arm in arms], "place": [f"{arm.held_to}:{arm.store}" for arm in arms]},
        schema={"arm": pl.String, "place": pl.String},
    )
    baselines = [arm.label for arm in arms if arm.reader == BASELINE]
    placed = selected.select("arm", "question_id", "record_ids").join(place, on="arm")
    baseline = placed.filter(pl.col("arm").is_in(baselines)).select("place", "question_id", base="record_ids")
    pairs = placed.join(baseline, on=["place", "question_id"])
    outside = pl.col("record_ids").list.set_difference("base").list.len()
    size = pl.col("record_ids").list.len()
    share = pl.when(size > 0).then(outside / size)
    return pairs.select("arm", "question_id", replaced=share.cast(pl.Float64))


def _sufficient(lake: Lake, addresses: Addresses, cells: pl.DataFrame) -> pl.DataFrame:
    """What the panel said of each cell's evidence; null where there is no panel or it has not judged that state."""
    if addresses.sufficiency is None:
        return cells.with_columns(sufficiency=pl.lit(None, pl.String))
    said = lake.table(SUFFICIENCY, addresses.sufficiency).read(["question_id", "evidence_hash", "label"])
    said = said.rename({"label": "sufficiency"})
    return cells.join(said, on=["question_id", "evidence_hash"], how="left", maintain_order="left")


def _answered(lake: Lake, addresses: Addresses, cells: pl.DataFrame) -> pl.DataFrame:
    answers = lake.table(ANSWERS, addresses.answers).read(["question_id", "evidence_hash", "text", "status"])
    answers = answers.rename({"text": "answer", "status": "answer_status"})
    return cells.join(answers, on=["question_id", "evidence_hash"], how="left", maintain_order="left")


def _unasked(cells: pl.DataFrame) -> pl.DataFrame:
    """Without a judge nothing is answered, and what the lake knows from other runs is no part of this one."""
    return cells.with_columns(answer=pl.lit(None, pl.String), answer_status=pl.lit(None, pl.String))


def _verdicts(lake: Lake, addresses: Addresses, cells: pl.DataFrame) -> pl.DataFrame:
    texts = cells.select("answer").unique()
    address = texts.with_columns(text=pl.Series([digest(text) for text in texts["answer"]], dtype=pl.String))
    given = cells.select("arm", "question_id", "answer", "answer_status").join(
        address, on="answer", how="left", nulls_equal=True, maintain_order="left"
    )
    frames = []
    for judge, place in addresses.verdicts.items():
        verdicts = lake.table(VERDICTS, place).read(["question_id", "answer", "score", "status"])
        judged = given.join(
            verdicts.rename({"answer": "text"}), on=["question_id", "text"], how="left", maintain_order="left"
        )
        known = pl.col("answer_status").is_not_null() & pl.col("status").is_not_null()
        frames.append(
            judged.select(
                "arm",
                "question_id",
                judge=pl.lit(judge),
                status=pl.when(known).then("status").otherwise(pl.lit("missing")),
                score=pl.when(known).then("score"),
            )
        )
    schema = {
        "arm": pl.String,
        "question_id": pl.String,
        "judge": pl.String,
        "status": pl.String,
        "score": pl.Float64,
    }
    return pl.concat(frames) if frames else pl.DataFrame(schema=schema)


def _records(lake: Lake, addresses: Addresses) -> pl.DataFrame:
    columns = [
        "id",
        "conversation_id",
        "session_id",
        "position",
        "speaker",
        "said_at",
        "text",
        "source_turn_ids",
    ]
    frames = [
        pl.concat([made(lake, store.store).select(columns) for made in (records, imported)])
        .select(pl.lit(store.name).alias("store"), *columns)
        .with_columns(pl.col("position").cast(pl.Int64))
        for store in addresses.stores
    ]
    return pl.concat(frames)


def _reuse(cells: pl.DataFrame, verdicts: pl.DataFrame) -> dict[str, int]:
    """How many cells share a state, and what that saved."""
    composed = cells.filter(pl.col("evidence_hash").is_not_null())
    states = composed.select("question_id", "evidence_hash").n_unique() if len(composed) else 0
    answered = composed.filter(pl.col("answer_status").is_not_null())
    asked = answered.select("question_id", "evidence_hash").n_unique() if len(answered) else 0
    judged = verdicts.filter(pl.col("status") != "missing").join(
        cells.select("arm", "question_id", "answer"), on=["arm", "question_id"]
    )
    distinct = judged.select("question_id", "answer", "judge").n_unique() if len(judged) else 0
    return {
        "cells": len(cells),
        "cells with evidence": len(composed),
        "distinct evidence states": states,
        "cells that share a state": len(composed) - states,
        "answers": asked,
        "answers saved": len(answered) - asked,
        "verdicts": distinct,
        "verdicts saved": len(judged) - distinct,
    }

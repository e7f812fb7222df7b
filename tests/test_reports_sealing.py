"""Optimism is open less sealed, with the interval that two independent samples have."""

import math

import numpy as np
import polars as pl

from reports.optimism import optimism
from reports.results import EVIDENCE_METRICS, Arm
from tests.report_fixture import sealing

ARMS = [Arm(f"{name}@k2", name, "k2", "2", "turns", False) for name in ("a", "b")]


def _cells(hits: dict[str, list[float | None]], kinds: list[str]) -> pl.DataFrame:
    rows = [
        {"arm": f"{arm}@k2", "question_id": f"q{place}", "kind": kinds[place]} | dict.fromkeys(EVIDENCE_METRICS, value)
        for arm, values in hits.items()
        for place, value in enumerate(values)
    ]
    schema = {"arm": pl.String, "question_id": pl.String, "kind": pl.String}
    return pl.DataFrame(rows, schema={**schema, **dict.fromkeys(EVIDENCE_METRICS, pl.Float64)})


def test_the_interval_is_that_of_two_independent_shares() -> None:
    rng = np.random.default_rng(7)
    first, second = (rng.random(n) < p for n, p in ((900, 0.6), (400, 0.5)))
    cells = [_cells({"a": v.astype(float).tolist(), "b": [1.0] * len(v)}, ["k"] * len(v)) for v in (first, second)]
    found = {(row.arm, row.metric): row for row in optimism(*cells, ARMS, (), samples=4000, seed=1)}
    row = found["a@k2", "complete_evidence"]
    p, q = first.mean(), second.mean()
    assert row.difference == p - q and (row.open_n, row.sealed_n) == (900, 400)
    half = 1.96 * math.sqrt(p * (1 - p) / 900 + q * (1 - q) / 400)
    assert row.low is not None and row.high is not None
    assert abs(row.low - (p - q - half)) < 0.006 and abs(row.high - (p - q + half)) < 0.006
    sure = found["b@k2", "complete_evidence"]
    assert (sure.difference, sure.low, sure.high) == (0.0, 0.0, 0.0)


def test_kinds_that_stand_apart_and_undefined_cells_are_no_part_of_it() -> None:
    kinds = ["k", "k", "apart", "k"]
    cells = _cells({"a": [1.0, None, 0.0, 1.0], "b": [0.0, None, 1.0, 1.0]}, kinds)
    rows = [row for row in optimism(cells, cells, ARMS, ("apart",), samples=200, seed=1) if row.metric == "gold_hit"]
    assert [(row.open, row.open_n) for row in rows] == [(1.0, 2), (0.5, 2)]


def test_without_an_open_split_nothing_is_invented() -> None:
    cells = _cells({"a": [1.0, 0.0], "b": [1.0, 1.0]}, ["k", "k"])
    row = optimism(cells.clear(), cells, ARMS, (), samples=200, seed=1)[0]
    assert (row.open, row.difference, row.low, row.high) == (None, None, None, None)
    assert row.sealed == 0.5


def test_a_report_says_first_look_only_of_the_first() -> None:
    said = sealing().lines()
    assert said[0].startswith("Sealed split (whole); not the first look at it: 1 unsealing and 2 freezes came before")
    assert "Primary comparison: a@k2 against b@k2 on gold_hit." in said
    assert "Taken as versioned on the author's word: m." in said

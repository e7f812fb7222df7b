"""Two runs are put side by side if they measured the same thing, or under a mark."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.compare import FIELDS, compare, page
from storage.errors import InputError

SAID: dict[str, Any] = {
    "benchmark": "locomo",
    "data": "a" * 64,
    "gold": "b" * 64,
    "split": "open",
    "denominators": {"kinds": [], "apart": [], "questions": 3},
    "answerer": ["extractive", {}, {"code": "x"}],
    "judges": {"lexical_match": ["lexical_match", {}, {"prompt": "p1"}]},
    "sufficiency": {"panel": {"planted": ["planted", {}, {"prompt": "p1"}]}, "adjudicator": None},
    "budgets": ["k5"],
    "seed": 1,
}


def _run(lake: Path, name: str, value: float | None, **changes: Any) -> str:
    folder = lake / "reports" / name
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps({"comparable": {**SAID, **changes}}))
    row = {"arm": "hybrid@k5", "k": "5", "kind": "all", "metric": "gold_hit", "value": value, "n": 3}
    pl.DataFrame([row], schema_overrides={"value": pl.Float64}).write_csv(folder / "main.csv")
    return name


OTHER: dict[str, Any] = {
    "benchmark": "beam",
    "data": "c" * 64,
    "gold": "c" * 64,
    "split": "sealed",
    "denominators": {"kinds": [], "apart": ["adversarial"], "questions": 3},
    "answerer": ["extractive", {}, {"code": "y"}],
    "judges": {"lexical_match": ["lexical_match", {}, {"prompt": "p2"}]},
    "sufficiency": {"panel": {"planted": ["planted", {}, {"prompt": "p2"}]}, "adjudicator": None},
    "budgets": ["k5", "k10"],
    "seed": 2,
}


@pytest.mark.parametrize("field", FIELDS)
def test_an_unequal_field_is_refused_by_name_and_shown_under_its_mark(field: str, tmp_path: Path) -> None:
    first, second = _run(tmp_path, "a", 0.5), _run(tmp_path, "b", 0.75, **{field: OTHER[field]})
    with pytest.raises(InputError, match=rf"compare: equal {field} expected.*--despite {field}"):
        compare(first, second, str(tmp_path))
    found = compare(first, second, str(tmp_path), [field])
    assert [each.field for each in found.despite] == [field]
    assert found.rows["difference"].to_list() == [0.25]


def test_an_analysis_is_no_run(tmp_path: Path) -> None:
    first, analysis = _run(tmp_path, "a", 0.5), _run(tmp_path, "a-pursuit", None)
    (tmp_path / "reports" / analysis / "main.csv").unlink()
    with pytest.raises(InputError, match="a report's folder or one of a expected, 'a-pursuit' found"):
        compare(first, analysis, str(tmp_path))


def test_one_despite_does_not_excuse_another_field(tmp_path: Path) -> None:
    first, second = _run(tmp_path, "a", 0.5), _run(tmp_path, "b", 0.5, data="c" * 64, seed=2)
    with pytest.raises(InputError, match="equal seed expected, 1 and 2 found"):
        compare(first, second, str(tmp_path), ["data"])


def test_equal_runs_compare_and_missing_stays_missing(tmp_path: Path) -> None:
    found = compare(_run(tmp_path, "a", 0.5), str(tmp_path / "reports" / _run(tmp_path, "b", None)), str(tmp_path))
    assert found.despite == [] and found.rows["difference"].to_list() == [None]


def test_what_else_two_runs_were_made_from_is_told_words_before_digests(tmp_path: Path) -> None:
    names = [_run(tmp_path, "a", 0.5), _run(tmp_path, "b", 0.5)]
    made = {"pool of turns": "a" * 64, "candidates of turns": "200, minmax", "encoder of turns": "minilm"}
    for name, more in zip(names, ({}, {"pool of turns": "b" * 64, "candidates of turns": "200, rrf"}), strict=True):
        file = tmp_path / "reports" / name / "summary.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "identity": made | more}))
    found = compare(*names, str(tmp_path))
    assert list(map(str, found.made)) == [
        "candidates of turns: 200, minmax and 200, rrf",
        f"pool of turns: {'a' * 16} and {'b' * 16}",
    ]
    assert "200, minmax in the first run; 200, rrf in the second" in page(found).read_text()


def test_an_unknown_run_or_field_is_refused(tmp_path: Path) -> None:
    name = _run(tmp_path, "a", 0.5)
    with pytest.raises(InputError, match="one of a expected, 'z' found"):
        compare(name, "z", str(tmp_path))
    with pytest.raises(InputError, match="--despite: one of benchmark"):
        compare(name, name, str(tmp_path), ["weather"])

"""Synthetic haystacks are made of real sessions, by a seed, and never pass for LongMemEval."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from flows.synth import SPREAD, Size, synth
from storage.errors import InputError
from tasks.sources import SOURCES
from tests.test_tasks_shared_sessions import haystacks


def stock(folder: Path) -> Path:
    """A file of LongMemEval's layout with 30 questions over 34 sessions."""
    rows = [{**row, "question_id": row["question_id"].removeprefix("synthetic-")} for row in haystacks(30)]
    rows[1]["question_id"] += "_abs"
    path = folder / "real.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def made(folder: Path, **size: Any) -> list[dict[str, Any]]:
    target = folder / f"{len(list(folder.iterdir()))}.json"
    synth(stock(folder), target, Size(**{"haystacks": 40, "sessions": 12, **size}))
    rows: list[dict[str, Any]] = json.loads(target.read_text(encoding="utf-8"))
    return rows


def test_a_seed_makes_one_file_and_another_seed_another(tmp_path: Path) -> None:
    assert made(tmp_path) == made(tmp_path)
    assert made(tmp_path) != made(tmp_path, seed=1)


def test_haystacks_have_the_size_asked_for_their_evidence_and_no_other(tmp_path: Path) -> None:
    rows = made(tmp_path)
    assert len(rows) == 40
    for number, row in enumerate(rows):
        assert 12 - SPREAD <= len(row["haystack_sessions"]) <= 12 + SPREAD
        held = dict(zip(row["haystack_session_ids"], row["haystack_sessions"], strict=True))
        assert row["answer_session_ids"] == [f"answer_{number % 30}"]
        evidence = {id for id, turns in held.items() if any(turn.get("has_answer") for turn in turns)}
        assert evidence == set(row["answer_session_ids"])


def test_real_sessions_recur_and_distinct_ones_do_not(tmp_path: Path) -> None:
    real = {json.dumps([t["content"] for t in s]) for row in haystacks(30) for s in row["haystack_sessions"]}
    for distinct in (0.0, 1.0):
        counts = Counter(
            json.dumps([turn["content"] for turn in turns])
            for row in made(tmp_path, distinct=distinct)
            for id, turns in zip(row["haystack_session_ids"], row["haystack_sessions"], strict=True)
            if id.startswith("synthetic-")
        )
        assert (set(counts) <= real) == (distinct == 0.0)
        assert (max(counts.values()) > 1) == (distinct == 0.0)


def test_it_is_read_as_synthetic_and_refused_as_longmemeval(tmp_path: Path) -> None:
    synth(stock(tmp_path), tmp_path / "synthetic.json", Size(haystacks=2, sessions=8))
    read = SOURCES["synthetic"].load(tmp_path / "synthetic.json")
    assert [gold.abstention for gold in read.gold] == [False, True]
    assert read.facts["session ids found again in their history"] == []
    with pytest.raises(InputError, match="run a synthetic file by the protocol `synthetic`"):
        _ = SOURCES["longmemeval_s"].load(tmp_path / "synthetic.json").facts
    with pytest.raises(InputError, match="a file made by `suffice synth` expected"):
        _ = SOURCES["synthetic"].load(tmp_path / "real.json").facts


def test_data_without_questions_and_a_size_of_nothing_are_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("[]")
    with pytest.raises(InputError, match="none found"):
        synth(tmp_path / "empty.json", tmp_path / "x", Size())
    with pytest.raises(InputError, match="does not exist"):
        synth(tmp_path / "gone.json", tmp_path / "x", Size())
    with pytest.raises(InputError, match="at least 1"):
        Size(haystacks=0)

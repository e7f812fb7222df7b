"""LongMemEval is read as it really is."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from storage.errors import InputError
from tasks.sources import SOURCES, locate
from tasks.sources.ingested import Ingested
from tasks.sources.longmemeval import load


def row(**changes: Any) -> dict[str, Any]:
    """One question over two sessions, the second of them earlier."""
    said: dict[str, Any] = {
        "question_id": "q1",
        "question_type": "multi-session",
        "question": "How many cats?",
        "answer": 2,
        "question_date": "2023/05/03 (Wed) 09:00",
        "haystack_dates": ["2023/05/02 (Tue) 10:00", "2023/05/01 (Mon) 10:00"],
        "haystack_session_ids": ["answer_b", "a"],
        "haystack_sessions": [
            [
                {"role": "user", "content": "a second cat", "has_answer": True},
                {"role": "assistant", "content": "lovely", "has_answer": False},
            ],
            [{"role": "user", "content": "hello"}],
        ],
        "answer_session_ids": ["answer_b"],
    }
    return said | changes


def read(folder: Path, *rows: Any) -> Ingested:
    path = folder / "x.json"
    path.write_text(json.dumps(list(rows) or [row()]), encoding="utf-8")
    return load(path)


@pytest.fixture(scope="module")
def sample(shared_data: Path) -> Ingested:
    return load(shared_data / "longmemeval" / "oracle_sample.json")


def test_the_real_sample_has_its_known_counts(sample: Ingested) -> None:
    counts = {label: fact for label, fact in sample.facts.items() if isinstance(fact, int)}
    assert counts == {
        "conversations": 83,
        "sessions": 158,
        "distinct sessions": 158,
        "turns": 1848,
        "distinct turns": 1848,
        "questions": 83,
        "multi-session questions": 18,
        "temporal-reasoning questions": 24,
        "knowledge-update questions": 18,
        "single-session-user questions": 10,
        "single-session-assistant questions": 5,
        "single-session-preference questions": 8,
        "abstention questions, each within its type": 4,
        "questions with an annotated turn": 83,
        "(question, turn) pairs": 159,
        "(question, session) pairs": 158,
    }


def test_the_real_sample_reports_what_is_irregular(sample: Ingested) -> None:
    found = {label: len(fact) for label, fact in sample.facts.items() if isinstance(fact, list)}
    assert found == {
        "questions without an annotated turn": 0,
        "answer sessions without an annotated turn": 10,
        "answer sessions that are not in the history": 0,
        "session ids found again in their history": 0,
        "empty sessions dropped": 0,
        "histories that are not in date order": 8,
        "questions asked before their history's last session": 11,
        "session or question dates that do not parse": 0,
        "answers that are no text": 8,
        "texts with characters replaced": 0,
    }


def test_the_real_instance_of_s_has_its_known_counts(shared_data: Path) -> None:
    one = load(shared_data / "longmemeval" / "s_single.json")
    assert [one.facts[label] for label in ("questions", "sessions", "turns", "(question, turn) pairs")] == [
        1,
        53,
        550,
        2,
    ]
    assert one.questions[0].asked_at == datetime(2023, 5, 30, 23, 40)
    assert None not in {turn.said_at for turn in one.turns}


def test_a_question_keeps_its_type_and_its_gold_apart(tmp_path: Path) -> None:
    question, gold = read(tmp_path).told[0].asked[0]
    assert (question.id, question.kind, question.asked_at) == ("q1", "multi-session", datetime(2023, 5, 3, 9))
    assert (gold.answer, gold.turn_ids, gold.session_ids) == ("2", ("q1/answer_b/1",), ("q1/answer_b",))
    assert not gold.abstention


def test_sessions_are_put_in_date_order_and_unknown_dates_are_none(tmp_path: Path) -> None:
    one = read(tmp_path)
    assert [turn.text for turn in one.turns] == ["hello", "a second cat", "lovely"]
    assert one.facts["histories that are not in date order"] == ["q1"]
    other = read(tmp_path, row(haystack_dates=["2023/05/02 (Tue) 10:00", "some day"], question_date="now"))
    assert [turn.said_at for turn in other.turns] == [datetime(2023, 5, 2, 10)] * 2 + [None]
    assert other.questions[0].asked_at is None
    assert other.facts["session or question dates that do not parse"] == ["q1/a: 'some day'", "q1: 'now'"]


def test_a_session_id_found_again_is_a_session_of_its_own_and_gold_names_the_first(tmp_path: Path) -> None:
    twice = row(haystack_session_ids=["answer_b", "answer_b"])
    one = read(tmp_path, twice)
    assert one.facts["session ids found again in their history"] == ["q1/answer_b"]
    assert {turn.session_id for turn in one.turns} == {"q1/answer_b", "q1/answer_b#2"}
    assert one.gold[0].turn_ids == ("q1/answer_b/1",)
    assert len({turn.id for turn in one.turns}) == 3


def test_an_empty_session_is_dropped_and_reported(tmp_path: Path) -> None:
    one = read(tmp_path, row(haystack_sessions=[row()["haystack_sessions"][0], []]))
    assert one.facts["empty sessions dropped"] == ["q1/a"]
    assert one.facts["sessions"] == 1


def test_abstention_is_told_by_the_suffix_and_stays_within_its_type(tmp_path: Path) -> None:
    one = read(tmp_path, row(question_id="q1_abs", question_type="temporal-reasoning"))
    assert (one.questions[0].kind, one.gold[0].abstention) == ("temporal-reasoning", True)
    assert one.facts["temporal-reasoning questions"] == 1
    assert one.facts["abstention questions, each within its type"] == 1


def test_a_preference_answer_is_a_rubric(tmp_path: Path) -> None:
    one = read(tmp_path, row(question_type="single-session-preference", answer="would like short replies"))
    assert one.gold[0].rubric == ("would like short replies",)


def test_a_question_before_its_last_session_is_reported_and_keeps_its_date(tmp_path: Path) -> None:
    one = read(tmp_path, row(question_date="2023/05/02 (Tue) 08:00"))
    assert one.facts["questions asked before their history's last session"] == ["q1"]
    assert one.questions[0].asked_at == datetime(2023, 5, 2, 8)


def test_a_session_that_recurs_has_one_content_address_whatever_its_date(tmp_path: Path) -> None:
    other = row(question_id="q2", haystack_dates=["2024/01/02 (Tue) 10:00", "2024/01/01 (Mon) 10:00"])
    one = read(tmp_path, row(), other)
    held = [membership for told in one.told for membership, _ in told.sessions]
    assert len(held) == 4
    assert len({membership.session for membership in held}) == one.facts["distinct sessions"] == 2
    assert held[1].prefix == "q1/answer_b" and held[1].position == 1


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], "non-empty list"),
        ([row(question_type="riddle")], "type of multi-session"),
        ([row(haystack_dates=[])], "as many session ids"),
        ([{"question_id": "q9"}], "question q9: LongMemEval's keys expected, KeyError at 'haystack_session_ids'"),
        ([3], "'{' expected"),
        ([row(), row()], "q1 found twice"),
    ],
)
def test_a_broken_file_is_one_clear_line(tmp_path: Path, rows: list[Any], expected: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(InputError, match=expected) as caught:
        _ = load(path).facts
    assert "\n" not in str(caught.value)


def test_the_official_and_the_cleaned_file_names_are_found_in_a_folder(tmp_path: Path) -> None:
    for name in ("longmemeval_s.json", "longmemeval_s_cleaned.json"):
        (tmp_path / name).write_text("[]", encoding="utf-8")
        assert locate("longmemeval_s", str(tmp_path)).name == name
    with pytest.raises(InputError, match=r"longmemeval_m_cleaned\.json or its folder"):
        locate("longmemeval_m", str(tmp_path))
    assert SOURCES["longmemeval_oracle"].load(tmp_path / "x").benchmark == "longmemeval_oracle"

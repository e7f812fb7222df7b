"""LoCoMo is read as it really is."""

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from storage.errors import InputError
from tasks.sources.locomo import load
from tests.conftest import SAMPLE, conversation, write_locomo

BY_CONVERSATION = {
    "conv-26": (32, 37, 13, 70, 47),
    "conv-30": (11, 26, 0, 44, 24),
    "conv-41": (31, 27, 8, 86, 41),
    "conv-42": (37, 40, 11, 111, 61),
    "conv-43": (31, 26, 14, 107, 64),
    "conv-44": (30, 24, 7, 62, 35),
    "conv-47": (20, 34, 13, 83, 40),
    "conv-48": (21, 42, 10, 118, 48),
    "conv-49": (37, 33, 13, 73, 40),
    "conv-50": (32, 32, 7, 87, 46),
}
KINDS = ("multi-hop", "temporal", "open-domain", "single-hop", "adversarial")


def test_the_release_has_its_known_counts(locomo_file: Path) -> None:
    facts = load(locomo_file).facts
    assert [facts[name] for name in ("conversations", "sessions", "turns", "questions")] == [
        10,
        272,
        5882,
        1986,
    ]
    assert [facts[f"{kind} questions"] for kind in KINDS] == [282, 321, 96, 841, 446]
    assert facts["questions with gold evidence"] == 1536
    assert facts["(question, turn) pairs"] == 2360
    assert facts["turns with an image caption"] == 1226
    assert len(facts["session dates without a session"]) == 16
    assert facts["questions without gold evidence"] == [
        "conv-26/q30",
        "conv-26/q46",
        "conv-50/q39",
        "conv-50/q42",
    ]
    assert facts["session dates that do not parse"] == []


def test_the_release_has_its_known_kinds_in_every_conversation(locomo_file: Path) -> None:
    counts = Counter((question.conversation_id, question.kind) for question in load(locomo_file).questions)
    found = {name: tuple(counts[name, kind] for kind in KINDS) for name in BY_CONVERSATION}
    assert found == BY_CONVERSATION


def test_the_release_evidence_is_repaired_or_reported(locomo_file: Path) -> None:
    read = load(locomo_file)
    gold = {row.question_id: row.turn_ids for row in read.gold}
    assert gold["conv-26/q37"] == ("conv-26/D8:6", "conv-26/D9:17")
    assert "conv-43/D11:26" in gold["conv-43/q18"]
    assert gold["conv-49/q31"] == ("conv-49/D4:4", "conv-49/D4:6", "conv-49/D9:1")
    assert gold["conv-50/q69"] == ("conv-50/D30:5",)
    assert len(read.facts["evidence strings repaired"]) == 6
    assert [note.partition(":")[0] for note in read.facts["evidence strings dropped"]] == [
        "conv-42/q58",
        "conv-42/q88",
        "conv-47/q38",
    ]
    assert sum(len(turns) == 1 for turns in gold.values()) == 1123


def test_the_release_integer_answers_become_text(locomo_file: Path) -> None:
    gold = {row.question_id: row.answer for row in load(locomo_file).gold}
    assert gold["conv-26/q1"] == "2022"
    assert all(gold[f"conv-26/q{place}"].isdigit() for place in (1, 26, 40, 49, 72, 75))


def test_the_release_repeats_questions_that_keep_their_own_ids(locomo_file: Path) -> None:
    questions = [question for question in load(locomo_file).questions if question.conversation_id == "conv-48"]
    repeated = [text for text, count in Counter(question.text for question in questions).items() if count > 1]
    assert len(repeated) == 11
    assert len({question.id for question in questions}) == len(questions)


def test_an_adversarial_question_has_neither_answer_nor_evidence(tmp_path: Path) -> None:
    read = load(write_locomo(tmp_path / "x.json"))
    assert read.questions[2].kind == "adversarial"
    assert (read.gold[2].answer, read.gold[2].turn_ids) == (None, ())


def test_an_adversarial_answer_is_not_gold_even_where_answer_is_given(tmp_path: Path) -> None:
    row = {
        "question": "q",
        "answer": "trap",
        "adversarial_answer": "trap",
        "evidence": ["D1:1"],
        "category": 5,
    }
    assert load(write_locomo(tmp_path / "x.json", conversation(qa=[row]))).gold[0].answer is None


def test_sessions_are_ordered_by_number_and_now_is_the_last_ones_date(tmp_path: Path) -> None:
    sessions: dict[str, Any] = {"speaker_a": "Ada", "speaker_b": "Bo"}
    for number in (10, 9, 2, 1):
        sessions[f"session_{number}"] = [{"speaker": "Ada", "dia_id": f"D{number}:1", "text": f"day {number}"}]
        sessions[f"session_{number}_date_time"] = f"8:00 am on {number} May, 2023"
    sessions["session_11_date_time"] = "8:00 am on 11 May, 2023"
    read = load(write_locomo(tmp_path / "x.json", conversation(conversation=sessions, qa=conversation()["qa"][2:])))
    assert [turn.text for turn in read.turns] == ["day 1", "day 2", "day 9", "day 10"]
    assert read.questions[0].asked_at == datetime(2023, 5, 10, 8)
    assert read.facts["session dates without a session"] == ["c1 session_11_date_time"]


def test_a_date_that_does_not_parse_is_unknown_never_now(tmp_path: Path) -> None:
    broken = conversation()
    broken["conversation"]["session_2_date_time"] = "last Tuesday"
    read = load(write_locomo(tmp_path / "x.json", broken))
    assert [turn.said_at for turn in read.turns[2:]] == [None, None]
    assert read.facts["session dates that do not parse"] == ["c1/S2: 'last Tuesday'"]


def test_evidence_of_every_known_shape(tmp_path: Path) -> None:
    shapes: list[tuple[Any, tuple[str, ...]]] = [
        (["D1:1; D2:2"], ("c1/D1:1", "c1/D2:2")),
        (["D2:2 D1:01"], ("c1/D1:1", "c1/D2:2")),
        (["D:1:2"], ("c1/D1:2",)),
        (["D"], ()),
        (["D9:9"], ()),
        ([], ()),
        ("D2:1", ("c1/D2:1",)),
    ]
    rows = [{"question": "q", "answer": "a", "evidence": raw, "category": 4} for raw, _ in shapes]
    gold = load(write_locomo(tmp_path / "x.json", conversation(qa=rows))).gold
    assert [row.turn_ids for row in gold] == [expected for _, expected in shapes]


def test_a_byte_order_mark_and_characters_that_cannot_be_stored_are_survived(tmp_path: Path) -> None:
    hostile = conversation()
    hostile["conversation"]["session_1"][0]["text"] = "a\x00b\ud800c \u202eright"
    path = tmp_path / "x.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps([hostile]).encode())
    read = load(path)
    assert read.turns[0].text == "ab\ufffdc \u202eright"
    assert read.facts["texts with characters replaced"] == ["c1/D1:1"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'[{"sample_id": "c1", "conv', "complete JSON expected"),
        (b'[{"a": "\xff"}]', "UTF-8 expected"),
        (b'[{"a": 1, "a": 2}]', "'a' found twice"),
        (b"{}", "list of conversations expected"),
        (b"[]", "list of conversations expected"),
        (b"[3]", "LoCoMo's keys expected"),
        (b'[{"sample_id": "c1"}]', "KeyError at 'conversation'"),
    ],
)
def test_a_broken_file_is_one_clear_line(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=expected) as caught:
        _ = load(path).facts
    assert "\n" not in str(caught.value)


def test_a_missing_answer_or_unknown_category_is_refused(tmp_path: Path) -> None:
    for row, expected in (
        ({"question": "q", "evidence": [], "category": 4}, "'answer'"),
        ({"question": "q", "answer": "a", "evidence": [], "category": 7}, "category of 1 to 5"),
    ):
        with pytest.raises(InputError, match=expected):
            _ = load(write_locomo(tmp_path / "x.json", conversation(qa=[row]))).facts


def test_a_repeated_turn_id_is_refused(tmp_path: Path) -> None:
    broken = conversation()
    broken["conversation"]["session_2"][0]["dia_id"] = "D1:1"
    with pytest.raises(InputError, match="c1/D1:1 found twice"):
        _ = load(write_locomo(tmp_path / "x.json", broken)).facts


def test_a_changed_gold_answer_changes_the_gold_address_alone(tmp_path: Path) -> None:
    changed = conversation()
    changed["qa"][0]["answer"] = "8 May 2023"
    one = load(write_locomo(tmp_path / "1.json"))
    two = load(write_locomo(tmp_path / "2.json", changed))
    assert one.addresses.dataset == two.addresses.dataset
    assert one.addresses.gold != two.addresses.gold


def test_the_bundled_sample_is_a_benchmark() -> None:
    facts = load(SAMPLE).facts
    assert facts["conversations"] == 4
    assert facts["sessions"] == 48
    assert facts["questions"] >= 80
    assert all(facts[f"{kind} questions"] > 0 for kind in KINDS)
    assert facts["session dates that do not parse"] == facts["texts with characters replaced"] == []


def test_the_bundled_sample_needs_several_sessions() -> None:
    read = load(SAMPLE)
    kinds = {question.id: question.kind for question in read.questions}
    spans = [len(row.session_ids) for row in read.gold if kinds[row.question_id] == "multi-hop"]
    assert min(spans) >= 2
    assert max(spans) >= 3

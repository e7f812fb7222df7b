"""BEAM is read as it really is."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from storage.errors import InputError
from tasks.sources import content_digest, locate
from tasks.sources.beam import KINDS, load


def message(id: int, content: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"id": id, "role": role, "content": content, **more}


def batch(number: int, *messages: dict[str, Any]) -> dict[str, Any]:
    return {"batch_number": number, "time_anchor": None, "turns": [list(messages)]}


CHAT = [
    batch(
        1,
        message(0, "I never wrote Flask. ->-> 1,3", time_anchor="March-15-2024"),
        message(1, "Noted.", "assistant"),
    ),
    batch(2, message(2, "I wrote a Flask route ->> 2,N/A", time_anchor="April-05-2024")),
]
PROBES: dict[str, Any] = {
    "contradiction_resolution": [
        {
            "question": "Have I written Flask?",
            "ideal_answer": "You said both.",
            "rubric": ["says both"],
            "source_chat_ids": {"first_statement": [0], "second_statement": [2]},
        }
    ],
    "abstention": [{"question": "My cat?", "ideal_response": "No information.", "rubric": ["says so"]}],
}


def write(folder: Path, chat: Any = None, probes: Any = None, *, number: int = 1, truncated: Any = None) -> Path:
    place = folder / "100K" / str(number)
    (place / "probing_questions").mkdir(parents=True, exist_ok=True)
    (place / "chat.json").write_text(json.dumps(chat or CHAT), encoding="utf-8")
    if truncated:
        (place / "chat_trunecated.json").write_text(json.dumps(truncated), encoding="utf-8")
    text = probes if isinstance(probes, str) else json.dumps(probes or PROBES)
    (place / "probing_questions" / "probing_questions.json").write_text(text, encoding="utf-8")
    return folder / "100K"


def test_the_real_100k_chats_have_their_known_counts(shared_data: Path) -> None:
    facts = load(shared_data / "beam" / "100K").facts
    labels = ("conversations", "sessions", "turns", "questions", "questions with gold evidence", "rubric items")
    assert [facts[label] for label in labels] == [15, 60, 3744, 300, 269, 794]
    assert [facts[f"{kind} questions"] for kind in KINDS] == [30] * 10
    assert facts["(question, turn) pairs"] == 859
    assert facts["messages with a generator's marker removed"] == 1490
    assert facts["chats read from their truncated file"] == [f"100K-{number}" for number in (5, 7, 10, 11, 12)]
    assert facts["questions without gold evidence, abstention aside"] == ["100K-9/preference_following-1"]
    kept = ("chats read from their truncated file", "questions without gold evidence, abstention aside")
    assert all(fact == [] for label, fact in facts.items() if isinstance(fact, list) and label not in kept)


def test_the_real_500k_chats_have_their_known_counts(shared_data: Path) -> None:
    facts = load(shared_data / "beam" / "500K").facts
    labels = ("conversations", "sessions", "turns", "questions", "questions with gold evidence", "rubric items")
    assert [facts[label] for label in labels] == [2, 20, 1676, 40, 35, 134]
    assert facts["questions without gold evidence, abstention aside"] == ["500K-1/knowledge_update-0"]


def test_no_marker_is_left_in_the_real_chats(shared_data: Path) -> None:
    for scale in ("100K", "500K"):
        assert not [turn.id for turn in load(shared_data / "beam" / scale).turns if "->->" in turn.text]


def test_markers_are_removed_and_dates_are_those_of_the_batch(tmp_path: Path) -> None:
    read = load(write(tmp_path))
    assert [turn.text for turn in read.turns] == ["I never wrote Flask.", "Noted.", "I wrote a Flask route"]
    assert [turn.said_at for turn in read.turns] == [datetime(2024, 3, 15)] * 2 + [datetime(2024, 4, 5)]
    assert {question.asked_at for question in read.questions} == {datetime(2024, 4, 5)}


def test_an_arrow_that_is_no_marker_stays(tmp_path: Path) -> None:
    text = "a -> b, and ptr->x->-> then 1,3 more"
    assert load(write(tmp_path, [batch(1, message(0, text))])).turns[0].text == text


def test_both_parts_of_evidence_are_gold_and_abstention_has_none(tmp_path: Path) -> None:
    read = load(write(tmp_path))
    gold = {row.question_id.rpartition("/")[2]: row for row in read.gold}
    both = gold["contradiction_resolution-0"]
    assert both.turn_ids == ("100K-1/0", "100K-1/2")
    assert both.session_ids == ("100K-1/B1", "100K-1/B2")
    assert (both.answer, both.rubric) == ("You said both.", ("says both",))
    none = gold["abstention-0"]
    assert (none.answer, none.turn_ids, none.abstention) == ("No information.", (), True)


def test_probing_questions_may_be_a_literal_and_are_never_run(tmp_path: Path) -> None:
    read = load(write(tmp_path, probes=repr(PROBES)))
    assert len(read.questions) == 2
    assert read.facts["probing questions that are Python literals"] == ["100K-1"]
    with pytest.raises(InputError, match="complete JSON expected"):
        _ = load(write(tmp_path, probes="__import__('os').getcwd()")).facts


def test_nested_evidence_is_flattened_and_what_names_no_message_is_reported(tmp_path: Path) -> None:
    row = {"question": "q", "answer": "a", "rubric": ["r"], "source_chat_ids": [0, [1, 2], "--", 99]}
    read = load(write(tmp_path, probes={"event_ordering": [row]}))
    assert read.gold[0].turn_ids == ("100K-1/0", "100K-1/1", "100K-1/2")
    assert read.facts["evidence ids of no message, dropped"] == [
        "100K-1/event_ordering-0: '--'",
        "100K-1/event_ordering-0: 99",
    ]


def test_a_repeated_message_id_is_a_turn_of_its_own_and_no_evidence(tmp_path: Path) -> None:
    chat = [batch(1, message(0, "one"), message(1, "two")), batch(2, message(0, "three"))]
    row = {"question": "q", "answer": "a", "rubric": ["r"], "source_chat_ids": [0, 1]}
    read = load(write(tmp_path, chat, {"summarization": [row]}))
    assert [turn.id for turn in read.turns] == ["100K-1/0", "100K-1/1", "100K-1/0#2"]
    assert read.gold[0].turn_ids == ("100K-1/1",)
    assert read.facts["evidence ids of several messages, dropped"] == ["100K-1/summarization-0: 0"]
    assert read.facts["sessions without a date that parses"] == ["100K-1/B1", "100K-1/B2"]


def test_plans_of_a_10m_chat_follow_each_other(tmp_path: Path) -> None:
    chat = [
        {"plan-1": [batch(1, message(0, "a"))], "plan-2": None},
        {"plan-1": None, "plan-2": [batch(1, message(1, "b")), batch(2, message(2, "c"))]},
    ]
    read = load(write(tmp_path, chat))
    assert [turn.text for turn in read.turns] == ["a", "b", "c"]
    assert [turn.session_id for turn in read.turns] == ["100K-1/P1B1", "100K-1/P2B1", "100K-1/P2B2"]


def test_the_truncated_chat_is_read_and_chats_are_ordered_by_number(tmp_path: Path) -> None:
    for number in (10, 9, 2):
        folder = write(tmp_path, number=number)
    folder = write(tmp_path, number=2, truncated=CHAT[:1], probes={"abstention": PROBES["abstention"]})
    read = load(folder)
    assert list(dict.fromkeys(turn.conversation_id for turn in read.turns)) == ["100K-2", "100K-9", "100K-10"]
    assert sum(turn.conversation_id == "100K-2" for turn in read.turns) == 2
    assert read.facts["chats read from their truncated file"] == ["100K-2"]


def test_a_scale_is_found_in_the_release_and_any_changed_file_changes_its_digest(tmp_path: Path) -> None:
    folder = write(tmp_path / "chats")
    for named in (tmp_path, tmp_path / "chats", folder):
        assert locate("beam_100k", str(named)) == folder
    with pytest.raises(InputError, match="500K or its folder"):
        locate("beam_500k", str(tmp_path))
    before = content_digest("beam_100k", folder)
    (folder / "1" / "labels.txt").write_text("not read")
    assert content_digest("beam_100k", folder) == before
    write(tmp_path / "chats", truncated=CHAT[:1])
    assert content_digest("beam_100k", folder) != before


@pytest.mark.parametrize(
    ("chat", "probes", "expected"),
    [
        ([3], None, "BEAM's keys expected"),
        ({"a": 1}, None, "non-empty list of batches"),
        (None, {"riddles": []}, "'riddles' found"),
        (None, {"abstention": [{}]}, "KeyError at 'question'"),
    ],
)
def test_a_broken_folder_is_one_clear_line(tmp_path: Path, chat: Any, probes: Any, expected: str) -> None:
    with pytest.raises(InputError, match=expected) as caught:
        _ = load(write(tmp_path, chat, probes)).facts
    assert "\n" not in str(caught.value)


def test_a_folder_without_chats_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="numbered folders of chats expected"):
        _ = load(tmp_path).facts

"""What other systems' searches return becomes candidates in their order, with scores in their direction."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from flows import protocol as protocols
from flows.pools import import_pool
from storage.errors import InputError
from storage.pool_files import POOL, QUERIES, RESIDENT, read
from tasks.imported.dumps import convert, time_of
from tasks.imported.formats import FORMATS
from tests.conftest import write_locomo

RESULTS: dict[str, Any] = {
    "lightmem": [
        {
            "id": "p7",
            "score": 0.81,
            "vector": [0.6, 0.8],
            "payload": {"memory": "Ada has a parrot.", "time_stamp": "2023-05-08T13:56:00", "speaker_name": "Ada"},
        },
        {"id": "p2", "score": 0.4, "vector": [0.0, 1.0], "payload": {"memory": "Bo runs.", "time_stamp": "some day"}},
    ],
    "simplemem": {
        "semantic": [
            [{"entry_id": "e1", "lossless_restatement": "Ada adopted a parrot on 7 May 2023.", "timestamp": None}],
            [{"entry_id": "e2", "lossless_restatement": "Kiwi is the parrot's name.", "timestamp": "2023-06-01"}],
        ],
        "keyword": [[{"entry_id": "e1", "lossless_restatement": "Ada adopted a parrot on 7 May 2023."}]],
        "structured": [[{"entry_id": "e3", "lossless_restatement": "Bo asked after the parrot."}]],
    },
    "a_mem": [
        {
            "id": 3,
            "content": "I adopted a parrot.",
            "context": "pets",
            "keywords": ["parrot", "adoption"],
            "tags": [],
            "timestamp": "202305081356",
            "distance": 0.2,
        },
        {"id": 5, "content": "He is called Kiwi.", "timestamp": "202306010905", "distance": 0.7},
        {"id": 9, "content": "We keep birds.", "timestamp": "unknown", "linked": True},
    ],
    "memorybank": [
        {"index": 4, "chunk": "Kiwi sings.", "date": "2023-06-01", "score": 1.4},
        {"index": 1, "chunk": "A parrot came.", "date": "2023-05-08", "score": 0.3, "expansion": ["It is green."]},
    ],
    "memoryos": {
        "retrieved_pages": [
            {
                "page_id": "g1",
                "user_input": "I adopted a parrot.",
                "agent_response": "Lovely!",
                "timestamp": "2023-05-08 13:56:00",
                "score": 0.9,
                "page_embedding": [1.0, 0.0],
            }
        ],
        "retrieved_user_knowledge": [{"knowledge": "Ada keeps birds.", "timestamp": "2023-05-08"}],
        "user_profile": "Ada likes animals.",
        "short_term_memory": [{"user_input": "Hello.", "agent_response": "Hi."}],
    },
    "memos": {
        "speaker_a": {
            "text_mem": [
                {
                    "memories": [
                        {
                            "id": "m1",
                            "memory": "Ada has a parrot.",
                            "metadata": {"relativity": 0.5, "sources": [{"message_id": "D1:1"}, "said"]},
                        },
                        {"id": "m2", "memory": "Bo likes rain.", "metadata": {"relativity": 0.2}},
                    ]
                }
            ],
            "pref_mem": [{"memories": [{"memory": "Ada prefers birds to dogs."}]}],
        },
        "speaker_b": {
            "text_mem": [
                {
                    "memories": [
                        {"id": "m3", "memory": "Kiwi is green.", "metadata": {"relativity": 0.4}},
                        {"id": "m1", "memory": "Ada has a parrot.", "metadata": {"relativity": 0.45}},
                    ]
                }
            ]
        },
    },
}
"""One small search result in each system's shape."""

CANDIDATES = {
    "lightmem": [("p7", 0.81, "cosine", True), ("p2", 0.4, "cosine", True)],
    "simplemem": [("e1", None, "none", None), ("e2", None, "none", None), ("e3", None, "none", None)],
    "a_mem": [("3", 0.2, "distance", False), ("5", 0.7, "distance", False), ("9", None, "none", None)],
    "memorybank": [("1", 0.3, "l2", False), ("4", 1.4, "l2", False)],
    "memoryos": [("g1", 0.9, "dot", True), ("user_knowledge-*", None, "none", None)],
    "memos": [("m1", 0.5, "hybrid", True), ("m3", 0.4, "hybrid", True), ("m2", 0.2, "hybrid", True)],
}
"""Id, score, its kind and direction, in the order of the rank."""


def _dump(path: Path, name: str, **more: Any) -> Path:
    said = {"conversation_id": "c1", "question_id": "c1/q0", "results": RESULTS[name], **more}
    path.write_text(json.dumps(said) + "\n\n", encoding="utf-8")
    return path


def _rows(tmp_path: Path, name: str) -> list[dict[str, Any]]:
    return convert(_dump(tmp_path / "d.jsonl", name), name, "locomo", "r1").pool


def test_every_format_has_a_case() -> None:
    assert set(RESULTS) == set(CANDIDATES) == set(FORMATS)


def _generic(id: str) -> str:
    """An id without the digest in it."""
    name, dash, _ = id.partition("-")
    return f"{name}-*" if dash else id


@pytest.mark.parametrize("name", FORMATS)
def test_candidates_keep_the_systems_order_and_the_direction_of_its_score(tmp_path: Path, name: str) -> None:
    rows = _rows(tmp_path, name)
    assert [row["native_rank"] for row in rows] == list(range(len(rows)))
    found = [
        (_generic(row["candidate_id"]), row["native_score"], row["score_kind"], row["higher_is_better"]) for row in rows
    ]
    assert found == CANDIDATES[name]


@pytest.mark.parametrize("name", FORMATS)
def test_a_converted_dump_holds_as_a_pool(tmp_path: Path, name: str) -> None:
    protocol = protocols.load("sample", {"data.path": str(write_locomo(tmp_path / "x.json"))})
    dump, to = _dump(tmp_path / "night.jsonl", name), tmp_path / "pool"
    told = import_pool(protocol, str(tmp_path / "lake"), str(dump), name, str(to), "")
    assert told["system"] == FORMATS[name].system
    assert told["rows"] == told["candidates"] == len(CANDIDATES[name])
    pool, asked = read(to, POOL), read(to, QUERIES)
    assert pool is not None and set(pool["run_id"]) == {"night"}
    assert asked is not None and asked["question_id"].to_list() == ["c1/q0"]
    assert (read(to, RESIDENT) is not None) == (name in ("memoryos", "memos"))


def test_a_date_that_cannot_be_read_is_unknown_and_kept_as_written(tmp_path: Path) -> None:
    first, second = _rows(tmp_path, "lightmem")
    assert first["timestamp"] == datetime(2023, 5, 8, 13, 56) and first["speaker"] == "Ada"
    assert (second["timestamp"], second["timestamp_raw"]) == (None, "some day")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("202305081356", datetime(2023, 5, 8, 13, 56)),
        ("2023-05-08", datetime(2023, 5, 8)),
        ("2023-05-08T13:56:00+02:00", datetime(2023, 5, 8, 13, 56)),
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56)),
        ("yesterday", None),
        ("", None),
        (None, None),
        (1683554160, None),
    ],
)
def test_a_date_is_a_local_time_or_unknown(text: object, expected: datetime | None) -> None:
    assert time_of(text) == expected


def test_an_entry_that_several_searches_found_stands_once_at_its_first_place(tmp_path: Path) -> None:
    rows = _rows(tmp_path, "simplemem")
    assert [row["channels"] for row in rows] == [["semantic", "keyword"], ["semantic"], ["structured"]]


def test_a_note_is_shown_with_what_was_derived_from_it(tmp_path: Path) -> None:
    rows = _rows(tmp_path, "a_mem")
    assert rows[0]["text"] == "I adopted a parrot. (context: pets; keywords: parrot, adoption)"
    assert rows[2]["channels"] == ["linked"]


def test_a_seed_brings_its_chunks_along_and_counts_once(tmp_path: Path) -> None:
    rows = _rows(tmp_path, "memorybank")
    assert rows[0]["text"] == "A parrot came.\nIt is green."
    assert rows[0]["group_id"] == "2023-05-08"


def test_profile_and_short_term_memory_are_resident_not_candidates(tmp_path: Path) -> None:
    files = convert(_dump(tmp_path / "d.jsonl", "memoryos"), "memoryos", "locomo", "r1")
    assert [(row["kind"], row["text"]) for row in files.resident] == [
        ("profile", "Ada likes animals."),
        ("summary", "User: Hello.\nAgent: Hi."),
    ]
    assert files.pool[0]["text"] == "User: I adopted a parrot.\nAgent: Lovely!"


def test_two_speakers_lists_are_merged_by_score_and_a_memory_of_both_stands_once(tmp_path: Path) -> None:
    rows = _rows(tmp_path, "memos")
    assert rows[0]["channels"] == ["speaker_a", "speaker_b"]
    assert rows[0]["source_turn_ids"] == ["D1:1"] and rows[1]["source_turn_ids"] == []


def test_vectors_keep_the_name_of_their_embedder(tmp_path: Path) -> None:
    dump = _dump(tmp_path / "d.jsonl", "lightmem", embedder_id="bge", query_embedding=[1.0, 0.0])
    files = convert(dump, "lightmem", "locomo", "r1")
    assert {row["embedder_id"] for row in files.pool + files.queries} == {"bge"}
    assert files.queries[0]["embedding"] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", "line 1: results .* expected, JSONDecodeError"),
        ('{"question_id": "q", "conversation_id": "c", "results": [{"id": 1}]}', "KeyError 'payload' found"),
        ('{"question_id": "q", "conversation_id": "c", "results": 3}', "TypeError"),
        ('{"results": []}', "KeyError 'question_id' found"),
        ("[]", "TypeError"),
    ],
)
def test_a_line_of_another_shape_is_one_clear_line(tmp_path: Path, line: str, expected: str) -> None:
    (tmp_path / "d.jsonl").write_text(line, encoding="utf-8")
    with pytest.raises(InputError, match=expected):
        convert(tmp_path / "d.jsonl", "lightmem", "locomo", "r1")
    with pytest.raises(InputError, match="one of lightmem, simplemem"):
        convert(tmp_path / "d.jsonl", "other", "locomo", "r1")


def test_a_dump_that_does_not_hold_leaves_no_pool_behind(tmp_path: Path) -> None:
    protocol = protocols.load("sample", {"data.path": str(write_locomo(tmp_path / "x.json"))})
    dump = _dump(tmp_path / "d.jsonl", "lightmem", question_id="c1/q9")
    with pytest.raises(InputError, match="row 1, column question_id"):
        import_pool(protocol, str(tmp_path / "lake"), str(dump), "lightmem", str(tmp_path / "pool"), "")
    assert not list((tmp_path / "pool").iterdir())
    with pytest.raises(InputError, match="name it with --to"):
        import_pool(protocol, str(tmp_path / "lake"), str(dump), "lightmem", "", "")


def test_text_that_cannot_be_stored_is_mended(tmp_path: Path) -> None:
    results = [{"id": "p", "payload": {"memory": "a\x00b \ud800"}}]
    dump = _dump(tmp_path / "d.jsonl", "lightmem", results=results)
    assert convert(dump, "lightmem", "locomo", "r1").pool[0]["text"] == "ab \ufffd"

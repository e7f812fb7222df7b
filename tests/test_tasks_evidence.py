"""What is shown, under which address, and how it is scored against gold."""

import random
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers.types import Budget
from storage.records import Gold, Record
from tasks.evidence import evidence_hash, line, line_digest, rendered, spoken
from tasks.metrics import evidence_metrics, rank_metrics
from tasks.oracle import assemble

RECORD = Record("c/D1:1", "c", "c/S1", 0, "Ada", "Ada: Hello.", datetime(2023, 5, 8, 13, 56), ("c/D1:1",))


def test_a_record_is_shown_with_its_date_where_it_is_known() -> None:
    assert line(RECORD) == "[1:56 pm on 8 May, 2023] Ada: Hello."
    assert line(replace(RECORD, said_at=None)) == "Ada: Hello."
    assert rendered([RECORD, replace(RECORD, said_at=None)]).count("\n") == 1


@pytest.mark.parametrize(
    ("hour", "expected"),
    [(0, "12:05 am"), (9, "9:05 am"), (12, "12:05 pm"), (13, "1:05 pm"), (23, "11:05 pm")],
)
def test_hours_are_spoken_as_the_benchmark_writes_them(hour: int, expected: str) -> None:
    assert spoken(datetime(2023, 5, 8, hour, 5)) == f"{expected} on 8 May, 2023"


def test_the_address_changes_with_text_date_id_and_order() -> None:
    other = replace(RECORD, id="c/D1:2", text="Bo: Hi.")
    variants = [
        [RECORD, other],
        [other, RECORD],
        [RECORD],
        [replace(RECORD, text="Ada: Hello!"), other],
        [replace(RECORD, said_at=None), other],
    ]
    addresses = {
        evidence_hash([r.id for r in records], {r.id: line_digest(r) for r in records}) for records in variants
    }
    assert len(addresses) == len(variants)


SOURCES = {"r1": ("t1",), "r2": ("t2", "t3"), "r3": ("t4",), "r0": ()}
SESSIONS = {"t1": "s1", "t2": "s1", "t3": "s2", "t4": "s3"}
SPEAKERS = {"t1": "user", "t2": "user", "t3": "assistant", "t4": "assistant"}
GOLD = Gold("q", "a", ("t1", "t4"), ("s1", "s3"))


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
        (["r1"], (1.0, 0.5, 0.0, 0.5, 0.0, 1.0, 1.0, 1.0)),
        (["r2"], (0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0)),
        (["r2", "r3"], (1.0, 0.5, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0)),
        (["r3", "r1"], (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)),
        (["r1", "r0"], (None,) * 8),
    ],
)
def test_metrics_of_states_worked_out_by_hand(records: list[str], expected: tuple[float | None, ...]) -> None:
    assert tuple(evidence_metrics(GOLD, records, SOURCES, SESSIONS, SPEAKERS).values()) == expected


def test_metrics_without_gold_are_undefined_not_perfect() -> None:
    assert set(evidence_metrics(Gold("q", "a", (), ()), ["r1"], SOURCES, SESSIONS, SPEAKERS).values()) == {None}


def test_a_question_with_evidence_sessions_but_no_annotated_turn_is_a_miss_of_turn_hit_alone() -> None:
    found = evidence_metrics(Gold("q", "a", (), ("s1",)), ["r1"], SOURCES, SESSIONS, SPEAKERS)
    defined = {name: value for name, value in found.items() if value is not None}
    assert defined == {"session_recall": 1.0, "complete_sessions": 1.0, "turn_hit": 0.0}


def test_gold_that_only_the_assistant_said_has_no_user_recall() -> None:
    found = evidence_metrics(Gold("q", "a", ("t4",), ("s3",)), ["r3"], SOURCES, SESSIONS, SPEAKERS)
    assert (found["gold_hit"], found["user_recall_any"], found["user_recall_all"]) == (1.0, None, None)


def test_rank_metrics_worked_out_by_hand() -> None:
    gold = Gold("q", "a", ("t1", "t2", "t4"), ("s1", "s3"))
    found = rank_metrics(gold, [["t3"], ["t4"], ["t1"], ["t2"]], SPEAKERS, 4)
    ideal = 1 + 1 / np.log2(3) + 1 / 2
    assert found["ndcg"] == pytest.approx((1 / np.log2(3) + 1 / 2 + 1 / np.log2(5)) / ideal)
    assert found["user_ndcg_any"] == 1.0


@given(st.lists(st.booleans(), min_size=1, max_size=12), st.integers(1, 12), st.randoms())
def test_user_ndcg_any_is_the_release_s_arithmetic(relevant: list[bool], k: int, draw: random.Random) -> None:
    """The release's formula, written out from its definition over a ranking of user turns."""
    ids = [f"u{place}" for place in range(len(relevant))]
    wanted = [id for id, own in zip(ids, relevant, strict=True) if own]
    ranking = draw.sample(ids, len(ids))
    gains = [1.0] + [1 / np.log2(rank) for rank in range(2, len(ids) + 1)]
    actual = sum(gain for gain, id in zip(gains[:k], ranking[:k], strict=True) if id in wanted)
    best = sum(gains[: min(k, len(wanted))])
    found = rank_metrics(Gold("q", "a", tuple(wanted), ()), [[id] for id in ranking[:k]], dict.fromkeys(ids, "user"), k)
    assert found["user_ndcg_any"] == (pytest.approx(actual / best) if wanted else None)


TURNS = [f"t{i}" for i in range(12)]


@given(
    gold=st.sets(st.sampled_from(TURNS)),
    pool=st.lists(st.sampled_from(TURNS), unique=True),
    records=st.none() | st.integers(0, 15),
    tokens=st.none() | st.integers(0, 40),
)
def test_the_oracle_is_the_ceiling_within_its_budget(
    gold: set[str], pool: list[str], records: int | None, tokens: int | None
) -> None:
    sources = {turn: (turn,) for turn in TURNS}
    counts = {turn: 1 + place % 5 for place, turn in enumerate(TURNS)}
    ids = assemble(gold, pool, sources, counts, Budget(records=records, tokens=tokens)).ids
    assert len(set(ids)) == len(ids) <= (records if records is not None else len(TURNS))
    assert tokens is None or sum(counts[id] for id in ids) <= tokens
    found = [id in gold for id in ids]
    assert found == sorted(found, reverse=True), "gold comes first"
    if tokens is None:
        assert sum(found) == min(len(gold), records if records is not None else len(gold))
    assert set(ids) <= gold | set(pool)

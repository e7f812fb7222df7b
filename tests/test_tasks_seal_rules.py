"""Split rules choose what they say; marks that give answers away are gone from what is stored in the clear."""

import json
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage import holdings
from storage.errors import InputError
from storage.lake import Lake
from storage.records import Question
from storage.seal import new_identity
from tasks.marks import unmarked
from tasks.sealing import seal_split
from tasks.sources import SOURCES, locate
from tasks.splits import chosen
from tests.conftest import REAL_DATA


def _questions(count: int = 40) -> list[Question]:
    kinds = ("temporal", "multi-hop", "multi-hop", "rare")
    return [
        Question(f"c{n % 3}/q{n}", f"c{n % 3}", "rare" if n == 0 else kinds[n % 3], None, f"{n}?") for n in range(count)
    ]


def test_rules_seal_what_they_say(tmp_path: Path) -> None:
    questions = _questions()
    assert chosen("whole", questions) == ("whole", {question.id for question in questions})
    stated, ids = chosen('conversations(ids="c0, c2")', questions)
    assert ids == {question.id for question in questions if question.conversation_id != "c1"}
    assert stated == "conversations(ids=c0, c2)"
    (tmp_path / "ids.txt").write_text("c1/q1\n\nc2/q2\n")
    stated, ids = chosen(f'ids(file="{tmp_path / "ids.txt"}")', questions)
    assert ids == {"c1/q1", "c2/q2"} and stated.startswith("ids(sha256=") and "c1/q1" not in stated


@settings(deadline=None)
@given(share=st.floats(0.05, 0.95), seed=st.integers(0, 99), order=st.randoms(use_true_random=False))
def test_a_fraction_is_of_each_kind_and_independent_of_order(share: float, seed: int, order: object) -> None:
    questions = _questions()
    rule = f"fraction(share={share!r}, seed={seed})"
    _, ids = chosen(rule, questions)
    all_of = Counter(question.kind for question in questions)
    sealed = Counter(question.kind for question in questions if question.id in ids)
    for kind, count in all_of.items():
        expected = 0 if count == 1 else min(max(round(share * count), 1), count - 1)
        assert sealed[kind] == expected
    shuffled = sorted(questions, key=lambda question: hash((question.id, seed)))
    assert chosen(rule, shuffled)[1] == ids


def test_seeds_differ() -> None:
    assert len({frozenset(chosen(f"fraction(share=0.5, seed={seed})", _questions())[1]) for seed in range(9)}) == 9


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ('conversations(ids="c9")', "'c9' found"),
        ("conversations", "seals none"),
        ('ids(file="nowhere")', "cannot be read"),
        ("fraction(share=1.5)", "between 0 and 1"),
        ("half", "one of whole, conversations, fraction, ids expected"),
    ],
)
def test_a_rule_that_does_not_fit_is_refused(rule: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        chosen(rule, _questions())


REAL = [
    ("longmemeval_oracle", "longmemeval/oracle_sample.json", ("answer_", "_abs", "has_answer")),
    ("beam_100k", "beam", ("source_chat_ids",)),
]


@pytest.mark.parametrize(("benchmark", "data", "marks"), REAL, ids=lambda value: str(value))
def test_real_files_are_stored_without_a_mark(
    benchmark: str, data: str, marks: tuple[str, ...], tmp_path: Path
) -> None:
    if not (REAL_DATA / data).exists():
        pytest.skip(f"needs the benchmark at {REAL_DATA / data}")
    lake = Lake.open(tmp_path / "lake")
    identity = tmp_path / "identity.txt"
    sealed = seal_split(str(lake.root), benchmark, str(REAL_DATA / data), "whole", new_identity(identity, lake))
    turns = holdings.turns(lake, sealed.dataset)
    assert len(turns) == sealed.facts["turns"] > 0
    ids = turns.select(pl.concat_str("id", "conversation_id", "session_id", separator=" ")).to_series().to_list()
    raw = SOURCES[benchmark].load(locate(benchmark, str(REAL_DATA / data)))
    told = json.dumps([ids, dict(sealed.facts)])
    for mark in marks:
        assert mark not in told
    if benchmark.startswith("longmemeval"):
        assert any("answer_" in turn.id for turn in raw.turns), "else this test sees nothing"
    for path in lake.root.rglob("*"):
        if path.is_file() and path.suffix != ".encrypted":
            parquet = path.suffix == ".parquet"
            shown = str(pl.read_parquet(path).drop("text", strict=False).to_dicts()) if parquet else path.read_text()
            assert not any(mark in shown for mark in marks), path
            assert not any(question.id in shown for question in raw.questions), path
    stored = Counter(text for _, _, text in holdings.said(lake, sealed.dataset))
    assert Counter(turn.text for turn in raw.turns) == stored


def test_gold_follows_its_turns_under_their_new_names() -> None:
    path = REAL_DATA / "longmemeval" / "oracle_sample.json"
    if not path.exists():
        pytest.skip(f"needs the benchmark at {path}")
    for told in SOURCES["longmemeval_oracle"].load(path).told[:20]:
        renamed = unmarked("longmemeval_oracle", told)
        before, after = ({turn.id: turn.text for turn in each.turns} for each in (told, renamed))
        assert len(after) == len(before)
        for (_, gold), (question, moved) in zip(told.asked, renamed.asked, strict=True):
            assert [before[id] for id in gold.turn_ids] == [after[id] for id in moved.turn_ids]
            assert {turn.session_id for turn in renamed.turns} >= set(moved.session_ids)
            assert question.conversation_id == renamed.turns[0].conversation_id

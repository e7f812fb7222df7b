"""Mem0's hybrid score is the formula worked out by hand, and no part of it is silently zero."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tasks.entities import entities, lower_case
from tasks.mem0 import EntityIndex, FixedLexicon, Mem0, calibrated
from tasks.pool import Haystack


def _embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """Unit vectors of words: two texts that share s of n and m words have a cosine of s / √(n m)."""
    rows = np.zeros((len(texts), 64), np.float32)
    for row, text in enumerate(texts):
        rows[row, [sum(map(ord, word)) % 64 for word in text.lower().split()]] = 1.0
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_bm25_by_hand() -> None:
    """Three records of 2, 1 and 0 terms; `parrot` in two of three, `kiwi` twice in the first alone."""
    texts = ["kiwi kiwi", "parrot", "the of"]
    norm = [1.2 * (0.25 + 0.75 * length / 256) for length in (2, 1)]
    kiwi = math.log((3 - 1 + 0.5) / 1.5 + 1)
    scores = FixedLexicon(texts).scores("Kiwi, the kiwi and parrots?")
    assert scores == pytest.approx([kiwi * 2 * 2.2 / (2 + norm[0]), kiwi * 2.2 / (1 + norm[1]), 0.0])


def test_a_term_that_every_record_holds_still_counts_a_little() -> None:
    scores = FixedLexicon(["kiwi", "kiwi"]).scores("kiwi")
    assert scores == pytest.approx([math.log(0.5 / 2.5 + 1) * 2.2 / (1 + 1.2 * (0.25 + 0.75 / 256))] * 2)


@pytest.mark.parametrize(
    ("count", "middle", "slope"),
    [
        (1, 5, 0.7),
        (3, 5, 0.7),
        (4, 7, 0.6),
        (6, 7, 0.6),
        (7, 9, 0.5),
        (9, 9, 0.5),
        (10, 10, 0.5),
        (15, 10, 0.5),
        (16, 12, 0.5),
    ],
)
def test_calibration_depends_on_the_questions_number_of_terms(count: int, middle: float, slope: float) -> None:
    found = calibrated(np.array([0.0, middle, middle + 2.0]), " ".join(["parrot"] * count))
    assert found == pytest.approx([0.0, 0.5, 1 / (1 + math.exp(-2 * slope))])


def test_the_divisor_counts_the_parts_that_take_part() -> None:
    zero, one = np.zeros(2), np.array([0.6, 0.0])
    dense = np.array([0.8, 0.4])
    fuse = Mem0().fuse
    assert fuse(dense, zero, zero, 2) == pytest.approx([0.8, 0.4])
    assert fuse(dense, one, zero, 2) == pytest.approx([1.4 / 2, 0.4 / 2])
    assert fuse(dense, zero, one / 2, 2) == pytest.approx([1.1 / 1.5, 0.4 / 1.5])
    assert fuse(dense, one, one / 2, 2) == pytest.approx([1.7 / 2.5, 0.4 / 2.5])


def test_a_score_is_at_most_one() -> None:
    assert Mem0().fuse(np.array([1.0]), np.zeros(1), np.array([0.9]), 1).tolist() == [1.0]


def test_semantic_keeps_what_is_near_and_union_what_bm25_finds_beside_it() -> None:
    dense, bm25 = np.array([0.5, 0.05, 0.05, -0.2]), np.array([0.0, 0.9, 0.0, 0.1])
    semantic = Mem0("semantic").fuse(dense, bm25, np.zeros(4), 4)
    union = Mem0("union").fuse(dense, bm25, np.zeros(4), 4)
    assert np.isfinite(semantic).tolist() == [True, False, False, False]
    assert np.isfinite(union).tolist() == [True, True, False, True]
    assert union[[0, 1, 3]] == pytest.approx([0.25, 0.475, -0.05])


def test_no_more_are_fetched_than_four_times_the_size_or_sixty() -> None:
    dense = np.linspace(1.0, 0.2, 100)
    assert np.isfinite(Mem0("semantic").fuse(dense, np.zeros(100), np.zeros(100), 5)).sum() == 60
    assert np.isfinite(Mem0("semantic").fuse(dense, np.zeros(100), np.zeros(100), 20)).sum() == 80
    bm25 = np.where(np.arange(100) >= 90, 0.5, 0.0)
    assert np.isfinite(Mem0("union").fuse(dense, bm25, np.zeros(100), 5)).sum() == 70


def test_an_entity_boosts_its_records_less_the_more_it_has() -> None:
    texts = ["Bo saw Paris", "Bo is here", "Then came Bo", "nobody"]
    index = EntityIndex(texts, _embed)
    assert dict(zip(index.names, [rows.tolist() for rows in index.linked], strict=True)) == {
        "Bo": [0, 1, 2],
        "Paris": [0],
    }
    boosts = index.boosts("Did Bo like Paris?", 0.5)
    assert boosts == pytest.approx([0.5, 0.5 / 1.004, 0.5 / 1.004, 0.0])


def test_entities_match_by_cosine_from_a_half_up_and_merge_from_095_up() -> None:
    """`New Paris` and `Paris` share one of two words: cosine 0.707; `Paris City Hall` has 0.577; of four words 0.5."""
    index = EntityIndex(["I saw New Paris", "I saw Paris City Hall", "we saw PARIS", "we saw Paris"], _embed)
    assert len(index.names) == 3, "PARIS and Paris are one"
    boosts = index.boosts("Is Paris nice?", 0.5)
    assert boosts == pytest.approx([0.5 / math.sqrt(2), 0.5 / math.sqrt(3), 0.5 / 1.001, 0.5 / 1.001])
    far = EntityIndex(["I saw Big Old Fat Mean Paris"], _embed)
    assert far.boosts("Is Paris nice?", 0.5).tolist() == [0.0]


def test_eight_entities_of_a_question_count() -> None:
    names = ["Ana", "Ben", "Cid", "Dov", "Eve", "Fay", "Gus", "Hal", "Ida"]
    index = EntityIndex(
        [f"we met {name}" for name in names], lambda texts: np.eye(9, dtype=np.float32)[[names.index(t) for t in texts]]
    )
    boosts = index.boosts("Who met " + ", ".join(names) + "?", 0.5)
    assert boosts.tolist() == [0.5] * 8 + [0.0]


def test_a_pool_is_ranked_by_all_three_parts_and_says_what_each_gave() -> None:
    texts = ["Ada: my parrot is green", "Bo: I met Kiwi today", "Bo: it rained"]
    vectors = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]], np.float32)
    found = Haystack(texts, vectors, Mem0(), _embed).pool("Who met Kiwi?", np.array([0.8, 0.6], np.float32), 3)
    raw = FixedLexicon(texts).scores("Who met Kiwi?")
    sigmoid = 1 / (1 + math.exp(-0.7 * (raw[1] - 5)))
    expected = {0: 0.8 / 2.5, 1: (0.96 + sigmoid + 0.5) / 2.5, 2: 0.6 / 2.5}
    assert found.rows.tolist() == [1, 0, 2]
    assert found.native == pytest.approx([expected[row] for row in (1, 0, 2)])
    assert found.lexical == pytest.approx(raw[[1, 0, 2]])
    assert found.boost == pytest.approx([0.5, 0.0, 0.0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What did Caroline paint at Lake Ontario in May?", ["Caroline", "Lake Ontario"]),
        ('Caroline\'s brother read "Becoming Nicole" on Friday', ["Caroline", "Becoming Nicole"]),
        ("Painting is fun. Ada uses numpy.linalg", ["Ada", "numpy.linalg"]),
        ("The University of Porto wrote; I don't", ["University of Porto"]),
        ("she met Ada and Bo", ["Ada", "Bo"]),
        ("nothing here", []),
        ("", []),
    ],
)
def test_entities_of_a_text(text: str, expected: list[Any]) -> None:
    assert entities(text, lower_case("we are painting the house")) == expected


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="semantic or union"):
        Mem0("dense")
    with pytest.raises(ValueError, match=r"boost in \[0, 1\]"):
        Mem0(boost=2.0)

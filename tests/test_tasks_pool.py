"""Candidates are what an exact, naive search of the conversation finds."""

import math
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from tasks.pool import Lexicon, MinMax, ReciprocalRank, candidates
from tasks.text import terms

TEXTS = [
    "Ada: I adopted a parrot called Kiwi",
    "Bo: parrots, parrots and more parrots",
    "Ada: my sister plays the double bass",
    "Bo: we ran ten miles in the rain today",
    "Ada: a short one",
]


def _bm25(texts: list[str], question: str, k1: float = 1.2, b: float = 0.75) -> list[float]:
    """Okapi BM25 term by term, with rank-bm25's floor for terms that most texts hold."""
    documents = [terms(text) for text in texts]
    mean = sum(map(len, documents)) / len(documents)
    seen = Counter(term for document in documents for term in set(document))
    idf = {term: math.log(len(texts) - n + 0.5) - math.log(n + 0.5) for term, n in seen.items()}
    floor = 0.25 * sum(idf.values()) / len(idf)
    scores = []
    for document in documents:
        score = 0.0
        for term in terms(question):
            if term in seen:
                tf = document.count(term)
                weight = idf[term] if idf[term] >= 0 else floor
                score += weight * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(document) / mean))
        scores.append(score)
    return scores


@pytest.mark.parametrize("question", ["Which parrot did Ada adopt?", "double bass", "Ada", "the of and", ""])
def test_bm25_is_the_formula(question: str) -> None:
    assert Lexicon(TEXTS).scores(question) == pytest.approx(_bm25(TEXTS, question))


@settings(deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(["parrot", "parrots", "bass", "the", "rain", "run", "running"]), max_size=8),
        min_size=1,
    )
)
def test_bm25_is_rank_bm25(documents: list[list[str]]) -> None:
    stems = [terms(" ".join(words)) for words in documents]
    found = Lexicon([" ".join(words) for words in documents]).scores("parrots run in the rain, parrot")
    query = terms("parrots run in the rain, parrot")
    expected = BM25Okapi(stems, k1=1.2, b=0.75).get_scores(query) if any(stems) else np.zeros(len(documents))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_bm25_of_no_words_at_all_is_zero() -> None:
    assert Lexicon(["!!!", ""]).scores("parrot").tolist() == [0.0, 0.0]
    assert Lexicon([]).scores("parrot").tolist() == []


def test_bm25_matches_on_stems_and_ignores_stop_words() -> None:
    scores = Lexicon(TEXTS).scores("Who adopts the parrot?")
    assert scores.argmax() in (0, 1)
    assert scores[3] == 0.0


def test_min_max_by_hand() -> None:
    fused = MinMax(0.25).fuse(np.array([0.0, 0.5, 1.0]), np.array([4.0, 0.0, 2.0]))
    assert fused.tolist() == [0.75, 0.125, 0.625]


def test_min_max_of_equal_scores_adds_nothing() -> None:
    assert MinMax(0.5).fuse(np.array([3.0, 3.0]), np.array([0.0, 1.0])).tolist() == [0.0, 0.5]


def test_reciprocal_rank_by_hand() -> None:
    fused = ReciprocalRank(60).fuse(np.array([0.1, 0.9]), np.array([0.0, 5.0]))
    assert fused.tolist() == [2 / 62, 2 / 61]


@settings(deadline=None)
@given(st.integers(0, 20), st.integers(1, 25), st.integers(0, 2**32 - 1), st.booleans())
def test_candidates_are_a_full_sort_cut_at_size(n: int, size: int, seed: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((n, 4)).astype(np.float32)
    if ties and n:
        vectors[:] = vectors[0]
    lexical = np.zeros(n) if ties else rng.random(n)
    found = candidates(vectors, rng.standard_normal(4).astype(np.float32), lexical, size, MinMax())
    assert len(found.rows) == min(n, size)
    assert len(set(found.rows.tolist())) == len(found.rows)
    ranked = sorted(zip(-found.native, found.rows.tolist(), strict=True))
    assert found.rows.tolist() == [row for _, row in ranked]
    if ties:
        assert found.rows.tolist() == list(range(min(n, size)))


def test_the_native_score_of_a_candidate_is_the_fusion_of_its_channels_over_the_whole_conversation() -> None:
    rng = np.random.default_rng(5)
    vectors, query, lexical = (
        rng.standard_normal((9, 3)).astype(np.float32),
        rng.standard_normal(3),
        rng.random(9),
    )
    dense = vectors.astype(float) @ query
    fused = 0.5 * (dense - dense.min()) / np.ptp(dense) + 0.5 * (lexical - lexical.min()) / np.ptp(lexical)
    found = candidates(vectors, query.astype(np.float32), lexical, 4, MinMax(0.5))
    best = np.argsort(-fused)[:4]
    assert found.rows.tolist() == best.tolist()
    assert found.native == pytest.approx(fused[best], abs=1e-6)
    assert found.dense == pytest.approx(dense[best], abs=1e-6)
    assert found.lexical == pytest.approx(lexical[best])


def test_lengths_that_differ_are_refused_with_both_numbers() -> None:
    with pytest.raises(ValueError, match=r"vectors \(2\) must match lexical scores \(3\)"):
        candidates(np.zeros((2, 4), np.float32), np.zeros(4, np.float32), np.zeros(3), 5, MinMax())


def test_scores_do_not_depend_on_what_the_process_read_before() -> None:
    """Terms are numbered as a process meets them, so the order of its sums must not matter."""
    code = (
        "import sys, numpy as np; from tasks.pool import Lexicon; rng = np.random.default_rng(1); "
        "words = [f'w{chr(97 + i % 26)}{chr(97 + i // 26)}x' for i in range(300)]; "
        "texts = [' '.join(rng.choice(words, 12)) + ' common' * (i % 3 > 0) for i in range(200)]; "
        "Lexicon(texts[::-1]) if sys.argv[1] == 'other' else None; "
        "print(Lexicon(texts).scores('common ' + texts[7]).tobytes().hex())"
    )
    found = {
        subprocess.run([sys.executable, "-c", code, how], capture_output=True, text=True, check=True).stdout
        for how in ("plain", "other")
    }
    assert len(found) == 1

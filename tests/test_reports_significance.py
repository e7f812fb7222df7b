"""Tests of paired differences, against scipy and cases by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from reports.significance import EXACT_UNITS, cohen_h, detectable, holm, mcnemar, odds_ratio, sign_flip


@given(st.integers(0, 400), st.integers(0, 400))
@settings(max_examples=80, deadline=None)
def test_mcnemar_is_the_binomial_test_of_the_pairs_that_differ(wins: int, losses: int) -> None:
    expected = stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert mcnemar(wins, losses) == pytest.approx(expected, rel=1e-9)


def test_mcnemar_by_hand_and_at_its_ends() -> None:
    assert mcnemar(1, 4) == 2 * (1 + 5) / 32
    assert (mcnemar(0, 0), mcnemar(3, 3)) == (1.0, 1.0)
    assert 0 < mcnemar(0, 1000) < 1e-300
    with pytest.raises(ValueError, match="losses = -1"):
        mcnemar(2, -1)


def test_few_units_have_scipys_exact_permutation_p() -> None:
    rng = np.random.default_rng(0)
    pairs = rng.random((2, 10, 3)).round(1)  # rounding makes ties
    found = sign_flip(pairs[0] - pairs[1], samples=1, rng=rng)
    theirs = stats.permutation_test(
        tuple(pairs), lambda a, b, axis: np.mean(a - b, axis=axis).round(9), permutation_type="samples",
        vectorized=True, n_resamples=np.inf,
    ).pvalue  # fmt: skip
    assert found == pytest.approx(theirs, abs=1e-12)


def test_many_units_have_scipys_permutation_p_up_to_chance() -> None:
    differences = np.random.default_rng(1).normal(0.12, 1, (200, 1))
    found = sign_flip(differences, samples=20_000, rng=np.random.default_rng(2))
    theirs = stats.permutation_test(
        (differences[:, 0], np.zeros(200)), lambda a, b: np.mean(a - b), permutation_type="samples", n_resamples=5000,
        rng=np.random.default_rng(3),
    ).pvalue  # fmt: skip
    assert found[0] == pytest.approx(theirs, abs=0.03)


def test_flipping_signs_of_binary_differences_is_mcnemar() -> None:
    column = np.array([1.0] * 9 + [-1.0] * 2 + [0.0] * 3)
    assert sign_flip(column[:, None], samples=1, rng=np.random.default_rng(0))[0] == mcnemar(9, 2)


def test_ten_conversations_that_agree_reach_the_least_p_there_is() -> None:
    assert sign_flip(np.full((10, 1), 0.3), samples=1, rng=np.random.default_rng(0))[0] == 2 / 2**10


def test_an_undefined_difference_counts_as_none() -> None:
    column = np.array([0.4, 0.1, np.nan, -0.2, 0.9])
    rng = np.random.default_rng(0)
    assert sign_flip(column[:, None], samples=1, rng=rng) == sign_flip(
        np.nan_to_num(column)[:, None], samples=1, rng=rng
    )


def test_the_observed_signs_are_among_the_random_ones_and_chunks_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = np.random.default_rng(5).normal(0.2, 1, (EXACT_UNITS + 6, 4))
    extreme = np.ones((300, 1))
    assert sign_flip(extreme, samples=99, rng=np.random.default_rng(1))[0] == 1 / 100
    whole = sign_flip(values, samples=101, rng=np.random.default_rng(1))
    monkeypatch.setattr("reports.significance.SIGNS_AT_ONCE", 70)
    assert (sign_flip(values, samples=101, rng=np.random.default_rng(1)) == whole).all()


def test_holm_is_as_computed_by_hand() -> None:
    """Sorted 0.005, 0.01, 0.03, 0.04: times 4, 3, 2, 1 is 0.02, 0.03, 0.06 and, by the running maximum, 0.06."""
    assert holm([0.01, 0.04, None, 0.03, 0.005]) == pytest.approx([0.03, 0.06, None, 0.06, 0.02])
    assert (holm([]), holm([None]), holm([0.7, 0.6])) == ([], [None], [1.0, 1.0])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_lies_between_the_p_and_bonferroni_and_keeps_their_order(ps: list[float]) -> None:
    adjusted = [p for p in holm(ps) if p is not None]
    assert all(p <= a <= min(1, p * len(ps)) + 1e-12 or a == max(adjusted) for p, a in zip(ps, adjusted, strict=True))
    assert [adjusted[i] for i in np.argsort(ps)] == sorted(adjusted)


def test_effect_sizes_are_as_computed_by_hand() -> None:
    assert cohen_h(0.5, 0.25) == pytest.approx(math.pi / 6)
    assert cohen_h(0.25, 0.5) == -cohen_h(0.5, 0.25)
    assert (odds_ratio(6, 4), odds_ratio(0, 4), odds_ratio(6, 0)) == (1.5, 0.0, None)


def test_a_detectable_difference_is_found_four_times_of_five() -> None:
    least = detectable(0.02)
    assert stats.norm.sf(1.959964 - least / 0.02) == pytest.approx(0.8, abs=1e-6)


def test_shapes_are_checked() -> None:
    with pytest.raises(ValueError, match="1-D"):
        sign_flip(np.zeros(3), samples=1, rng=np.random.default_rng(0))

"""Eq. 29 by hand: who is compared with whom, and what is averaged."""

import numpy as np
import pytest

from tasks.missing_evidence import missing_preference

QUERY = np.float32([1, 0, 0, 0])
NONE: frozenset[str] = frozenset()
A, B = frozenset("a"), frozenset("b")


def _row(cosine: float, axis: int) -> list[float]:
    """A unit vector of that query cosine, the rest on one axis."""
    row = [cosine, 0.0, 0.0, 0.0]
    row[axis] = float(np.sqrt(1 - cosine**2))
    return row


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_comparison_worked_by_hand() -> None:
    # s = 0.8 on axis 1, missing = 0.5 on axis 2, comparator = 0.7 beside s on axis 1.
    rows = np.float32([_row(0.8, 1), _row(0.5, 2), _row(0.7, 1)])
    sessions = np.array([0, 1, 0])
    found = missing_preference(QUERY, rows, [A, B, NONE], sessions, _rng())
    assert found is not None and found.comparisons == 2
    beside = 0.8 * 0.7 + 0.6 * np.sqrt(1 - 0.49)
    first = (0.5 - 0.4) - (0.7 - beside)  # a held: b's score less the comparator's
    second = (0.8 - 0.4) - (0.7 - 0.35)  # b held: a's score less the comparator's
    assert found.residual == pytest.approx((first + second) / 2, abs=1e-6)
    assert found.cosine == pytest.approx(((0.5 - 0.7) + (0.8 - 0.7)) / 2, abs=1e-6)
    assert first > 0, "by the residual the missing record wins where it lost by cosine"


def test_the_comparator_may_repeat_the_held_fact_but_never_supply_another() -> None:
    rows = np.float32([_row(0.8, 1), _row(0.9, 1), _row(0.5, 2), _row(0.1, 3)])
    found = missing_preference(QUERY, rows, [A, A, B, NONE], np.zeros(4, int), _rng())
    assert found is not None and found.comparisons == 3
    # a held: the other record of a is the comparator; b held: only the record of no fact is left.
    scores = rows.astype(float) @ QUERY
    drawn = {scores[0], scores[1]}  # one of the two records of a stands for it
    expected = {round(((0.5 - 0.9) + (0.5 - 0.8) + (own - 0.1)) / 3, 6) for own in drawn}
    assert round(found.cosine, 6) in expected


def test_sessions_weigh_the_same_however_many_records_they_have() -> None:
    rows = np.float32([_row(0.2, 1), _row(0.4, 2), _row(0.6, 2), _row(0.9, 3), _row(0.0, 3)])
    facts = [frozenset(name) for name in "abcd"] + [NONE]
    found = missing_preference(QUERY, rows, facts, np.array([0, 1, 1, 2, 0]), _rng())
    assert found is not None and found.comparisons == 4
    held_a = ((0.4 + 0.6) / 2 + 0.9) / 2
    held_b = (0.2 + 0.6 + 0.9) / 3
    held_c = (0.2 + 0.4 + 0.9) / 3
    held_d = (0.2 + (0.4 + 0.6) / 2) / 2
    assert found.cosine == pytest.approx((held_a + held_b + held_c + held_d) / 4, abs=1e-6)


@pytest.mark.parametrize(
    "facts",
    [
        [NONE, NONE, NONE],  # no evidence
        [A, NONE, NONE],  # nothing is missing once it is held
        [A, A, NONE],  # the same fact twice
        [A, B, frozenset("c")],  # nothing to compare with
    ],
)
def test_where_nothing_can_be_compared_there_is_no_number(facts: list[frozenset[str]]) -> None:
    rows = np.float32([_row(0.8, 1), _row(0.5, 2), _row(0.7, 1)])
    assert missing_preference(QUERY, rows, facts, np.arange(3), _rng()) is None


def test_records_that_are_not_finite_are_passed_over() -> None:
    rows = np.float32([_row(0.8, 1), _row(0.5, 2), [np.nan] * 4, _row(0.7, 1)])
    with_nan = missing_preference(QUERY, rows, [A, B, A, NONE], np.zeros(4, int), _rng())
    without = missing_preference(QUERY, rows[[0, 1, 3]], [A, B, NONE], np.zeros(3, int), _rng())
    assert with_nan == without is not None

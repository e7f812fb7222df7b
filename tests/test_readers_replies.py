"""Replies are understood where they can be, and are said not to be where they cannot."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers.replies import json_list, json_object, known, numbers, shown, yes_share
from readers.types import Note

PROSE = """The question needs two facts. [1] and [2] speak of a parrot, [9] of 2023.

Final selection: [7], then [3] and [7] again.
"""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (PROSE, [7, 3]),
        ("Selected: [3] [7]", [3, 7]),
        ("**Selected:** [3, 7]", [3, 7]),
        ("Selected: [3] [7]\n\nI left out [1] and [2].", [3, 7]),
        ("Selected:\n- [3]\n- [7]", [3, 7]),
        ("Ranking: [2] > [1] > [10]", [2, 1, 10]),
        ("2 > 1 > 10", [2, 1, 10]),
        ("I looked at all 12 records.\n\n[4] > [2]", [4, 2]),
        ("Selected: 5, 2", [5, 2]),
        ("Selected: [0] [11] [99999999999999] [4]", [4]),
        ("Selected: none", []),
        ("Selected: nothing helps", []),
        ("Selected: none\n\n[1] and [2] are about other days.", []),
        ("Selected: []", []),
        ("Selected: [3-5], [9]", [3, 4, 5, 9]),
        ("Selected: [5-3] [2023-05-08] [1]", [1]),
        ("<think>Selected: [1]</think>[2] [3]", [2, 3]),
        ("<think>Selected: [1], and", None),
        ("Selected: I am not sure", None),
        ("I cannot help with that.", None),
        ("", None),
        ("Selected: [1]\nOn second thought.\nSelected: [2]", [2]),
    ],
)
def test_record_numbers_are_found_in_prose(said: str, expected: list[int] | None) -> None:
    assert numbers(said, 10) == expected


@given(st.permutations(range(1, 21)))
def test_a_ranking_is_read_back_as_it_was_written(order: list[int]) -> None:
    assert numbers("Ranking: " + " > ".join(f"[{number}]" for number in order), 20) == order


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('{"query": "a"}', {"query": "a"}),
        ('Sure!\n```json\n{"query": "a",}\n```\nDone.', {"query": "a"}),
        ('<think>{"query": "draft"}</think>{"query": "a {b} c"}', {"query": "a {b} c"}),
        ('<think>{"query": "draft"}', None),
        ('{"other": {"query": "nested"}}', None),
        ('{"query": "cut', None),
        ("[" * 100_000, None),
        ("{" * 2_000, None),
        ('{"query": NaN}', {"query": None}),
    ],
)
def test_json_is_found_amid_prose(said: str, expected: dict[str, object] | None) -> None:
    assert json_object(said, "query") == expected


def test_a_list_may_stand_under_its_key_or_alone() -> None:
    assert json_list('{"requirements": [{"a": 1}]}', "requirements") == [{"a": 1}]
    assert json_list('see [1]: [{"a": 1}, {"b": 2}]', "requirements") == [{"a": 1}, {"b": 2}]
    assert json_list("see [1] and [2]", "requirements") is None


def test_only_whole_numbers_of_records_that_are_there_count() -> None:
    assert known([3, "2", "[1]", 3, 0, 4, -1, 1.0, True, None, "x", "９", [2]], 3) == [3, 2, 1]


def test_the_share_of_yes_in_closed_form() -> None:
    # P(yes) = .5 + .1 over two spellings, P(no) = .2: 6 / 8.
    said = {"Yes": math.log(0.5), " yes": math.log(0.1), "No": math.log(0.2), "Maybe": math.log(0.1)}
    assert yes_share(said, 1e-6) == pytest.approx(0.75)
    assert yes_share({"No": math.log(0.2)}, 0.05) == pytest.approx(0.05 / 0.25)
    assert yes_share({"yes": math.log(0.2)}, 0.05) == pytest.approx(0.2 / 0.25)
    assert yes_share({"Maybe": -0.1}, 0.05) is None
    assert yes_share({}, 0.05) is None


@given(st.floats(-8, 0), st.floats(-8, 0))
def test_the_share_of_yes_is_the_logistic_of_the_difference(yes: float, no: float) -> None:
    share = yes_share({"yes": yes, "no": no}, 1e-9)
    assert share == pytest.approx(1 / (1 + math.exp(no - yes)))


def test_records_are_shown_numbered_on_one_line_each_with_their_day() -> None:
    notes = [
        Note("a", "Ada: I adopted\na parrot.", "Ada", 0, 0, 1_683_504_000.0, 5),
        Note("b", "Bo: Hi.", "Bo", 0, 1, float("nan"), 5),
    ]
    assert shown(notes, 3) == "[3] (8 May 2023) Ada: I adopted a parrot.\n[4] Bo: Hi."
    assert shown([]) == "(none)"

"""The printed form of a part is its identity and parses back."""

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers.types import Budget
from storage.errors import InputError
from tasks import specs
from tasks.arms import arms, budget


@dataclass(frozen=True)
class _Part:
    rate: float = 0.5
    size: int = 3
    name: str = "plain"
    strict: bool = False
    tau: float | None = None


TABLE: dict[str, type[Any]] = {"part": _Part}


@given(
    st.builds(
        _Part,
        rate=st.floats(allow_nan=False, allow_infinity=False),
        size=st.integers(),
        name=st.text(st.characters(codec="utf-8"), min_size=1),
        strict=st.booleans(),
        tau=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_every_part_survives_printing_and_parsing(part: _Part) -> None:
    assert specs.make(TABLE, specs.printed(TABLE, part), "part") == part


def test_defaults_are_left_out() -> None:
    assert specs.printed(TABLE, _Part()) == "part"
    assert specs.printed(TABLE, _Part(tau=1e-5, strict=True)) == "part(strict=true, tau=1e-05)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prat", "did you mean part"),
        ("part(rat=1)", "did you mean rate"),
        ("part(size=1.5)", "size: int expected, '1.5' found"),
        ("part(rate=nan)", "rate: float expected"),
        ("part(size=1, size=2)", "size once expected"),
        ("part(size)", "parameter=value expected"),
        ("part(", "form name"),
        ("", "form name"),
    ],
)
def test_a_mistake_is_said_with_its_remedy(text: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        specs.make(TABLE, text, "part")


def test_an_arm_prints_its_reader_parameters_budget_and_store() -> None:
    made = arms(["mmr(trade=0.7)@k10", "hybrid", "dense@t2000:facts"], ["k5", "k10"], ["turns", "facts"])
    assert [str(arm) for arm in made] == [
        "mmr(trade=0.7)@k10",
        "hybrid@k5",
        "hybrid@k10",
        "dense@t2000:facts",
    ]


def test_arms_printed_form_parses_back_to_the_same_arm() -> None:
    made = arms(["mmr(trade=0.7)", "dense@all:facts", "oracle@k3"], ["k10"], ["turns", "facts"])
    assert arms([str(arm) for arm in made], [], ["turns", "facts"]) == made


def test_a_default_parameter_written_out_is_the_same_arm() -> None:
    assert [str(arm) for arm in arms(["mmr(trade=0.5)@k10", "mmr@k10"], [], ["turns"])] == ["mmr@k10"]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("hybrid@k", "k<records>"),
        ("hybrid@10", "k<records>"),
        ("hybird@k10", "did you mean hybrid"),
        ("hybrid@k10:nowhere", "one of the stores turns"),
        ("hybrid", "a budget expected"),
        ("@k10", "form reader"),
    ],
)
def test_an_arm_that_cannot_be_is_refused(form: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        arms([form], [], ["turns"])


def test_budgets_mean_what_they_say() -> None:
    assert budget("k10") == Budget(records=10)
    assert budget("t2000") == Budget(tokens=2000)
    assert budget("all") == Budget()


@dataclass(frozen=True)
class _Asking:
    model: str
    size: int = 3


def test_a_parameter_without_a_default_must_be_given() -> None:
    table: dict[str, type[Any]] = {"asking": _Asking}
    assert specs.printed(table, specs.make(table, "asking(model=small)", "part")) == "asking(model=small)"
    with pytest.raises(InputError, match=r"parameter model expected, none found; write asking\(model=…\)"):
        specs.make(table, "asking(size=4)", "part")

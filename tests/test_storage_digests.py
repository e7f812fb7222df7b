"""Content addresses are stable, canonical and total over text."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.digests import canonical, digest, tree_digest


def test_a_known_value_has_its_known_address() -> None:
    assert digest({"b": [1, 0.1], "a": "é"}) == hashlib.sha256('{"a":"é","b":[1,0.1]}'.encode()).hexdigest()


@given(st.dictionaries(st.text(), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    assert digest(value) == digest(dict(reversed(list(value.items()))))


@given(st.text(st.characters(), max_size=20), st.text(st.characters(), max_size=20))
def test_different_texts_have_different_addresses_even_with_lone_surrogates(one: str, two: str) -> None:
    assert (digest([one]) == digest([two])) == (one == two)


def test_a_lone_surrogate_has_an_address() -> None:
    assert canonical("\ud800") == rb'"\ud800"'


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        digest(float("nan"))
    with pytest.raises(TypeError):
        digest({1, 2})


def test_a_tree_changes_with_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    files = [("a", tmp_path / "a"), ("b", tmp_path / "b")]
    before = tree_digest(files)
    assert tree_digest(reversed(files)) == before
    assert tree_digest([("c", tmp_path / "a"), files[1]]) != before
    (tmp_path / "a").write_text("3")
    assert tree_digest(files) != before

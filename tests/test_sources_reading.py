"""Files are read strictly, and a large list piece by piece."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import InputError
from tasks.sources import reading
from tasks.sources.reading import elements, moment, whole

OBJECTS = st.lists(st.dictionaries(st.text(), st.one_of(st.text(), st.integers(), st.lists(st.text()))), max_size=6)


@given(rows=OBJECTS, block=st.integers(1, 40), indent=st.sampled_from([None, 2]), mark=st.booleans())
def test_a_list_read_piece_by_piece_is_the_list(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], block: int, indent: int | None, mark: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "rows.json"
    text = json.dumps(rows, ensure_ascii=mark, indent=indent)
    path.write_bytes(b"\xef\xbb\xbf" * mark + text.encode("utf-8", "surrogatepass" if mark else "replace"))
    expected = whole(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_BLOCK", block)
        assert list(elements(path)) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "'\\[' expected, 'the end' found"),
        (b"3", "'\\[' expected"),
        (b'[{"a": 1}', "'the end' found"),
        (b'[{"a": 1} {"a": 2}]', "',' expected"),
        (b'[{"a": 1},]', "'{' expected, ']' found"),
        (b'[{"a": 1}] 3', "'the end' expected"),
        (b'[{"a": 1', "complete JSON expected"),
        (b'[{"a": 1, "a": 2}]', "'a' found twice"),
        (b'[{"a": "\xff"}]', "UTF-8 expected"),
        (b'[{"a": 1}]\xc3', "UTF-8 expected"),
    ],
)
def test_a_list_that_is_not_whole_is_one_clear_line(tmp_path: Path, content: bytes, expected: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=expected) as caught:
        list(elements(path))
    assert "\n" not in str(caught.value)


def test_a_lone_object_is_its_only_element(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"a": 1}', encoding="utf-8")
    assert list(elements(path)) == [{"a": 1}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1:56 pm on 8 May, 2023", datetime(2023, 5, 8, 13, 56)),
        ("2023/05/30 (Tue) 23:40", datetime(2023, 5, 30, 23, 40)),
        ("2023/05/30 (Dienstag) 23:40", datetime(2023, 5, 30, 23, 40)),
        ("2023/05/30", datetime(2023, 5, 30)),
        ("March-15-2024", datetime(2024, 3, 15)),
        ("March 15, 2024", datetime(2024, 3, 15)),
        ("2024-03-15T10:00:00+02:00", datetime(2024, 3, 15, 10)),
        ("2024-03-15", datetime(2024, 3, 15)),
        ("February-30-2024", None),
        ("last Tuesday", None),
        ("", None),
        (None, None),
        (20240315, None),
    ],
)
def test_a_date_is_a_time_or_unknown_never_now(text: object, expected: datetime | None) -> None:
    assert moment(text) == expected

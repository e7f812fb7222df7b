"""What is broken in a lake is found and named; what killed writers left is deleted, and nothing else."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from storage import upkeep, vectors
from storage.lake import Lake
from storage.schemas import ANSWERS, INDEXES
from storage.upkeep import clean, verify

INDEX = "a" * 64


def _row(question: str, text: str = "x") -> dict[str, object]:
    return {"question_id": question, "evidence_hash": "e", "text": text, "status": "ok", "raw": None}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A lake of two parts and one index, all whole."""
    made = Lake.open(tmp_path / "lake")
    made.table(ANSWERS, "0" * 64).append([_row("q1"), _row("q2")])
    records = pa.table({"unit": ["u"], "place": [0], "text": ["red bird"]})
    vectors.build(made.vectors, INDEX, [(records, np.ones((1, 2), np.float32))], 2)
    made.table(INDEXES, INDEX).append([{"index": INDEX, "rows": 1, "tag": vectors.TAG}])
    return made


def test_a_whole_lake_has_no_findings(lake: Lake) -> None:
    found = verify(lake)
    assert (found.parts, found.rows, found.indexes, found.findings) == (2, 3, 1, ())


def _flip(part: Path) -> None:
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    part.write_bytes(data)


def _cut(part: Path) -> None:
    part.write_bytes(part.read_bytes()[:40])


@pytest.mark.parametrize("damage", [_flip, _cut, lambda part: part.write_bytes(b"")])
def test_a_part_that_is_not_what_was_written_is_named(lake: Lake, damage: Callable[[Path], None]) -> None:
    part = lake.table(ANSWERS, "0" * 64).parts()[0]
    damage(part)
    (finding,) = verify(lake).findings
    assert finding.path == str(part)
    assert "digest" in finding.problem


@pytest.mark.parametrize("place", (20, 180, 340))
def test_a_record_of_indexes_of_which_any_byte_is_wrong_is_named(lake: Lake, place: int) -> None:
    part = lake.table(INDEXES, INDEX).parts()[0]
    data = bytearray(part.read_bytes())
    data[place] ^= 0xFF
    part.write_bytes(data)
    assert "digest" in verify(lake).findings[0].problem


def _write(lake: Lake, table: pa.Table) -> None:
    """A part whose name fits its content, whatever the content."""
    import hashlib
    from io import BytesIO

    buffer = BytesIO()
    pq.write_table(table, buffer)
    name = hashlib.sha256(buffer.getvalue()).hexdigest()[:32]
    (lake.root / "answers" / ("0" * 16) / f"part-{name}.parquet").write_bytes(buffer.getvalue())


def test_a_key_twice_in_one_part_is_found(lake: Lake) -> None:
    _write(lake, pa.Table.from_pylist([_row("q3", "x"), _row("q3", "y")], schema=ANSWERS.schema))
    assert "2 different keys expected, 1 found" in verify(lake).findings[0].problem


def test_other_columns_are_found(lake: Lake) -> None:
    _write(lake, pa.table({"question_id": ["q3"]}))
    assert "columns of answers expected" in verify(lake).findings[0].problem


def test_a_lost_index_is_found(lake: Lake) -> None:
    for file in sorted((lake.vectors / vectors.folder_name(INDEX)).rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    (finding,) = verify(lake).findings
    assert "an index that opens expected, none found" in finding.problem
    assert finding.remedy == f"delete {lake.table(INDEXES, INDEX).folder} and run again"


def test_upkeep_goes_on_where_a_run_moves_what_it_looks_at(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    part, temporary = lake.table(ANSWERS, "0" * 64).parts()[0], lake.root / "answers" / ".part-0"
    temporary.write_bytes(b"half")

    def gone(path: Path) -> bytes:
        """The part has been handed over to another address since it was listed."""
        if path == part:
            raise FileNotFoundError(path)
        return path.read_bytes()

    monkeypatch.setattr(upkeep, "read_whole", gone)
    monkeypatch.setattr(upkeep, "leftovers", lambda lake: [])
    assert (verify(lake).parts, verify(lake).findings) == (1, ())
    monkeypatch.setattr(upkeep, "leftovers", lambda lake: [temporary])
    temporary.rename(temporary.with_name("part-whole"))
    assert clean(lake, 3600) == []
    clean(lake, 0)
    assert temporary.with_name("part-whole").exists()


def test_an_index_that_ends_while_upkeep_looks_is_no_leftover(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = Path.glob

    def ends(folder: Path, pattern: str) -> list[Path]:
        found = list(listed(folder, pattern))
        if pattern == "index-*":
            lake.table(INDEXES, "b" * 64).append([{"index": "b" * 64, "rows": 1, "tag": vectors.TAG}])
        return found

    (lake.vectors / vectors.folder_name("b" * 64)).mkdir()
    monkeypatch.setattr(Path, "glob", ends)
    assert upkeep.leftovers(lake) == []


def test_clean_deletes_old_leftovers_and_nothing_else(lake: Lake) -> None:
    before = sorted(lake.root.rglob("*"))
    old, young = lake.root / "answers" / ".part-old", lake.root / "answers" / ".part-young"
    unfinished = lake.vectors / "index-ffff.lance"
    unfinished.mkdir()
    for path in (old, young):
        path.write_bytes(b"half")
    for path in (old, unfinished):
        os.utime(path, (time.time() - 7200, time.time() - 7200))
    assert len(verify(lake).findings) == 3
    assert set(clean(lake, 3600)) == {old, unfinished}
    assert young.exists()
    assert clean(lake, 0) == [young]
    assert sorted(lake.root.rglob("*")) == before
    assert verify(lake).findings == ()

"""Keyed Parquet tables: whole files, one row a key, whatever dies when."""

import multiprocessing
import os
import pickle
import signal
import time
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

from storage.errors import InputError
from storage.lake import Lake
from storage.places import write_whole
from storage.schemas import ANSWERS, TableSpec
from storage.tables import CorruptPart, KeyedTable

SPEC = TableSpec("t", pa.schema([pa.field("key", pa.string()), pa.field("value", pa.int64())]), ("key",))


def _rows(*pairs: tuple[str, int]) -> list[dict[str, object]]:
    return [{"key": key, "value": value} for key, value in pairs]


def test_an_empty_table_reads_as_no_rows_of_the_right_types(tmp_path: Path) -> None:
    frame = KeyedTable(tmp_path / "t", SPEC).read()
    assert frame.schema == {"key": pl.String, "value": pl.Int64}
    assert frame.is_empty()


def test_appending_the_same_rows_twice_is_one_file_and_no_new_rows(tmp_path: Path) -> None:
    table = KeyedTable(tmp_path, SPEC)
    table.append(_rows(("a", 1), ("b", 2)))
    table.append(_rows(("a", 1), ("b", 2)))
    assert len(table.parts()) == 1
    assert table.read().rows() == [("a", 1), ("b", 2)]


def test_appending_nothing_writes_nothing(tmp_path: Path) -> None:
    assert KeyedTable(tmp_path / "t", SPEC).append([]) == 0
    assert not (tmp_path / "t").exists()


def test_two_replies_for_one_key_resolve_alike_whatever_the_order_of_writing(tmp_path: Path) -> None:
    kept = []
    for order in ((1, 2), (2, 1)):
        table = KeyedTable(tmp_path / str(order[0]), SPEC)
        for value in order:
            table.append(_rows(("a", value)))
        kept.append(table.read().rows())
    assert kept[0] == kept[1]
    assert len(kept[0]) == 1


def test_missing_is_what_is_expected_and_not_held(tmp_path: Path) -> None:
    table = KeyedTable(tmp_path, SPEC)
    table.append(_rows(("a", 1)))
    assert table.missing(pl.DataFrame({"key": ["a", "b", "c"]}))["key"].to_list() == ["b", "c"]


def test_columns_and_filters_are_honoured_on_columns_that_are_not_read(tmp_path: Path) -> None:
    table = KeyedTable(tmp_path, SPEC)
    table.append(_rows(("a", 1), ("b", 2)))
    table.append(_rows(("c", 3)))
    assert table.read(["value"], where=pl.col("key") != "b")["value"].sort().to_list() == [1, 3]


def test_a_truncated_part_is_named(tmp_path: Path) -> None:
    table = KeyedTable(tmp_path, SPEC)
    table.append(_rows(("a", 1)))
    part = table.parts()[0]
    part.write_bytes(part.read_bytes()[:40])
    with pytest.raises(CorruptPart) as caught:
        table.read()
    assert caught.value.path == part
    sent = pickle.loads(pickle.dumps(caught.value))
    assert (str(sent), sent.path) == (str(caught.value), part)


def test_a_stray_temporary_file_is_no_part(tmp_path: Path) -> None:
    table = KeyedTable(tmp_path, SPEC)
    table.append(_rows(("a", 1)))
    (tmp_path / ".part-half").write_bytes(b"PAR1")
    assert table.read().rows() == [("a", 1)]


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="the disk is full"):
        write_whole(tmp_path / "x", b"data")
    assert list(tmp_path.iterdir()) == []


def test_what_is_written_can_be_read_by_whom_the_umask_lets(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "x", b"data")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


def _write_forever(folder: Path, first: int) -> None:
    table = KeyedTable(folder, SPEC)
    for number in range(first, first + 100_000):
        table.append(_rows(*((f"{number % 400 + shift}", number) for shift in range(20))))


def test_writers_killed_at_any_moment_leave_every_part_readable(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_forever, args=(tmp_path, place * 7)) for place in range(2)]
    for writer in writers:
        writer.start()
    deadline = time.monotonic() + 60
    while len(KeyedTable(tmp_path, SPEC).parts()) < 20 and time.monotonic() < deadline:
        time.sleep(0.05)
    for writer in writers:
        os.kill(writer.pid or 0, signal.SIGKILL)
        writer.join()
    frame = KeyedTable(tmp_path, SPEC).read()
    assert len(frame) >= 20
    assert frame["key"].n_unique() == len(frame)


def test_a_lake_of_another_schema_version_is_refused(tmp_path: Path) -> None:
    Lake.open(tmp_path)
    (tmp_path / "lake.json").write_text('{"schema": 99}')
    with pytest.raises(InputError, match="schema version 2 expected, 99 found"):
        Lake.open(tmp_path)


def test_a_lake_that_is_a_file_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be opened"):
        Lake.open(tmp_path / "file")


def test_scopes_do_not_see_each_other(tmp_path: Path) -> None:
    lake = Lake.open(tmp_path)
    row = {"question_id": "q", "evidence_hash": "e", "text": "t", "status": "ok", "raw": None}
    lake.table(ANSWERS, "a" * 64).append([row])
    assert len(lake.table(ANSWERS, "a" * 64).read()) == 1
    assert lake.table(ANSWERS, "b" * 64).read().is_empty()


RUNS = TableSpec(
    "runs",
    pa.schema([pa.field("unit", pa.string()), pa.field("place", pa.int32()), pa.field("value", pa.int64())]),
    ("unit", "place"),
)


def _runs(**sizes: int) -> list[dict[str, object]]:
    return [{"unit": unit, "place": n, "value": 10 * size + n} for unit, size in sizes.items() for n in range(size)]


def test_a_look_up_gives_the_rows_of_each_key_in_the_order_asked_for(tmp_path: Path) -> None:
    table = KeyedTable(tmp_path, RUNS)
    table.append(_runs(a=2, b=3))
    table.append(_runs(c=1))
    assert table.lookup(["c", "b", "c"])["value"].to_list() == [10, 30, 31, 32, 10]
    assert table.lookup([]).is_empty()
    with pytest.raises(KeyError):
        table.lookup(["z"])


def test_a_key_in_two_parts_is_looked_up_where_a_read_finds_it_and_a_new_part_is_seen(tmp_path: Path) -> None:
    table = KeyedTable(tmp_path, RUNS)
    table.append(_runs(a=2, b=1))
    assert set(table.keys()) == {"a", "b"}
    table.append([{"unit": "a", "place": n, "value": 99} for n in range(2)] + _runs(c=1))
    assert set(table.keys()) == {"a", "b", "c"}
    assert table.lookup(["a"])["value"].to_list() == table.read(where=pl.col("unit") == "a")["value"].to_list()
    rows = [row for _, part in table.by_part() for row in part.iter_rows()]
    assert sorted(rows) == sorted(table.read().iter_rows())

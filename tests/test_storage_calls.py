"""The ledger of calls: what was appended is there for every process, whatever dies when."""

import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from storage import calls
from storage.calls import Ledger
from storage.errors import InputError
from storage.lake import Lake
from storage.schemas import CALLS
from storage.tables import KeyedTable
from storage.upkeep import verify

ROOT = Path(__file__).parents[1]
START = datetime(2026, 1, 1)


def _row(request: str, text: str | None = "t", *, minute: int = 0, **changes: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(CALLS.schema.names)
    row |= {"request": request, "model": "m", "endpoint": "e", "prompt": "p", "repeat": 0, "purpose": ""}
    row |= {"text": text, "status": "ok", "finish_reason": "stop", "characters": 1, "attempts": 1}
    return row | {"answered_at": START + timedelta(minutes=minute)} | changes


def _segments(lake: Path) -> list[Path]:
    return sorted((lake / "calls" / "segments").glob("*"))


def test_what_one_ledger_appends_another_finds_before_and_after_folding(tmp_path: Path) -> None:
    one, other = Ledger(Lake(tmp_path)), Ledger(Lake(tmp_path))
    one.append([_row("a", "line\nbreak \u2028 日本"), _row("b", top_logprobs=[{"token": "Y", "logprob": -0.5}])])
    before = other.find(["a", "b", "c"])
    assert other.fold() == 0, "a segment that is being written stays"
    assert one.fold(own=True) == 2 and not _segments(tmp_path)
    for ledger in (one, other, Ledger(Lake(tmp_path))):
        assert ledger.find(["a", "b", "c"]) == before
    assert before["a"]["text"] == "line\nbreak \u2028 日本"
    assert before["b"]["top_logprobs"] == [{"token": "Y", "logprob": -0.5}]


def test_a_row_folded_by_another_while_one_reads_is_not_lost(tmp_path: Path) -> None:
    one, other = Ledger(Lake(tmp_path)), Ledger(Lake(tmp_path))
    for name in "abc":
        one.append([_row(name)])
        assert set(other.find("abc")) == set("abc"[: "abc".index(name) + 1])
        one.fold(own=True)
        assert set(other.find("abc")) == set("abc"[: "abc".index(name) + 1])


def test_a_reply_that_an_object_store_does_not_take_is_kept_with_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "is_remote", lambda path: True)
    one, other, refusals = Ledger(Lake(tmp_path)), Ledger(Lake(tmp_path)), [OSError("503")]
    whole = KeyedTable.append

    def append(table: KeyedTable, rows: Any) -> int:
        if refusals:
            raise refusals.pop()
        return whole(table, rows)

    monkeypatch.setattr(KeyedTable, "append", append)
    with pytest.raises(OSError, match="503"):
        one.append([_row("a")])
    one.append([_row("b")])
    assert set(other.find("ab")) == {"a", "b"}


def test_a_part_that_could_not_be_read_once_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, read = Ledger(Lake(tmp_path)), Ledger(Lake(tmp_path)), KeyedTable.read
    one.append([_row("a")])
    one.fold(own=True)

    def broken(*_: Any, **__: Any) -> None:
        monkeypatch.setattr(KeyedTable, "read", read)
        raise OSError("timeout")

    monkeypatch.setattr(KeyedTable, "read", broken)
    with pytest.raises(OSError, match="timeout"):
        other.find("a")
    assert set(other.find("a")) == {"a"}


def test_a_call_without_a_reply_answers_nothing_and_is_counted(tmp_path: Path) -> None:
    ledger = Ledger(Lake(tmp_path))
    ledger.append([_row("a", None, status="failed", finish_reason=None, error="status 500")])
    assert ledger.find(["a"]) == {}
    ledger.append([_row("a", "late", minute=1)])
    assert ledger.find(["a"])["a"]["text"] == "late"
    ledger.append([_row("a", None, status="failed", finish_reason=None, minute=2)])
    assert ledger.rows()["status"].to_list() == ["failed", "ok"]
    assert ledger.fold(own=True) == 2 and not verify(Lake(tmp_path)).findings


def test_of_two_replies_to_one_request_the_earlier_counts_for_everyone(tmp_path: Path) -> None:
    one, other = Ledger(Lake(tmp_path)), Ledger(Lake(tmp_path))
    one.append([_row("a", "second", minute=2)])
    other.append([_row("a", "first", minute=1)])
    for ledger in (one, other):
        assert ledger.find(["a"])["a"]["text"] == "first"
    for ledger in (one, other):
        ledger.fold(own=True)
    assert one.rows()["text"].to_list() == ["first"]
    assert Ledger(Lake(tmp_path)).find(["a"])["a"]["text"] == "first"


def test_a_line_without_its_end_was_never_kept_and_a_broken_one_is_named(tmp_path: Path) -> None:
    ledger = Ledger(Lake(tmp_path))
    ledger.append([_row("a")])
    segment = _segments(tmp_path)[0]
    whole = segment.read_bytes()
    (segment.parent / "torn.jsonl").write_bytes(whole.replace(b'"a"', b'"b"') + whole[: len(whole) // 2])
    other = Ledger(Lake(tmp_path))
    assert set(other.find("ab")) == {"a", "b"}
    (segment.parent / "broken.jsonl").write_bytes(b'{"request": 1}\n')
    with pytest.raises(InputError, match=r"broken\.jsonl: one call a line expected"):
        other.find("a")


_WRITER = """
import sys
from datetime import datetime
from pathlib import Path
from storage.calls import Ledger
from storage.lake import Lake
from storage.schemas import CALLS
ledger, name = Ledger(Lake(sys.argv[1])), sys.argv[2]
for number in range(100_000):
    row = dict.fromkeys(CALLS.schema.names) | {"request": f"{name}-{number}", "model": "m", "endpoint": "e"}
    row |= {"prompt": "p", "repeat": 0, "purpose": "", "status": "ok", "finish_reason": "stop", "characters": 1}
    row |= {"attempts": 1, "text": "x" * 3000, "answered_at": datetime(2026, 1, 1)}
    ledger.append([row])
    print(row["request"], flush=True)
    if number % 20 == 19:
        ledger.fold(own=True)
"""


def test_writers_killed_at_any_moment_lose_nothing_that_was_appended(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path), name], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        for name in "ab"
    ]
    said: list[str] = []
    for writer in writers:
        assert writer.stdout
        said += [writer.stdout.readline().strip() for _ in range(50)]
        writer.kill()
        said += writer.stdout.read().split("\n")[:-1]
        writer.wait()
    ledger = Ledger(Lake(tmp_path))
    assert len(said) >= 100
    assert set(ledger.find(said)) == set(said)
    assert not _segments(tmp_path), "a new ledger folds the segments of ended processes"
    rows = ledger.rows()
    assert rows["request"].n_unique() == len(rows) <= len(said) + 2


def test_the_ledger_is_plain_parquet_with_units(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    ledger = Ledger(Lake(tmp_path))
    ledger.append([_row("a")])
    ledger.fold(own=True)
    part = next((tmp_path / "calls").rglob("*.parquet"))
    assert pq.read_schema(part).field("cost").metadata[b"unit"] == b"US dollars; null: unknown price"

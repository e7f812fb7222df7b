"""The ledger keeps every line, in order, whoever writes, and tells what was touched."""

import json
import multiprocessing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.ledger import START, BrokenLedger, Ledger, looks, shown


def _many(path: Path, name: str, count: int) -> None:
    for place in range(count):
        Ledger(path).append("note", {"by": name, "place": place})


def test_lines_of_concurrent_processes_are_one_chain(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_many, args=(path, f"w{number}", 10)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    lines = Ledger(path).lines()
    assert [line.number for line in lines] == list(range(40))
    assert [line.previous for line in lines] == [START, *(line.hash for line in lines[:-1])]
    for name in ("w0", "w1", "w2", "w3"):
        assert [line.facts["place"] for line in lines if line.facts["by"] == name] == list(range(10))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_edit_deletion_or_exchange_of_lines_is_found(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        _harm(Path(folder) / "ledger.jsonl", data)


def _harm(path: Path, data: st.DataObject) -> None:
    _many(path, "w", 5)
    rows = path.read_bytes().splitlines()
    place = data.draw(st.integers(0, 4))
    how = data.draw(st.sampled_from(["edit", "delete", "exchange", "repeat", "rehash"]))
    if how == "edit":
        at = data.draw(st.integers(0, 200))
        rows[place] = rows[place][:at] + bytes([rows[place][at] ^ 1]) + rows[place][at + 1 :]
    elif how == "delete":
        del rows[place]
    elif how == "exchange":
        other = data.draw(st.integers(0, 4).filter(lambda number: number != place))
        rows[place], rows[other] = rows[other], rows[place]
    elif how == "repeat":
        rows.insert(place, rows[place])
    else:
        line = Ledger(path).lines()[place]
        forged = type(line).make(line.number, line.kind, line.at, False, {"by": "someone"}, line.previous)
        rows[place] = json.dumps(vars(forged)).encode()
    path.write_bytes(b"".join(row + b"\n" for row in rows))
    assert Ledger(path).problems()
    with pytest.raises(BrokenLedger):
        Ledger(path).append("note", {})
    assert path.read_bytes().splitlines() == rows, "nothing is added to a broken chain"


def test_a_break_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    _many(path, "w", 4)
    rows = path.read_text().splitlines()
    for lines, said in (
        ([rows[0], rows[1].replace('"place":1', '"place":7'), *rows[2:]], "line 1 edited: its hash"),
        ([rows[0], *rows[2:]], "line 1 deleted"),
        ([rows[0], rows[2], rows[1], rows[3]], "line 2 reordered: line 1 belongs in its place"),
        (rows[:2], "lines 2 to 3 missing at the end"),
        ([rows[0], "{", *rows[2:]], "line 1 unreadable"),
    ):
        path.write_text("".join(f"{row}\n" for row in lines))
        assert Ledger(path).problems()[0].startswith(said)


def test_a_process_killed_between_a_line_and_its_note_breaks_nothing(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    _many(path, "w", 2)
    note = path.with_suffix(".head.json").read_bytes()
    _many(path, "w", 1)
    path.with_suffix(".head.json").write_bytes(note)
    assert Ledger(path).problems() == []
    path.with_suffix(".head.json").unlink()
    assert Ledger(path).problems() == ["the note of the last line missing"]
    path.unlink()
    path.with_suffix(".head.json").write_text('{"lines": 0, "hash": ""}')
    assert Ledger(path).problems() == ["the note of the last line edited"]


def test_processes_that_share_a_look_are_one(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.jsonl")
    first = ledger.append("unsealing", {"seal": "s", "look": None}).hash
    ledger.append("unsealing", {"seal": "s", "look": first})
    ledger.append("unsealing", {"seal": "another", "look": None})
    second = ledger.append("unsealing", {"seal": "s", "look": None}).hash
    assert looks(ledger.lines(), "s") == [first, second]
    assert "unsealing: seal s" in shown(ledger.lines()[0])

"""`suffice tables`: every table of a lake that holds nothing yet says so; what cannot be asked is one line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows.cli import app
from reports.published import printed
from storage.errors import InputError
from tests.conftest import write_locomo


def _run(folder: Path, *more: str) -> dict[str, object]:
    data = write_locomo(folder / "x.json")
    asked = ["tables", "sample", "--data", str(data), "--lake", str(folder / "lake"), "--json", *more]
    ran = CliRunner().invoke(app, asked)
    if ran.exception and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    found: dict[str, object] = json.loads(ran.stdout)
    return found


def test_a_lake_without_evidence_has_every_table_and_no_number_of_its_own(tmp_path: Path) -> None:
    found = _run(tmp_path, "--out", str(tmp_path / "out"))
    rows = found["tables"]
    assert isinstance(rows, list)
    assert [row["table"] for row in rows] == list(printed())
    assert all(row["beside"] == 0 for row in rows) and sum(row["published"] for row in rows) > 1000
    page = (tmp_path / "out" / "tables.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in page for name in printed())
    assert found["figures"] == {}


def test_the_bundled_sample_stands_beside_no_paper(tmp_path: Path) -> None:
    asked = ["tables", "sample", "--lake", str(tmp_path / "lake"), "--json", "--format", "csv", "--table", "bfr.table5"]
    ran = CliRunner().invoke(app, asked)
    paths = json.loads(ran.stdout)["paths"]
    assert "this run reads a bundled sample, not locomo" in Path(paths["bfr.table5.csv"]).read_text(encoding="utf-8")


def test_only_the_named_tables_are_written_in_the_named_formats(tmp_path: Path) -> None:
    found = _run(tmp_path, "--table", "bfr.table16,mempursuit.figure3", "--format", "md,latex")
    paths = found["paths"]
    assert isinstance(paths, dict)
    wanted = {f"{table}.{kind}" for table in ("bfr.table16", "mempursuit.figure3") for kind in ("md", "tex")}
    assert set(paths) == wanted
    assert all(Path(path).is_file() and "lake/reports/" in path for path in paths.values())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--table", "bfr.table7"), "--table: some of bfr.table2"),
        (("--format", "pdf"), "--format: some of html, md, csv, latex expected, 'pdf' found"),
        (("--bench", "nowhere.json"), "--bench: the JSON that `suffice bench readers --json` prints expected"),
    ],
)
def test_what_is_not_there_is_one_clear_line(tmp_path: Path, more: tuple[str, str], said: str) -> None:
    with pytest.raises(InputError) as caught:
        _run(tmp_path, *more)
    assert str(caught.value).startswith(said)

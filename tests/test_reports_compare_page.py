"""What a report keeps of its cells pairs two runs as the runs themselves would, and the page says what they carry."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from scipy import stats
from typer.testing import CliRunner

from flows.cli import app
from flows.compare import FIELDS
from reports.comparisons import compare_runs
from reports.kept import FILE, keep_cells, kept_cells
from reports.results import Results
from reports.tables import main_rows
from storage.errors import InputError
from tests.report_fixture import HOSTILE, build_results, two_arms

BEFORE = [0.0] * 9 + [1.0] * 11
AFTER = [1.0] * 9 + [0.0] + [1.0] * 10
"""9 won, 1 lost, 10 equal."""


class Text(HTMLParser):
    """The tags of a page and the text that it shows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def run(name: str, column: list[float]) -> Results:
    made = two_arms({"hybrid": column, "<i>bm25": [1.0, 0.0] * 10}, conversations=list("abcd") * 5)
    return replace(made, name=name)


def reported(folder: Path, results: Results, *, cells: bool = True, **said: Any) -> str:
    """A report's folder as far as comparing reads it."""
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps({"comparable": {**dict.fromkeys(FIELDS, "same"), **said}}))
    main_rows(results).write_csv(folder / "main.csv")
    if cells:
        keep_cells(results, folder)
    return folder.name


def told(lake: Path, *arguments: str) -> list[str]:
    found = CliRunner().invoke(app, ["compare", *arguments, "--lake", str(lake)])
    assert found.exit_code == 0, found.output
    return found.output.splitlines()


def test_kept_cells_pair_two_runs_as_the_runs_themselves_do(tmp_path: Path) -> None:
    one, other = build_results(seed=1), build_results(seed=2)
    kept = []
    for name, each in (("one", one), ("other", other)):
        (tmp_path / name).mkdir()
        keep_cells(each, tmp_path / name)
        kept.append(kept_cells(tmp_path / name))
    assert kept[0] is not None and kept[1] is not None
    found = compare_runs(kept[0], kept[1])
    assert found and found == compare_runs(one, other)


def test_no_text_of_a_question_of_gold_or_of_an_answer_is_kept(tmp_path: Path) -> None:
    results = build_results()
    frame = pl.read_parquet(keep_cells(results, tmp_path))
    held = {text for column in frame.select(pl.selectors.string()) for text in column.drop_nulls().to_list()}
    questions = results.questions
    texts = {*questions["text"], *questions["answer"], *results.cells["answer"], *HOSTILE} - {None}
    assert texts and held.isdisjoint(texts)
    assert "gold_turn_ids" not in frame.columns


def test_the_page_and_the_screen_state_the_exact_test_and_escape_what_they_show(tmp_path: Path) -> None:
    first = reported(tmp_path / "reports" / "a", run("a", BEFORE))
    second = reported(tmp_path / "reports" / "b<script>x", run("b", AFTER), seed="<b>2")
    lines = told(tmp_path, first, second, "--despite", "seed")
    path = Path(lines[-1])
    assert path == tmp_path / "reports" / "compare-a-b<script>x.html"
    page = Text(path.read_text(encoding="utf-8"))
    assert not page.tags & {"script", "i", "b"}
    shown = re.sub(r"\s+", " ", page.text)
    p = min(1, 2 * stats.binomtest(9, 10).pvalue)  # Holm's, of two arms of which the other is equal
    assert "55.0 % in the first run, 95.0 % in the second: +40.0 points on 20 common questions, " in shown
    assert f"common questions, Holm p = {p:.3f}; the second run is shown to be above the first." in shown
    assert "NOT COMPARABLE in seed: same and <b>2" in shown
    (row,) = (line for line in lines if re.search(r"hybrid@k10\s+complete_evidence\s+20 ", line))
    assert row.split()[3:6] == ["0.55", "0.95", "0.4"]


@pytest.mark.parametrize("kept", [True, False])
def test_runs_that_do_not_pair_are_joined_and_the_page_says_why(kept: bool, tmp_path: Path) -> None:
    first = reported(tmp_path / "reports" / "a", run("a", BEFORE))
    other = run("b", AFTER)
    renamed = [pl.concat_str(pl.lit("other "), "question_id").alias("question_id")]
    other = replace(other, questions=other.questions.with_columns(renamed), cells=other.cells.with_columns(renamed))
    second = reported(tmp_path / "reports" / "b", other, cells=kept)
    path = Path(told(tmp_path, first, second)[-1])
    why = "no question in common" if kept else "b kept no cells"
    assert why in path.read_text() and "Holm" not in path.read_text().split("<body>")[1]
    assert kept_cells(tmp_path / "reports" / "b") is not None or not (tmp_path / "reports" / "b" / FILE).exists()


def test_a_file_that_is_no_reports_cells_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no parquet")
    with pytest.raises(InputError, match="a report's cells expected"):
        kept_cells(tmp_path)
    pl.DataFrame({"arm": ["a"]}).write_parquet(tmp_path / FILE)
    with pytest.raises(InputError, match="a report's cells expected"):
        kept_cells(tmp_path)

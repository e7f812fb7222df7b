"""The written report: whole, self-contained, safe to open and to load into a spreadsheet."""

import csv
import re
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from reports.measures import measures
from reports.page import write_report
from reports.results import Results
from reports.tables import main_rows
from tests.report_fixture import HOSTILE, build_results, read_explorer

PICTURES = ("coverage", "cost", "latency", "differences", "kinds", "reuse", "scores", "agreement")
FILES = {
    "report.html",
    "report.md",
    "main.csv",
    "clustered.csv",
    "comparisons.csv",
    "rates.csv",
    "questions.html",
    "cells.parquet",
    *(f"{name}.{kind}" for name in PICTURES for kind in ("svg", "csv")),
}


class Page(HTMLParser):
    """Elements and attributes that a browser would act on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for own, attributes in self.tags if own == tag]


@pytest.fixture(scope="module")
def results() -> Results:
    return build_results()


@pytest.fixture(scope="module")
def written(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    return write_report(results, tmp_path_factory.mktemp("report") / "new" / "folder")


def test_every_file_is_written_and_no_half_of_one_stays(written: Mapping[str, Path]) -> None:
    scripts = written["details"].name
    assert {path.name for path in written.values()} == {*FILES, scripts}
    assert {path.name for path in written["report"].parent.iterdir()} == {*FILES, scripts}
    assert [path.name for path in sorted(written["details"].iterdir())] == ["000.js", "001.js", "002.js"]


def test_a_report_that_cannot_be_computed_leaves_the_old_one(results: Results, tmp_path: Path) -> None:
    (tmp_path / "main.csv").write_text("old")
    broken = replace(results, cells=pl.concat([results.cells, results.cells.head(1)]))
    with pytest.raises(ValueError, match="distinct keys"):
        write_report(broken, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["main.csv"]


@pytest.mark.parametrize("name", ["report", "questions"])
def test_pages_refer_to_nothing_outside_their_folder(written: Mapping[str, Path], name: str) -> None:
    page = Page(written[name].read_text(encoding="utf-8"))
    fetching = {"link", "iframe", "img", "object", "embed", "base", "audio", "video"}
    assert not {tag for tag, _ in page.tags} & fetching
    for tag, attributes in page.tags:
        for key in ("href", "src", "action", "xlink:href", "data"):
            target = attributes.get(key)
            assert target is None or target.startswith("#") or target in FILES, (tag, target)
        assert not [key for key in attributes if key.startswith("on")]
    (policy,) = [m["content"] for m in page.named("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe-eval" not in policy


def test_the_report_page_holds_no_address_at_all(written: Mapping[str, Path]) -> None:
    text = written["report"].read_text(encoding="utf-8")
    assert not re.search(r"https?://(?!evil\.example)", text)
    assert "@import" not in text
    assert "url(" not in text


def test_hostile_texts_stay_text(written: Mapping[str, Path]) -> None:
    report = Page(written["report"].read_text(encoding="utf-8"))
    assert report.named("script") == []
    questions = Page(written["questions"].read_text(encoding="utf-8"))
    assert [attributes.get("type") for attributes in questions.named("script")] == ["application/json", None]
    assert "Fixture &lt;b&gt;run" in written["report"].read_text(encoding="utf-8")


def test_templates_do_not_expand_what_data_holds(results: Results, tmp_path: Path) -> None:
    written = write_report(replace(results, title=HOSTILE[4]), tmp_path)
    for name in ("report", "markdown", "questions"):
        text = written[name].read_text(encoding="utf-8")
        assert "{{ 7 " in text
        assert "49 }}" not in text


def test_tables_name_their_columns_and_rows(written: Mapping[str, Path]) -> None:
    page = Page(written["report"].read_text(encoding="utf-8"))
    assert len(page.named("caption")) == len(page.named("table")) >= 10
    assert all(th.get("scope") in ("col", "row", "rowgroup") for th in page.named("th"))


def test_offline_scores_are_labelled_in_every_table_that_shows_them(
    written: Mapping[str, Path], results: Results, tmp_path: Path
) -> None:
    captions = re.findall(r"<caption>(.*?)</caption>", written["report"].read_text(encoding="utf-8"))
    scored = [caption for caption in captions if "lexical" in caption or "Scores" in caption]
    assert len(scored) >= 3
    assert all('class="offline"' in caption for caption in scored)
    online = write_report(replace(results, offline=False), tmp_path)["report"].read_text(encoding="utf-8")
    assert 'class="offline"' not in online


def test_digests_are_short_with_the_whole_to_copy(written: Mapping[str, Path], results: Results) -> None:
    text = written["report"].read_text(encoding="utf-8")
    full = results.identity["dataset"]
    assert f'title="{full}">{full[:16]}<span class="rest">{full[16:]}</span>' in text
    assert "extractive@1 (offline)" in text


def test_each_budget_is_a_block_of_its_own(written: Mapping[str, Path]) -> None:
    text = written["report"].read_text(encoding="utf-8")
    tables = [text[text.index(f"<caption>{name}") :].split("</table>")[0] for name in ("Equal records", "No budget")]
    blocks = [re.findall(r'scope="rowgroup"[^>]*><span>([^<]+)', table) for table in tables]
    assert blocks == [["2 records", "5 records"], ["No budget"]]
    table = tables[0]
    gold = re.search(r'<tr class="ceiling">.*?</tr>', table, re.DOTALL)
    assert gold
    assert "uses gold, not ranked" in gold[0]
    assert 'class="best"' not in gold[0]


def test_arms_of_all_budgets_stand_in_one_ranking_only_where_that_is_asked_for(
    results: Results, written: Mapping[str, Path], tmp_path: Path
) -> None:
    assert "Budgets mixed" not in written["report"].read_text(encoding="utf-8")
    mixed = write_report(replace(results, mix_budgets=True), tmp_path)["report"].read_text(encoding="utf-8")
    table = mixed[mixed.index("<caption>Budgets mixed") :].split("</table>")[0]
    assert table.count('scope="rowgroup"') == 1
    assert table.count('scope="row"') == len(results.arms)


def test_the_main_table_says_what_each_arm_realised_and_who_was_stopped(results: Results, tmp_path: Path) -> None:
    stopped = pl.when(pl.col("arm") == "bm25@k2").then(pl.lit("over_budget")).otherwise("stop_reason")
    made = replace(results, cells=results.cells.with_columns(stop_reason=stopped))
    text = write_report(made, tmp_path)["report"].read_text(encoding="utf-8")
    table = text[text.index("<caption>Equal records") :].split("</table>")[0]
    heads = re.findall(r'<th scope="col"[^>]*>([^<]+)', table)
    assert heads[-4:] == ["Records", "Tokens", "Calls", "Stopped"]
    row = table[table.index("bm25@k2") :].split("</tr>")[0]
    asked = results.questions.height
    assert re.findall(r'<span class="v">([^<]*)', row)[-4:] == ["2.0", "38.0", "0.0", str(asked)]


def test_main_csv_reads_back_as_main_rows(written: Mapping[str, Path], results: Results) -> None:
    read = pl.read_csv(written["main"], schema_overrides={"k": pl.String})
    assert read.equals(main_rows(results).with_columns(pl.col("arm"))), "nothing in it looks like a formula"
    header, *rows = list(csv.reader(written["main"].open(encoding="utf-8")))
    assert header == ["benchmark", "split", "arm", "k", "kind", "metric", "value", "low", "high", "n"]
    assert len(rows) == len(results.arms) * (1 + len(results.kinds)) * len(measures(results))


def test_labels_that_start_like_formulas_are_quoted_in_csv(results: Results, tmp_path: Path) -> None:
    hostile = {a.label: f"{start}{a.label}" for a, start in zip(results.arms, "=+-@\t\r", strict=False)}
    rename = pl.col("arm").replace(hostile)
    made = replace(
        results,
        arms=[replace(a, label=hostile.get(a.label, a.label)) for a in results.arms],
        cells=results.cells.with_columns(rename),
        verdicts=results.verdicts.with_columns(rename),
        selections=results.selections.with_columns(rename),
    )
    written = write_report(made, tmp_path)
    for name in ("main", "clustered"):
        rows = list(csv.DictReader(written[name].open(encoding="utf-8", newline="")))
        assert {row["arm"] for row in rows if row["arm"].startswith("'")} == {f"'{x}" for x in hostile.values()}
        assert not [row for row in rows if row["arm"][0] in "=+-@\t\r" or row["value"].startswith("'")]


def test_markdown_tables_keep_their_width(written: Mapping[str, Path]) -> None:
    text = written["markdown"].read_text(encoding="utf-8")
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
        assert len(widths) == 1
    assert "<script" not in text


def test_both_forms_say_that_no_judge_was_measured(written: Mapping[str, Path]) -> None:
    for name in ("report", "markdown"):
        assert "No judge's errors were measured" in written[name].read_text(encoding="utf-8")


def test_lone_surrogates_do_not_stop_a_report(results: Results, tmp_path: Path) -> None:
    made = replace(results, title="half \ud83d of a pair", facts={"bad \udc00": "\ud800"})
    written = write_report(made, tmp_path)
    assert "half \ufffd of a pair" in written["report"].read_text(encoding="utf-8")
    assert read_explorer(tmp_path)[0]["title"] == "half \ufffd of a pair"


def test_a_run_with_nothing_in_it_is_still_a_report(results: Results, tmp_path: Path) -> None:
    nothing = replace(
        results,
        arms=(),
        kinds=(),
        judges=(),
        facts={},
        identity={},
        reuse={},
        timings={},
        cells=results.cells.clear(),
        verdicts=results.verdicts.clear(),
        questions=results.questions.clear(),
        records=results.records.clear(),
        selections=results.selections.clear(),
    )
    assert set(write_report(nothing, tmp_path)) == {
        "report",
        "markdown",
        "main",
        "clustered",
        "comparisons",
        "rates",
        "questions",
        "cells",
    }

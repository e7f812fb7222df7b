"""A run's page in Prefect shows the means of its arms and where the report is, and never fails the run."""

from types import SimpleNamespace
from typing import Any

import markdown_it
import prefect.artifacts
import prefect.context
import pytest

from flows.artifacts import headline, keep_artifacts, key, link
from flows.progress import WATCHER, Silent
from flows.progress_artifact import Kept, progress_kept

SUMMARY: dict[str, Any] = {
    "protocol": "bfr_pilot|<b>",
    "questions": 1540,
    "offline": True,
    "paths": {"report": "/lake/reports/a b/report.html"},
    "headline": [
        {"arm": "hybrid@k10", "recall": 54.6, "calls": None},
        {"arm": "a|b*<i>_(view=x)@C3", "recall": None, "calls": 3.0},
    ],
    "comparable": {"gold": "the gold digest"},
}


def test_the_headline_is_a_table_whose_cells_read_as_they_were_written() -> None:
    tokens = markdown_it.MarkdownIt("commonmark").enable("table").parse(headline(SUMMARY))
    shown = [
        "".join(part.content for part in each.children or [] if part.type in ("text", "text_special", "html_inline"))
        for each in tokens
        if each.type == "inline"
    ]
    assert shown[2:] == ["arm", "recall", "calls", "hybrid@k10", "54.6", "–", "a|b*<i>_(view=x)@C3", "–", "3.0"]
    assert not any(part.type == "html_inline" for each in tokens for part in each.children or [])
    assert "gold digest" not in headline(SUMMARY)


def test_the_headline_ends_with_a_link_to_each_figure() -> None:
    figures = {"coverage": "s3://lake/coverage.svg", "coverage_data": "s3://lake/coverage.csv"}
    tokens = markdown_it.MarkdownIt().parse(headline({**SUMMARY, "paths": SUMMARY["paths"] | figures}))
    links = [part.attrs["href"] for each in tokens for part in each.children or [] if part.type == "link_open"]
    assert links == ["s3://lake/coverage.svg"]


def test_keys_are_what_the_server_takes_and_links_open() -> None:
    assert key(SUMMARY["protocol"], "headline") == "bfr-pilot-b-headline"
    assert link("/a b/report.html") == "file:///a%20b/report.html"
    assert link("s3://bucket/report.html") == "s3://bucket/report.html"


def test_artifacts_are_kept_within_a_run_alone_and_never_fail_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kept: list[str] = []
    monkeypatch.setattr(prefect.artifacts, "create_markdown_artifact", lambda text, **_: kept.append(text))
    monkeypatch.setattr(prefect.artifacts, "create_link_artifact", lambda link, **_: kept.append(link))
    keep_artifacts(SUMMARY)
    assert kept == []
    monkeypatch.setattr(prefect.context.FlowRunContext, "get", lambda: SimpleNamespace())
    keep_artifacts(SUMMARY)
    assert kept == [headline(SUMMARY), "file:///lake/reports/a%20b/report.html"]

    def refused(*_: Any, **__: Any) -> None:
        raise ConnectionError("the server is gone")

    monkeypatch.setattr(prefect.artifacts, "create_markdown_artifact", refused)
    keep_artifacts(SUMMARY)
    assert "the server is gone" in caplog.text


def test_progress_goes_stage_by_stage_reaches_the_bars_and_ends_where_the_run_does(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said: list[tuple[float, str]] = []
    seen: list[str] = []

    class Bars(Silent):
        def advance(self, stage: str) -> None:
            seen.append(stage)

    def created(progress: float, name: str, words: str) -> str:
        said.append((progress, f"{name}: {words}"))
        return "id"

    def updated(own: str, progress: float, words: str) -> str:
        said.append((progress, words))
        return own

    monkeypatch.setattr(prefect.artifacts, "create_progress_artifact", created)
    monkeypatch.setattr(prefect.artifacts, "update_progress_artifact", updated)
    with progress_kept("a run", ("pool", "compose")):
        WATCHER.get().begin("pool", 1)
    assert said == []
    monkeypatch.setattr(prefect.context.FlowRunContext, "get", lambda: SimpleNamespace())
    token = WATCHER.set(Bars())
    with progress_kept("a run", ("pool", "compose", "report")):
        WATCHER.get().begin("pool", 0)
        WATCHER.get().begin("compose", 4)
        for _ in range(4):
            WATCHER.get().advance("compose")
    starts = (0.0, "a-run-progress: stage 1 of 4: ingest")
    assert said == [starts, (50.0, "stage 3 of 4: compose"), (100.0, "done")] and seen == ["compose"] * 4
    said.clear()
    monkeypatch.setattr(Kept, "every_s", 0.0)
    with pytest.raises(ValueError, match="broken"), progress_kept("a run", ("pool",)):
        WATCHER.get().begin("pool", 4)
        WATCHER.get().advance("pool")
        raise ValueError("broken")
    assert said[1:] == [
        (50.0, "stage 2 of 2: pool"),
        (62.5, "stage 2 of 2: pool"),
        (62.5, "stopped, stage 2 of 2: pool"),
    ]

    def refused(*_: Any) -> None:
        raise ConnectionError("the server is gone")

    monkeypatch.setattr(prefect.artifacts, "update_progress_artifact", refused)
    with progress_kept("a run", ("pool",)):
        WATCHER.get().begin("pool", 4)
    WATCHER.reset(token)
    assert caplog.text.count("the server is gone") == 1

"""Every command that the docs show exists as they show it, and those marked runnable run."""

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from flows.cli import COMMANDS, app

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^ *```([^\n]*)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
RUNNABLE = [page for page in PAGES if "```sh runnable" in page.read_text(encoding="utf-8")]


def commands(page: Path, *, runnable: bool = False) -> list[list[str]]:
    """The words after `suffice` of each such line in a page's shell blocks, of blocks marked runnable or of all."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    shell = [text for kind, text in blocks if kind == "sh runnable" or (not runnable and kind in ("", "sh"))]
    lines = [line.strip() for text in shell for line in text.splitlines()]
    parts = [line.partition("&& ")[2] if line.startswith("make run") else line for line in lines]
    return [shlex.split(line, comments=True)[1:] for line in parts if line.startswith("suffice ")]


SHOWN = [(page.name, words) for page in PAGES for words in commands(page)]


@pytest.mark.parametrize(("page", "words"), SHOWN, ids=[f"{page}: {' '.join(words)}" for page, words in SHOWN])
def test_a_command_in_the_docs_is_one_of_the_command_line(page: str, words: list[str]) -> None:
    if words[0].endswith(","):  # several commands named side by side
        assert {word.rstrip(",") for word in words} <= set(COMMANDS)
    elif words[0] != "COMMAND":
        group = typer.main.get_command(app)
        name, command, rest = group.resolve_command(group.make_context("suffice", words[:1]), words)  # type: ignore[attr-defined]
        command.make_context(name, rest)


def test_the_docs_show_commands_and_mark_some_runnable() -> None:
    assert len(SHOWN) > 60
    assert {page.stem for page in RUNNABLE} >= {"first-run", "adding-an-arm", "troubleshooting"}


def test_a_command_that_does_not_exist_would_be_found() -> None:
    for words in (["run", "sample", "--leek", "lake"], ["rum", "sample"]):
        with pytest.raises(Exception, match="No such"):
            test_a_command_in_the_docs_is_one_of_the_command_line("here", words)


def test_runnable_commands_of_the_docs_run(server: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pages = sorted(RUNNABLE, key=lambda page: page.stem != "first-run")  # the others rest on its lake
    for words in [words for page in pages for words in commands(page, runnable=True)]:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, f"{words}: {done.output} {done.exception!r}"
    assert list(tmp_path.glob("lake/reports/*/report.html"))

"""Prompt files are strict: every placeholder is filled, once, and nothing is passed over."""

from pathlib import Path

import pytest

from storage.errors import InputError
from tasks import prompts
from tasks.prompts import Message, load


def _file(folder: Path, text: str) -> str:
    path = folder / "mine.md"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_file_without_sections_is_one_user_message(tmp_path: Path) -> None:
    prompt = load("answering", _file(tmp_path, "\ufeffAsk: {{question}}\n"))
    assert prompt.render(question="Who?") == (Message("user", "Ask: Who?"),)


def test_sections_become_messages_in_order(tmp_path: Path) -> None:
    prompt = load("answering", _file(tmp_path, "## system\nBe brief.\n\n## user\n{{ question }}\n### not a section\n"))
    assert prompt.render(question="Who?") == (
        Message("system", "Be brief."),
        Message("user", "Who?\n### not a section"),
    )


def test_a_missing_and_an_unknown_variable_are_refused(tmp_path: Path) -> None:
    prompt = load("answering", _file(tmp_path, "{{question}} {{evidence}}"))
    with pytest.raises(InputError, match="a value for evidence expected"):
        prompt.render(question="Who?")
    with pytest.raises(InputError, match="no variable gold expected"):
        prompt.render(question="Who?", evidence="", gold="x")
    assert prompt.fill({"question": "Who?", "evidence": "E", "gold": "x"})[0].content == "Who? E"


def test_a_value_that_looks_like_a_placeholder_is_not_filled_again(tmp_path: Path) -> None:
    prompt = load("answering", _file(tmp_path, "{{question}}|{{evidence}}"))
    text = prompt.render(question="{{evidence}} \\1", evidence="{{question}}")[0].content
    assert text == "{{evidence}} \\1|{{question}}"


def test_json_examples_in_a_prompt_are_left_alone(tmp_path: Path) -> None:
    text = 'Reply {"a": {"b": 1}} or {{}} or {{a b}}'
    assert load("judging", _file(tmp_path, text)).render()[0].content == text


def test_the_digest_follows_what_is_said_and_not_the_name(tmp_path: Path) -> None:
    one = load("judging", _file(tmp_path, "## user\nGrade {{reply}}\n"))
    other = tmp_path / "other.txt"
    other.write_text("Grade {{reply}}", encoding="utf-8")
    assert load("judging", str(other)).digest == one.digest
    other.write_text("Grade  {{reply}}", encoding="utf-8")
    assert load("judging", str(other)).digest != one.digest


@pytest.mark.parametrize("text", ["", "## system\n\n## user\nx", "stray\n## user\nx"])
def test_an_empty_section_or_stray_text_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match="text in every section"):
        load("answering", _file(tmp_path, text))


def test_a_prompt_that_does_not_exist_names_those_that_do() -> None:
    with pytest.raises(InputError, match=r"one of brief, long, short expected, 'shrt' found"):
        load("answering", "shrt")


def test_a_placeholder_that_nobody_fills_is_refused_at_loading(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="variables among evidence, question expected, gold found"):
        load("answering", _file(tmp_path, "{{question}} {{gold}}"), ("question", "evidence"))


def test_every_shipped_prompt_loads() -> None:
    for folder in prompts.SHIPPED.iterdir():
        for name in prompts.shipped(folder.name) if folder.is_dir() else []:
            assert load(folder.name, name).parts

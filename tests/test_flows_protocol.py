"""A protocol is validated once, says what is wrong, and its digest tells every change."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from flows import protocol as protocols
from flows.cli import app
from flows.commands.options import split
from flows.protocol import load, setting
from flows.stages import STAGES, chosen
from storage.errors import InputError

BROKEN = [
    ("name = 3", "Input should be a valid string"),
    ("nme = 'x'", "nme: Extra inputs are not permitted"),
    ("arms = []", "arms"),
    ("arms = ['hybird@k10']", "did you mean hybrid"),
    ("arms = ['hybrid']\nbudgets = []", "a budget expected"),
    ("answerer = 'gpt'", "answerer: one of extractive expected"),
    ("judges = ['nobody']", "judge: one of"),
    ("seed = -1", "greater than or equal to 0"),
    ("[data]\nbenchmark = 'locom'", "one of locomo, longmemeval_s"),
    ("[data]\nbenchmark = 'locomo'\nsplit = 'hidden'", "split"),
    ("[[stores]]\nname = 'a'\n[[stores]]\nname = 'a'", "different names expected"),
    ("[[stores]]\nencoder = 'minilm(max_token=3)'", "did you mean max_tokens"),
    ("not toml", "TOML expected"),
]


@pytest.mark.parametrize("name", protocols.shipped())
def test_every_shipped_protocol_is_valid(name: str) -> None:
    said = load(name)
    assert said.name == name
    assert said.plan("lake", "d", "g").arms


@pytest.mark.parametrize(("text", "expected"), BROKEN)
def test_a_mistake_in_a_protocol_is_one_line_that_names_the_key(tmp_path: Path, text: str, expected: str) -> None:
    whole = {"name": "'x'", "arms": "['hybrid@k10']", "[data]": "\nbenchmark = 'locomo'"}
    lines = [f"{key} = {value}" for key, value in whole.items() if key != "[data]" and not text.startswith(key)]
    data = [] if text.startswith("[data]") else ["[data]\nbenchmark = 'locomo'"]
    body = [text, *data]
    path = tmp_path / "p.toml"
    path.write_text("\n".join([*lines, *body]))
    with pytest.raises(InputError, match=expected) as caught:
        load(str(path))
    assert "\n" not in str(caught.value)


def test_where_the_data_lies_is_not_part_of_the_digest_and_all_else_is() -> None:
    one = load("sample")
    assert load("sample", {"data.path": "elsewhere"}).digest == one.digest
    for change in ({"seed": 1}, {"arms": ["dense"]}, {"stores.0.pool.size": 9}, {"data.limit": 3}, {"title": "x"}):
        assert load("sample", change).digest != one.digest


def test_settings_are_toml_values_or_bare_words() -> None:
    assert setting("seed=7") == ("seed", 7)
    assert setting("stores.0.pool.fusion=rrf") == ("stores.0.pool.fusion", "rrf")
    assert setting('budgets=["k1"]') == ("budgets", ["k1"])
    with pytest.raises(InputError, match="key=value expected"):
        setting("seed")
    with pytest.raises(InputError, match="a key of the protocol expected"):
        load("sample", {"stores.7.pool": 1})


def test_arms_are_split_at_commas_outside_parentheses() -> None:
    assert split(["hybrid@k10,mmr(trade=0.7, x=1)@k5", "dense"]) == ["hybrid@k10", "mmr(trade=0.7, x=1)@k5", "dense"]


def test_stages_are_chosen_by_only_or_until() -> None:
    assert chosen(None, None) == STAGES
    assert chosen("pool", None) == ("pool",)
    assert chosen(None, "index") == ("ingest", "store", "index")
    for only, until in (("pol", None), (None, "pol"), ("pool", "pool")):
        with pytest.raises(InputError):
            chosen(only, until)


@pytest.mark.parametrize("command", ["run", "report", "status", "arms", "doctor", "fetch", "bench"])
def test_every_command_explains_itself(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) > 5


def test_arms_lists_every_reader_with_defaults_and_source() -> None:
    from readers import READERS

    result = CliRunner().invoke(app, ["arms", "--json"])
    for name in READERS:
        assert f'"name": "{name}"' in result.stdout
    assert "trade=0.5" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "nowhere"],
        ["run", "locomo"],
        ["run", "locomo", "--data", "nowhere.json"],
        ["run", "sample", "--only", "pol"],
        ["run", "sample", "--arms", "hybird"],
        ["run", "sample", "--set", "x.y=1"],
        ["status", "sample", "--lake", "nowhere"],
        ["fetch", "nothing"],
        ["bench", "nothing"],
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from flows import cli

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["suffice", *arguments])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("suffice: ") and shown.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []

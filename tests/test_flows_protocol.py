"""A protocol is validated once, says what is wrong, and its digest tells every change."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from flows import protocol as protocols
from flows.cli import app
from flows.commands.options import listed
from flows.gate import open_split
from flows.protocol import load, setting
from flows.stages import STAGES, chosen
from storage.errors import InputError
from storage.lake import Lake

BROKEN = [
    ("name = 3", "Input should be a valid string"),
    ("nme = 'x'", r"nme: one of name, .*did you mean name\?\) expected, 'nme' found"),
    ("arms = []", "arms: one or more expected, none found"),
    ("arms = ['hybird@k10']", "did you mean hybrid"),
    ("arms = ['hybrid']\nbudgets = []", "a budget expected"),
    ("answerer = 'gpt'", "answerer: one of extractive, prompted expected"),
    ("judges = ['nobody']", "judge: one of"),
    ("seed = -1", "greater than or equal to 0"),
    ("[data]\nbenchmark = 'locom'", "one of locomo, longmemeval_s"),
    ("[data]\nbenchmark = 'locomo'\nsplit = 'hidden'", "split"),
    ("[data]\nbenchmark = 'locomo'\nquestions = ['q', 'q']", "'q' found twice"),
    ("[data]\nbenchmark = 'locomo'\nfolds = [['a'], ['b', 'a']]", "'a' found twice"),
    ("[report]\nmix_budget = true", r"mix_budget: one of .*did you mean mix_budgets\?"),
    ("[[stores]]\nname = 'a'\n[[stores]]\nname = 'a'", "different names expected"),
    ("[[stores]]\nencoder = 'minilm(max_token=3)'", "did you mean max_tokens"),
    ("[models.small]\nmodel = 'm'\nmodl = 'm'", r"modl: one of model, base_url.*did you mean model\?"),
    ("[models.model]\nmodel = 'm'\nmodl = 'm'", r"models.model.modl: one of model, .*did you mean model\?"),
    ("[[stores]]\npool = {sze = 3}", r"stores.0.pool.sze: one of size, fusion \(did you mean size\?\)"),
    ("stores = 3", "stores: a list expected, 3 found"),
    ("judges = 'lexical_match'", "judges: a list expected, 'lexical_match' found"),
    ("report = 3", "report: a table expected, int found"),
    ("[[stores]]\nname = 'a'\npool = {size = 0}", "greater than or equal to 1, 0 found"),
    ("[models.small]\nmodel = 'm'\nbase_url = 'ftp://x'", "base_url"),
    ("[models.small]\nmodel = 'm'\nconcurrency = 0", "greater than or equal to 1"),
    ("[models.small]\nmodel = 'm'\nkey_variable = 'sk-my key'", "key_variable"),
    ("[models.small]\nmodel = 'm'\nprompt_price = 1", "expected together"),
    ("[models.small]\nmodel = 'm'\nextra = {temperature = 1}", "'temperature' found; it is set elsewhere"),
    ("answerer = 'prompted(model=big)'", r"\[models.big\] expected"),
    ("[[comparisons]]\narm = 'mmr@k10'\nagainst = 'hybrid@k10'", "comparisons: an arm of the protocol"),
    ("[[comparisons]]\narm = 'hybrid@k10'\nagainst = 'hybrid@k10'\nmetric = 'accuracy'", "one of gold_hit, .*stem_f1"),
    ("not toml", "TOML expected"),
]


@pytest.mark.parametrize("name", protocols.shipped())
def test_every_shipped_protocol_is_valid(name: str) -> None:
    said = load(name)
    assert said.name == name
    assert open_split(said).plan("lake", "d", "g").arms


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


def test_a_mistake_of_a_part_names_it_once() -> None:
    with pytest.raises(InputError, match=r"^judge: the form name\(parameter=value, …\) expected, 'a,b' found$"):
        protocols.with_judges(load("sample"), ["a,b"])
    with pytest.raises(InputError, match=r"^protocol \S+sample.toml: answerer: one of"):
        load("sample", {"answerer": "x"})


def test_where_the_data_lies_is_not_part_of_the_digest_and_all_else_is() -> None:
    one = load("sample")
    assert load("sample", {"data.path": "elsewhere"}).digest == one.digest
    for change in ({"seed": 1}, {"arms": ["dense"]}, {"stores.0.pool.size": 9}, {"data.limit": 3}, {"title": "x"}):
        assert load("sample", change).digest != one.digest


def test_how_a_model_is_reached_is_not_part_of_the_digest_and_what_it_replies_is() -> None:
    one = load("sample", {"models.small.model": "m"})
    assert one.digest != load("sample").digest
    for key, value in (("base_url", "http://x/v1"), ("concurrency", 3), ("key_variable", "K"), ("batch", True)):
        assert load("sample", {"models.small.model": "m", f"models.small.{key}": value}).digest == one.digest
    for key, value in (("temperature", 0.5), ("max_tokens", 9), ("extra", {"top_k": 1}), ("model", "n")):
        assert load("sample", {"models.small.model": "m", f"models.small.{key}": value}).digest != one.digest
    model = one.plan("lake", "d", "g").model("small")
    assert (model.name, model.model, model.key_variable) == ("small", "m", "OPENAI_API_KEY")


def test_the_protocols_of_the_paper_ask_what_they_say(locomo_file: Path) -> None:
    from tasks.sources import locomo

    read = locomo.load(locomo_file)
    gold = {own.question_id for own in read.gold if own.turn_ids}
    kinds = {question.id: question.kind for question in read.questions}
    pilot, one = load("bfr_pilot").data.questions, load("conv30").data
    drawn, rng = set[str](), np.random.default_rng(20260908)
    for kind, size in (("multi-hop", 33), ("temporal", 50), ("open-domain", 8), ("single-hop", 109)):
        asked = [id for id in kinds if kinds[id] == kind and id in gold]
        drawn |= set(rng.choice(asked, size, replace=False).tolist())
    assert set(pilot) == drawn and len(pilot) == 200
    asked = [q for q in read.questions if q.conversation_id in one.conversations and q.kind in one.kinds]
    assert len([question for question in asked if question.id in gold]) == len(asked) == 81
    folded = [name for fold in load("locomo_folds").data.folds for name in fold]
    assert sorted(folded) == sorted({question.conversation_id for question in read.questions})


def test_settings_are_toml_values_or_bare_words() -> None:
    assert setting("seed=7") == ("seed", 7)
    assert setting("stores.0.pool.fusion=rrf") == ("stores.0.pool.fusion", "rrf")
    assert setting('budgets=["k1"]') == ("budgets", ["k1"])
    with pytest.raises(InputError, match="key=value expected"):
        setting("seed")
    with pytest.raises(InputError, match="a key of the protocol expected"):
        load("sample", {"stores.7.pool": 1})


def test_arms_are_split_at_commas_outside_parentheses() -> None:
    assert listed(["hybrid@k10,mmr(trade=0.7, x=1)@k5", "dense"]) == ["hybrid@k10", "mmr(trade=0.7, x=1)@k5", "dense"]


def test_stages_are_chosen_by_only_or_until() -> None:
    assert chosen(None, None) == STAGES
    assert chosen("pool", None) == ("pool",)
    assert chosen(None, "index") == ("ingest", "store", "index")
    for only, until in (("pol", None), (None, "pol"), ("pool", "pool")):
        with pytest.raises(InputError):
            chosen(only, until)


@pytest.mark.parametrize("command", ["run", "report", "status", "estimate", "arms", "doctor", "fetch", "bench"])
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
        ["run", "sample", "--limit", "0"],
        ["run", "sample", "--arms", ""],
        ["run", "sample", "--conversations", ","],
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


def test_other_arms_than_the_protocols_leave_its_declared_comparison_out() -> None:
    declared = load("sample").comparisons
    assert [(each.against, each.arm) for each in declared] == [("hybrid@k10", "mem_pursuit@k10")]
    assert load("sample", {"data.limit": 5}).comparisons == declared
    assert load("sample", {"arms": ["bm25"]}).comparisons == ()
    own = [{"arm": "mmr@k5", "against": "bm25@k5"}]
    assert load("sample", {"arms": ["bm25", "mmr"], "comparisons": own}).comparisons[0].arm == "mmr@k5"


def test_where_wrong_labels_lie_is_no_part_of_the_digest() -> None:
    assert load("sample", {"data.wrong_labels": "labels.json"}).digest == load("sample").digest


@pytest.mark.parametrize("command", [["arms"], ["doctor"], ["status", "sample"]])
def test_json_of_a_command_is_one_object(command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUFFICE_LAKE", str(Lake.open(tmp_path).root))
    assert isinstance(json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout), dict)


def test_a_misspelt_table_is_told_before_the_table_that_lacks(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("name = 'x'\narms = ['hybrid@k10']\n[dta]\nbenchmark = 'locomo'")
    with pytest.raises(InputError, match=r"dta: one of .*did you mean data\?"):
        load(str(path))


def test_a_misspelt_name_of_a_shipped_protocol_is_told_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"did you mean sample\?\) expected, 'smaple' found"):
        load("smaple")


@pytest.mark.parametrize("times", [["--cron", "daily"], ["--cron", "0 3 * * *", "--timezone", "Mars"]])
def test_a_schedule_that_is_none_is_told_before_anything_is_served(times: list[str], tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["serve", "sample", "--lake", str(tmp_path / "lake"), *times])
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(times[-2])

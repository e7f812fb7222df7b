"""A whole run with models over real HTTP: gold stays where it may be, and judging again touches nothing else."""

import hashlib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows import protocol as protocols
from flows.protocol import Protocol, with_judges
from flows.rejudge import report_arms
from flows.report import frames_of
from flows.stages import STAGES
from storage.errors import InputError
from storage.lake import Lake
from storage.schemas import SUFFICIENCY
from tests.conftest import conversation, write_locomo
from tests.fault_server import REFUSAL, FaultServer
from tests.test_flows_benchmark import _plan

CANARY = "XQZCANARY"
KEY = "sk-canary-2718281828"


def _reply(body: dict[str, Any]) -> str:
    """The answerer and the judges of the test: they agree on nothing that a rule could not tell."""
    text = str(body["messages"])
    if body["model"] == "answerer":
        return "Kiwi is the parrot." if "Kiwi" in text else "Hm"
    if body["model"] == "judge":
        return "CORRECT" if "Kiwi" in text else "WRONG"
    if "disagreed" in text:
        return "verdict: insufficient"
    return "yes" if "unsure" in text else "insufficient"


def _protocol(data: Path, url: str, *, key: str = "OPENAI_API_KEY", **changes: Any) -> Protocol:
    named = {"answers": "answerer", "grades": "judge", "panel": "panel"}
    models = {
        name: {"model": model, "base_url": url, "max_tokens": 16, "key_variable": key} for name, model in named.items()
    }
    panel = ["blinded(model=panel)", "blinded(model=panel, words=yes/no/unsure)"]
    said = {
        "data.path": str(data),
        "arms": ["hybrid", "dense", "oracle"],
        "budgets": ["k1", "k2"],
        "models": models,
        "answerer": "prompted(model=answers)",
        "judges": ["lenient(model=grades)"],
        "sufficiency": {"judges": panel, "adjudicator": "blinded(model=panel, prompt=adjudicate)"},
    }
    return protocols.load("sample", {**said, **changes})


def _files(lake: Path, *left_out: str) -> dict[str, str]:
    """Path → digest of every table file but those of the named tables."""
    files = [path for path in lake.rglob("*.parquet") if path.relative_to(lake).parts[0] not in left_out]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_run_with_models_keeps_gold_from_the_answerer_and_is_judged_again_alone(
    tmp_path: Path, server: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from flows.benchmark import benchmark
    from flows.calibrate import calibrate
    from flows.diagnose import diagnose
    from flows.rejudge import rejudge

    planted = conversation()
    for place, row in enumerate(planted["qa"]):
        row["answer" if "answer" in row else "adversarial_answer"] = f"{CANARY}{place}"
    data, lake = write_locomo(tmp_path / "x.json", planted), tmp_path / "lake"
    monkeypatch.setenv("RUN_KEY", KEY)
    caplog.set_level(0)
    with FaultServer(_reply, key=KEY) as endpoint:
        protocol = _protocol(data, endpoint.url, key="RUN_KEY")
        summary = benchmark(protocol, str(Lake.open(lake).root), STAGES)
        asked = {name: [seen for seen in endpoint.asked() if seen.body["model"] == name] for name in _NAMES}
        assert all(asked.values()), "every model was asked something"
        for seen in asked["answerer"]:
            assert CANARY not in str(seen.body) + str(seen.headers)
        assert CANARY in str([seen.body for seen in asked["judge"]]), "the judges see gold, or this test sees nothing"
        for seen in asked["panel"]:
            assert not any(told in str(seen.body) for told in ("hybrid", "oracle", "k1", "D1:1", "Kiwi is the parrot"))

        assert summary["new"]["sufficiency"] > 0
        states = len(asked["answerer"])
        assert summary["reuse"]["distinct evidence states"] == states, "each state was answered once"
        _check_panel(protocol, lake)

        again = benchmark(protocol, str(lake), STAGES)
        assert set(again["new"].values()) == {0}
        before, calls = _files(lake, "verdicts", "calls", "runs"), len(endpoint.asked())
        graded = with_judges(protocol, ["strict(model=grades, words=CORRECT/WRONG, repeats=2)", "stem_f1"])
        found = rejudge(graded, str(lake))
        assert _files(lake, "verdicts", "calls", "runs") == before, "nothing before the verdicts was touched"
        new = endpoint.asked()[calls:]
        assert new and {seen.body["model"] for seen in new} == {"judge"}
        assert [row["judge"] for row in found["judges"]] == list(graded.judges)
        assert found["judges"][1]["flip rate"] == 0.0
        assert {(row["arm"], row["judge"]) for row in found["arms"]} == {
            (arm, judge) for arm in summary["arms"] for judge in graded.judges
        }
        assert rejudge(graded, str(lake))["new"] == 0 and len(endpoint.asked()) == calls + len(new)

        told = diagnose(protocol, str(lake), None)
        assert [row["arm"] for row in told["diagnosis"]] == summary["arms"]
        assert all(row["n"] == 2 for row in told["diagnosis"]), "the adversarial question stands apart"

        rates = calibrate(protocol, str(lake), "lenient(model=grades)")
        assert {row["what"].split(",")[0] for row in rates["rates"]} >= {"false accepts", "false rejects"}
        assert [row["answers"] for row in rates["accuracy"]] == summary["arms"]

    parts = [path for path in lake.rglob("*") if path.is_file()]
    for path in parts:
        table = path.relative_to(lake).parts[0]
        shown = str(pl.read_parquet(path).to_dicts()) if path.suffix == ".parquet" else str(path.read_bytes())
        if table not in ("gold", "reports", "verdicts", "sufficiency"):
            assert CANARY not in shown, path
        assert KEY not in shown, path
    assert {path.relative_to(lake).parts[0] for path in parts} >= {"calls", "reports", "runs", "starts"}
    assert KEY not in caplog.text + str(protocol) + str(summary)
    assert all(KEY.encode() not in path.read_bytes() for path in _prefect_files()), "parameters and logs of flow runs"


def _prefect_files() -> list[Path]:
    """The database of the test's Prefect server, with its journal."""
    from prefect.settings import PREFECT_API_DATABASE_CONNECTION_URL

    database = Path(str(PREFECT_API_DATABASE_CONNECTION_URL.value()).partition(":///")[2].partition("?")[0])
    found = list(database.parent.glob(f"{database.name}*"))
    assert any(b"benchmark" in path.read_bytes() for path in found), f"the run is recorded in {database}"
    return found


_NAMES = ("answerer", "judge", "panel")


def _check_panel(protocol: Protocol, lake: Path) -> None:
    plan = _plan(protocol, lake)
    rows = Lake(lake).table(SUFFICIENCY, plan.sufficiency).read()
    assert rows.select("question_id", "evidence_hash").is_unique().all()
    assert set(rows["question_id"]) == {"c1/q0", "c1/q1"}, "a question without an answer has nothing to suffice for"
    for row in rows.iter_rows(named=True):
        assert row["votes"] == ["insufficient", "sufficient", "insufficient"], "they differ, so a third decides"
        assert row["label"] == "insufficient"
    cells = frames_of(plan, report_arms(plan)).cells
    said = {(row["question_id"], row["evidence_hash"]): row["label"] for row in rows.iter_rows(named=True)}
    shown = cells.select("question_id", "evidence_hash", "sufficiency").rows()
    assert [label for *_, label in shown] == [said.get((question, state)) for question, state, _ in shown]
    assert cells["sufficiency"].null_count() > 0 < cells["sufficiency"].count()


def test_a_judge_that_refuses_leaves_cells_unjudged_and_in_the_denominator(tmp_path: Path, server: None) -> None:
    from flows.benchmark import benchmark
    from flows.rejudge import rejudge

    data, lake = write_locomo(tmp_path / "x.json"), tmp_path / "lake"
    with FaultServer(_reply) as endpoint:
        endpoint.rule = lambda body: REFUSAL if body["model"] == "judge" else None
        protocol = _protocol(data, endpoint.url, sufficiency={"judges": ["lexical_cover"]}, arms=["hybrid"])
        benchmark(protocol, str(Lake.open(lake).root), STAGES)
        row = rejudge(protocol, str(lake))["arms"][0]
    assert (row["strict"], row["judged"], row["n"], row["n_judged"]) == (0.0, None, 2, 0)


def test_a_part_that_names_no_model_or_a_panel_that_cannot_be_is_refused(tmp_path: Path) -> None:
    data = write_locomo(tmp_path / "x.json")
    with pytest.raises(InputError, match=r"\[models.other\] expected, as strict names it"):
        with_judges(_protocol(data, "http://x"), ["strict(model=other)"])
    with pytest.raises(InputError, match="two judges or more expected beside an adjudicator"):
        _protocol(data, "http://x", sufficiency={"judges": ["lexical_cover"], "adjudicator": "lexical_cover"})
    with pytest.raises(InputError, match=r"\[models.gone\] expected, as blinded names it"):
        _protocol(data, "http://x", sufficiency={"judges": ["blinded(model=gone)"]})

"""The main job runs every stage on real input, repeats nothing, and goes on where it was killed."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from flows import protocol as protocols
from flows.protocol import Protocol
from flows.stages import STAGES
from readers.types import Access, Budget, Evidence, Pool, Query
from storage.errors import InputError
from storage.lake import Lake
from storage.schemas import ANSWERS, HOLDINGS, RECORDS, SELECTIONS, STATES, VERDICTS
from tasks.llm import Message, Model, Request, ask
from tasks.plan import Plan
from tests.conftest import conversation, write_locomo
from tests.fault_server import FaultServer
from tests.told_access import ORDERLY

ARMS = ["hybrid", "dense", "mem_pursuit", "oracle", "full_context@all"]
Run = Callable[..., dict[str, Any]]


def _protocol(data: Path, **changes: Any) -> Protocol:
    return protocols.load("sample", {"data.path": str(data), "arms": ARMS, "budgets": ["k1", "k2"], **changes})


@pytest.fixture
def run(server: None) -> Run:
    """The benchmark flow, in this process."""
    from flows.benchmark import benchmark

    def call(protocol: Protocol, lake: Path, stages: tuple[str, ...] = STAGES) -> dict[str, Any]:
        return benchmark(protocol, str(Lake.open(lake).root), stages)

    return call


@pytest.fixture(scope="module")
def sample(server: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A lake in which the sample protocol has run, with the run's summary."""
    from flows.benchmark import benchmark

    lake = tmp_path_factory.mktemp("sample")
    yield lake, benchmark(protocols.load("sample"), str(Lake.open(lake).root), STAGES)


def _plan(protocol: Protocol, lake: Path) -> Plan:
    from tasks.ingest import ingest
    from tasks.sources import locate

    dataset = ingest(str(lake), protocol.data.benchmark, str(locate("locomo", protocol.data.path)))
    return protocol.plan(str(lake), dataset.dataset, dataset.gold)


def _tables(protocol: Protocol, lake: Path) -> dict[str, pl.DataFrame]:
    """Every table of the run, sorted, without latencies."""
    plan, place = _plan(protocol, lake), Lake(lake)
    store = plan.stores[0]
    return {
        "records": place.table(RECORDS, store.store).read().sort("unit", "place"),
        "holdings": place.table(HOLDINGS, store.store).read().sort("conversation_id", "place"),
        "states": place.table(STATES, store.store).read().sort("question_id", "evidence_hash"),
        "selections": place.table(SELECTIONS, store.selections(plan.seed))
        .read()
        .drop("latency_ms")
        .sort("arm", "question_id"),
        "answers": place.table(ANSWERS, plan.answers).read().sort("question_id", "evidence_hash"),
        **{
            judge: place.table(VERDICTS, plan.verdicts(judge)).read().sort("question_id", "answer")
            for judge in plan.judges
        },
    }


def test_every_expected_cell_of_the_sample_is_in_the_report(sample: tuple[Path, dict[str, Any]]) -> None:
    _, summary = sample
    main = pl.read_csv(summary["paths"]["main"], schema_overrides={"k": pl.String})
    columns = ["benchmark", "split", "arm", "k", "kind", "metric", "value", "low", "high", "n"]
    assert main.columns == columns
    kinds = {"all", "multi-hop", "temporal", "open-domain", "single-hop", "adversarial"}
    for arm in summary["arms"]:
        of_arm = main.filter((pl.col("arm") == arm) & (pl.col("metric") == "complete_evidence"))
        assert set(of_arm["kind"]) == kinds
        assert of_arm.filter(pl.col("kind") == "adversarial")["value"].to_list() == [None]
    ceiling = main.filter((pl.col("arm") == "oracle@k10") & (pl.col("metric") == "complete_evidence"))
    assert ceiling.filter(pl.col("kind") == "all")["value"].to_list() == [1.0]


def test_readers_differ_on_the_sample(sample: tuple[Path, dict[str, Any]]) -> None:
    rows = {row["arm"]: row["complete"] for row in sample[1]["headline"]}
    compared = [rows[f"{reader}@k10"] for reader in ("hybrid", "dense", "bm25", "mmr", "random")]
    assert max(compared) < 90
    assert len(set(compared)) >= 4


def test_a_repeated_run_computes_nothing(sample: tuple[Path, dict[str, Any]], run: Run) -> None:
    lake, first = sample
    again = run(protocols.load("sample"), lake)
    assert set(again["new"].values()) == {0}
    assert again["paths"] == first["paths"]


def test_a_trace_shows_when_gold_entered(sample: tuple[Path, dict[str, Any]]) -> None:
    from flows.trace import trace

    lake, summary = sample
    found = trace(protocols.load("sample"), str(lake), "sample-1/q0")
    assert [arm["arm"] for arm in found["arms"]] == summary["arms"]
    ceiling = next(arm for arm in found["arms"] if arm["arm"] == "oracle@k10")
    assert sorted({turn for step in ceiling["steps"] for turn in step["gold"]}) == sorted(found["gold"])
    with pytest.raises(InputError, match="'nothing' found"):
        trace(protocols.load("sample"), str(lake), "nothing")


def test_an_added_arm_computes_that_arm_only(sample: tuple[Path, dict[str, Any]], run: Run) -> None:
    lake, first = sample
    said = protocols.load("sample")
    more = protocols.load("sample", {"arms": [*said.arms, "dpp@k5"]})
    again = run(more, lake)
    assert again["new"]["compose"] == first["questions"]
    assert again["new"]["pool"] == again["new"]["index"] == again["new"]["store"] == 0
    assert 0 < again["new"]["answer"] <= first["questions"]


def test_states_that_arms_share_are_answered_once(sample: tuple[Path, dict[str, Any]]) -> None:
    reuse = sample[1]["reuse"]
    assert reuse["cells with evidence"] == reuse["cells"]
    assert reuse["answers"] == reuse["distinct evidence states"] < reuse["cells"]
    assert reuse["answers saved"] == reuse["cells that share a state"] > 0


def test_stages_one_by_one_are_the_same_as_all_at_once(tmp_path: Path, run: Run) -> None:
    protocol = _protocol(write_locomo(tmp_path / "x.json"))
    run(protocol, tmp_path / "whole")
    for stage in STAGES:
        run(protocol, tmp_path / "steps", (stage,))
    whole, steps = _tables(protocol, tmp_path / "whole"), _tables(protocol, tmp_path / "steps")
    assert all(whole[name].equals(steps[name]) for name in whole)
    assert len(whole["selections"]) == 9 * 3


def test_a_limited_run_shares_everything_with_the_full_one(tmp_path: Path, run: Run) -> None:
    data = write_locomo(tmp_path / "x.json", conversation("c1"), conversation("c2"))
    run(_protocol(data), tmp_path / "lake")
    limited = run(_protocol(data, **{"data.limit": 2}), tmp_path / "lake")
    assert limited["questions"] == 2
    assert {stage: new for stage, new in limited["new"].items() if new} == {"report": limited["new"]["report"]}


def test_chosen_conversations_alone_are_embedded_and_shared_with_the_full_run(tmp_path: Path, run: Run) -> None:
    other = conversation("c2")
    for session in ("session_1", "session_2"):
        for turn in other["conversation"][session]:
            turn["text"] += " Indeed."
    data = write_locomo(tmp_path / "x.json", conversation("c1"), other)
    one = run(_protocol(data, **{"data.conversations": ["c1"]}), tmp_path / "lake")
    both = run(_protocol(data), tmp_path / "lake")
    assert one["new"]["index"] == 4 + 4 + 3, "four records, their texts and three questions"
    assert both["new"]["index"] == 8 + 4, "eight records in the new index, four new texts"
    assert both["new"]["pool"] == 3 and both["new"]["compose"] == 9 * 3


def test_a_corrected_gold_answer_judges_anew_and_answers_nothing(tmp_path: Path, run: Run) -> None:
    changed = conversation()
    changed["qa"][0]["answer"] = "8 May 2023"
    run(_protocol(write_locomo(tmp_path / "1.json")), tmp_path / "lake")
    again = run(_protocol(write_locomo(tmp_path / "2.json", changed)), tmp_path / "lake")
    assert again["new"]["answer"] == again["new"]["compose"] == 0
    assert again["new"]["judge"] > 0


def test_gold_is_in_no_table_that_readers_or_answerers_touch(tmp_path: Path, run: Run) -> None:
    canary = "XQZCANARY"
    planted = conversation()
    for place, row in enumerate(planted["qa"]):
        row["answer" if "answer" in row else "adversarial_answer"] = f"{canary}{place}"
    protocol = _protocol(write_locomo(tmp_path / "x.json", planted))
    run(protocol, tmp_path / "lake")
    allowed = {"gold", "reports"}
    for path in (tmp_path / "lake").rglob("*"):
        if path.is_file() and path.relative_to(tmp_path / "lake").parts[0] not in allowed:
            shown = str(pl.read_parquet(path).to_dicts()) if path.suffix == ".parquet" else str(path.read_bytes())
            assert canary not in shown, path
    gold = pl.concat(pl.read_parquet(path) for path in (tmp_path / "lake" / "gold").rglob("*.parquet"))
    assert canary in str(gold.to_dicts()), "the canary must be somewhere, or this test sees nothing"


def test_a_reader_is_given_nothing_of_gold(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from readers.ranking import Hybrid

    seen: list[object] = []
    read = Hybrid.read

    def spy(self: Hybrid, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        seen.extend([vars(query), vars(pool), vars(budget), vars(access)])
        return read(self, query, pool, budget, access)

    monkeypatch.setattr(Hybrid, "read", spy)
    planted = conversation()
    planted["qa"][1]["answer"] = "XQZCANARY"
    run(_protocol(write_locomo(tmp_path / "x.json", planted)), tmp_path / "lake")
    assert seen and "XQZCANARY" not in str(seen)


def test_hostile_text_reaches_the_report_as_text(tmp_path: Path, run: Run) -> None:
    hostile = conversation()
    hostile["conversation"]["session_1"][0]["text"] = '<script>alert(1)</script> =HYPERLINK("x") \u202e\x07 \ud800'
    summary = run(_protocol(write_locomo(tmp_path / "x.json", hostile)), tmp_path / "lake")
    for name in ("report", "questions"):
        assert "<script>alert(1)" not in Path(summary["paths"][name]).read_text(encoding="utf-8")


def test_a_conversation_of_one_turn_and_a_pool_larger_than_the_store_are_survived(tmp_path: Path, run: Run) -> None:
    short = conversation(qa=conversation()["qa"][:1])
    short["conversation"] = {
        "speaker_a": "A",
        "speaker_b": "B",
        "session_1": short["conversation"]["session_1"][:1],
    }
    summary = run(_protocol(write_locomo(tmp_path / "x.json", short), budgets=["k10"]), tmp_path / "lake")
    assert summary["reuse"]["cells with evidence"] == 5
    assert summary["reuse"]["distinct evidence states"] == 1


def test_vectors_in_the_pool_are_those_of_the_texts(tmp_path: Path, run: Run) -> None:
    from tasks.encoders.minilm import MiniLm
    from tasks.index import haystack

    protocol = _protocol(write_locomo(tmp_path / "x.json"))
    run(protocol, tmp_path / "lake", ("store",))
    run(protocol, tmp_path / "lake", ("index",))
    plan = _plan(protocol, tmp_path / "lake")
    indexed = haystack(plan, plan.stores[0], plan.record_frame(plan.stores[0], "c1"))
    records = plan.records(plan.stores[0], "c1")
    alone = np.concatenate([MiniLm().encode([record.text]) for record in records])
    assert np.abs(alone - indexed).max() < 1e-6


def test_a_stage_whose_input_is_missing_says_which_to_run(tmp_path: Path, run: Run) -> None:
    protocol = _protocol(write_locomo(tmp_path / "x.json"))
    for stage, expected in (
        ("index", "run stage store"),
        ("pool", "run stage index"),
        ("compose", "run stage pool"),
    ):
        with pytest.raises(InputError, match=expected):
            run(protocol, tmp_path / "lake", (stage,))


def test_a_conversation_or_kind_that_the_data_lacks_is_refused(tmp_path: Path, run: Run) -> None:
    data = write_locomo(tmp_path / "x.json")
    with pytest.raises(InputError, match=r"data.conversations: some of c1 expected, 'c9' found"):
        run(_protocol(data, **{"data.conversations": ["c9"]}), tmp_path / "lake")
    with pytest.raises(InputError, match=r"data.questions: some of c1/q0, c1/q1, c1/q2 expected, 'c1/q9' found"):
        run(_protocol(data, **{"data.questions": ["c1/q9"]}), tmp_path / "lake")
    with pytest.raises(InputError, match=r"data.folds: some of c1 expected, 'c2' found"):
        run(_protocol(data, **{"data.folds": [["c1"], ["c2"]]}), tmp_path / "lake")


def test_named_questions_alone_are_run_and_without_a_judge_none_is_answered(tmp_path: Path, run: Run) -> None:
    data, lake = write_locomo(tmp_path / "x.json"), tmp_path / "lake"
    said = _protocol(data, **{"data.questions": ["c1/q1"], "judges": [], "arms": ["hybrid@k1", "bfr_text@C1k2"]})
    summary = run(said, lake)
    assert summary["questions"] == 1
    assert summary["new"]["compose"] == 2
    assert summary["new"]["answer"] == 0
    plan = _plan(said, lake)
    assert not Lake(lake).table(ANSWERS, plan.answers).holds_any()
    report = Path(summary["paths"]["report"]).read_text(encoding="utf-8")
    assert "Before and after completion" in report
    assert "Scores of answers" not in report


def _command(lake: Path, data: Path, *more: str) -> list[str]:
    arms = [option for arm in ARMS for option in ("--arms", arm)]
    where = ["--lake", str(lake), "--data", str(data)]
    return [
        sys.executable,
        "-m",
        "flows.cli",
        "run",
        "sample",
        *where,
        *arms,
        "--set",
        'budgets=["k1", "k5"]',
        *more,
    ]


def test_a_key_may_lie_in_a_prefect_secret_block(server: None, tmp_path: Path) -> None:
    from prefect.blocks.system import Secret

    Secret(value="sk-of-the-block").save("calls-key")
    with FaultServer(key="sk-of-the-block") as endpoint:
        model = Model("small", "m", endpoint.url, key_variable="prefect:calls-key")
        assert ask(str(tmp_path), [Request(model, (Message("user", "q"),), "p")])[0].status == "ok"
        with pytest.raises(InputError, match="a Prefect secret block 'absent' expected"):
            ask(str(tmp_path), [Request(replace(model, key_variable="prefect:absent"), (Message("user", "z"),), "p")])


def test_the_command_prints_one_json_object_and_nothing_else(tmp_path: Path) -> None:
    data = write_locomo(tmp_path / "x.json")
    done = subprocess.run(_command(tmp_path / "lake", data, "--json"), capture_output=True, text=True, check=True)
    summary = json.loads(done.stdout)
    assert Path(summary["paths"]["report"]).is_file()
    assert summary["reuse"]["cells"] == 9 * 3
    assert set(summary["seconds"]) == set(STAGES)
    assert done.stderr == ""


def test_arms_that_ask_a_model_run_with_the_others_and_are_asked_once(run: Run, tmp_path: Path) -> None:
    def said(body: dict[str, Any]) -> str:
        text = body["messages"][-1]["content"]
        return ORDERLY["setr" if "Selected:" in text else "subset" if '"selected"' in text else "requirements"]

    with FaultServer(said) as endpoint:
        protocol = _protocol(
            write_locomo(tmp_path / "data.json"),
            arms=["hybrid", "setr(model=small)", "bfr_mv_model(model=small)@C1"],
            **{"models.small.model": "m", "models.small.base_url": endpoint.url},
        )
        summary = run(protocol, tmp_path / "lake")
        asks = len(endpoint.seen)
        again = run(protocol, tmp_path / "lake")
        assert asks == len(endpoint.seen) == 9
    assert summary["new"]["compose"] == 15
    assert set(again["new"].values()) == {0}
    main = pl.read_csv(summary["paths"]["main"], schema_overrides={"k": pl.String})
    rows = main.filter((pl.col("metric") == "gold_hit") & (pl.col("kind") == "all"))
    assert len(rows) == 5 and rows["value"].is_not_null().all()

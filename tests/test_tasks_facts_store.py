"""A store of facts beside a store of turns: written once, resumed, forecast, and measured by its source turns."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows import protocol as protocols
from flows.estimate import estimate
from flows.status import held
from readers.types import Budget
from storage.errors import InputError
from storage.lake import Lake
from storage.schemas import EXTRACTIONS, GOLD, SCORES, SELECTIONS, STATES
from tasks.candidates import Parts, build_pools, parts_of, refuse_silent_parts
from tasks.compose import compose
from tasks.evidence import line
from tasks.index import build_index, chunks_to_embed, embed_chunk
from tasks.ingest import ingest
from tasks.judge import score
from tasks.llm import BudgetStop, budget
from tasks.oracle import assemble, compose_oracle
from tasks.plan import Plan
from tasks.store import write_store
from tests.conftest import conversation, write_locomo
from tests.fault_server import FaultServer

PROTOCOL = """
name = "facts"
arms = ["hybrid@k1", "hybrid@k1:facts", "hybrid@k2:facts", "oracle@k1:facts", "hybrid@k1:observed"]
answerer = "prompted(model=small)"
judges = ["stem_f1"]
[data]
benchmark = "locomo"
[[stores]]
name = "turns"
[[stores]]
name = "facts"
writer = "facts(model=small, batch=2)"
pool = {fusion = "mem0"}
[[stores]]
name = "observed"
writer = "observations"
pool = {fusion = "mem0(candidates=semantic, threshold=-1)"}
[models.small]
model = "m"
"""
OBSERVED = {"session_1_observation": {"Ada": [["Ada adopted a parrot on 7 May 2023.", ["D1:1", "D1:2"]]]}}
SAID = {
    "parrot yesterday": [("Ada adopted a parrot on 7 May 2023.", [1]), ("Bo saw a green parrot of Ada's.", [2, 1])],
    "called Kiwi": [("Ada's parrot is called Kiwi.", [1, 2])],
}


def reply(body: dict[str, Any]) -> str:
    """The facts of a batch of the small conversation, or an answer."""
    asked = body["messages"][-1]["content"].partition("each with its number")[2]
    facts = next((facts for words, facts in SAID.items() if words in asked), [])
    return json.dumps([{"fact": fact, "messages": numbers} for fact, numbers in facts]) if asked else "Kiwi"


@pytest.fixture
def endpoint() -> Iterator[FaultServer]:
    with FaultServer(reply) as server:
        yield server


def _told(name: str) -> dict[str, Any]:
    """A conversation in whose every message its name stands, so that no two ask the same."""
    made = conversation(name, observation=OBSERVED)
    for session in ("session_1", "session_2"):
        for turn in made["conversation"][session]:
            turn["text"] += f" ({name})"
    return made


def _protocol(folder: Path, endpoint: FaultServer, names: tuple[str, ...] = ("c1", "c2"), **changes: Any) -> Any:
    data = write_locomo(folder / "data.json", *map(_told, names))
    (folder / "p.toml").write_text(PROTOCOL)
    changes = {"data.path": str(data), "models.small.base_url": endpoint.url, **changes}
    return protocols.load(str(folder / "p.toml"), changes)


def _plan(said: Any, lake: Path) -> Plan:
    root = str(Lake.open(lake).root)
    found = ingest(root, "locomo", said.data.path)
    return said.plan(root, found.dataset, found.gold)


def _records(plan: Plan, store: int) -> pl.DataFrame:
    return plan.record_frame(plan.stores[store], plan.conversation_ids())


def test_facts_are_written_once_with_an_account_of_every_batch(tmp_path: Path, endpoint: FaultServer) -> None:
    plan = _plan(_protocol(tmp_path, endpoint), tmp_path / "lake")
    assert write_store(plan, plan.stores[1]) == 6
    assert (write_store(plan, plan.stores[1]), len(endpoint.asked())) == (0, 4)
    rows = _records(plan, 1).filter(pl.col("conversation_id") == "c2")
    assert rows["id"].to_list() == ["c2/D1:1.f0", "c2/D1:1.f1", "c2/D2:1.f0"]
    assert rows["source_turn_ids"].to_list() == [["c2/D1:1"], ["c2/D1:1", "c2/D1:2"], ["c2/D2:1", "c2/D2:2"]]
    account = Lake(plan.lake).table(EXTRACTIONS, plan.stores[1].store).read().sort("first_turn_id")
    assert account.select("first_turn_id", "turns", "status", "facts").rows() == [
        ("c1/D1:1", 2, "ok", 2),
        ("c1/D2:1", 2, "ok", 1),
        ("c2/D1:1", 2, "ok", 2),
        ("c2/D2:1", 2, "ok", 1),
    ]


def test_a_conversation_in_which_nothing_is_to_be_remembered_is_not_asked_again(
    tmp_path: Path, endpoint: FaultServer
) -> None:
    plan = _plan(_protocol(tmp_path, endpoint), tmp_path / "lake")
    endpoint.reply = lambda body: reply(body) if "Kiwi" in str(body) else "[]"
    write_store(plan, plan.stores[1])
    asked = len(endpoint.asked())
    write_store(plan, plan.stores[1])
    assert len(endpoint.asked()) == asked


def test_a_store_that_stays_empty_is_an_error_that_says_why(tmp_path: Path, endpoint: FaultServer) -> None:
    plan = _plan(_protocol(tmp_path, endpoint), tmp_path / "lake")
    endpoint.reply = lambda body: "no JSON"
    with pytest.raises(InputError, match=r"made none \(4 batches parse_failed\); try another model"):
        write_store(plan, plan.stores[1])


def test_data_conversations_bounds_what_is_asked_for(tmp_path: Path, endpoint: FaultServer) -> None:
    plan = _plan(_protocol(tmp_path, endpoint, **{"data.conversations": ["c2"]}), tmp_path / "lake")
    write_store(plan, plan.stores[1])
    assert set(_records(plan, 1)["conversation_id"]) == {"c2"}


def test_a_budget_stops_between_batches_and_the_next_run_asks_only_the_rest(
    tmp_path: Path, endpoint: FaultServer
) -> None:
    nearest = {"stores.1.writer": "facts(model=small, batch=2, near=1)"}
    plan = _plan(_protocol(tmp_path, endpoint, **nearest), tmp_path / "lake")
    with pytest.raises(BudgetStop), budget(plan.lake, max_calls=3):
        write_store(plan, plan.stores[1])
    assert len(endpoint.asked()) == 3
    assert write_store(plan, plan.stores[1]) == 6
    assert len(endpoint.asked()) == 4


def _evidence(plan: Plan) -> None:
    """What the stages before answering leave in the lake."""
    for store in plan.stores:
        write_store(plan, store)
        for chunk in chunks_to_embed(plan, store):
            embed_chunk(plan, store, chunk)
        build_index(plan, store)
        ids = plan.conversation_ids()
        for stage in (build_pools, compose, compose_oracle, score):
            stage(plan, store, ids)


def _cells(plan: Plan, arm: str, question: str) -> dict[str, Any]:
    """One cell's records and metrics."""
    lake, store = Lake(plan.lake), next(store for store in plan.stores if arm in map(str, plan.arms_of(store)))
    where = (pl.col("arm") == arm) & (pl.col("question_id") == question)
    rows = lake.table(SELECTIONS, store.selections(plan.seed)).read(["question_id", "evidence_hash"], where=where)
    keys = ["question_id", "evidence_hash"]
    states = lake.table(STATES, store.store).read()
    scores = lake.table(SCORES, plan.scores(store)).read()
    found: dict[str, Any] = rows.join(states, on=keys).join(scores, on=keys).row(0, named=True)
    return found


def test_evidence_metrics_of_facts_are_those_of_their_source_turns(tmp_path: Path, endpoint: FaultServer) -> None:
    """`Who is Kiwi?` has the gold turns D1:1 and D2:2."""
    plan = _plan(_protocol(tmp_path, endpoint, ("c1",)), tmp_path / "lake")
    _evidence(plan)
    sources = {row["id"]: row["source_turn_ids"] for row in _records(plan, 1).to_dicts()}
    gold = set(Lake(plan.lake).table(GOLD, plan.gold).read().filter(question_id="c1/q1")["turn_ids"][0])
    assert gold == {"c1/D1:1", "c1/D2:2"}
    for arm in ("hybrid@k1:facts", "hybrid@k2:facts"):
        cell = _cells(plan, arm, "c1/q1")
        held_turns = {turn for id in cell["record_ids"] for turn in sources[id]}
        assert cell["evidence_recall"] == len(held_turns & gold) / 2
        assert cell["complete_sessions"] == float({"c1/D1:1", "c1/D2:2"} <= held_turns)
    observed = _cells(plan, "hybrid@k1:observed", "c1/q1")
    assert (observed["record_ids"], observed["evidence_recall"], observed["session_recall"]) == (["c1/S1.o0"], 0.5, 0.5)


def test_facts_are_shown_with_the_date_of_their_session_oldest_first(tmp_path: Path, endpoint: FaultServer) -> None:
    plan = _plan(_protocol(tmp_path, endpoint, ("c1",)), tmp_path / "lake")
    _evidence(plan)
    records = {record.id: record for record in plan.records(plan.stores[1], "c1")}
    shown = [line(records[id]) for id in _cells(plan, "hybrid@k2:facts", "c1/q2")["record_ids"]]
    assert shown[-1] == "[9:05 am on 1 June, 2023] Ada's parrot is called Kiwi."
    assert shown[0].startswith("[1:56 pm on 8 May, 2023] ")


def test_the_pools_say_how_often_each_part_of_the_hybrid_took_part(tmp_path: Path, endpoint: FaultServer) -> None:
    said = _protocol(tmp_path, endpoint, ("c1",))
    plan = _plan(said, tmp_path / "lake")
    _evidence(plan)
    assert parts_of(plan, plan.stores[0]) is None
    assert parts_of(plan, plan.stores[1]) == Parts(pools=3, bm25=3, entities=3)
    counts = {(row.what): (row.held, row.expected) for row in held(said, plan.lake)}
    assert counts["facts: batches read"] == (2, 2)
    assert counts["facts: pools that BM25 took part in"] == (3, 3)
    assert counts["facts: pools that entities took part in"] == (3, 3)


def test_a_part_that_never_takes_part_is_refused_unless_it_is_switched_off(
    tmp_path: Path, endpoint: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks.candidates.ENOUGH", 3)
    monkeypatch.setattr("tasks.mem0.entities", lambda text, common=frozenset(): [])
    plan = _plan(_protocol(tmp_path, endpoint, ("c1",)), tmp_path / "lake")
    _evidence(plan)
    assert parts_of(plan, plan.stores[1]) == Parts(pools=3, bm25=3, entities=0)
    with pytest.raises(InputError, match="entities in some of 3 pools expected, found in none"):
        refuse_silent_parts(plan, plan.stores[1])
    off = {"stores.1.pool.fusion": "mem0(boost=0)"}
    other = _plan(_protocol(tmp_path, endpoint, ("c1",), **off), tmp_path / "lake")
    _evidence(other)
    refuse_silent_parts(other, other.stores[1])


def test_the_oracle_takes_the_records_that_together_hold_every_gold_turn_first() -> None:
    sources = {"a": ["1"], "b": ["1", "9"], "c": ["2", "3"], "d": ["3"], "e": ["9"]}
    tokens = dict.fromkeys(sources, 1)
    for size, expected in ((1, ("c",)), (2, ("c", "a")), (4, ("c", "a", "b", "d")), (5, ("c", "a", "b", "d", "e"))):
        assert assemble(["1", "2", "3"], ["e"], sources, tokens, Budget(records=size)).ids == expected


def test_the_address_of_a_facts_store_follows_model_prompt_and_encoder_and_no_alias(
    tmp_path: Path, endpoint: FaultServer
) -> None:
    def address(**changes: Any) -> str:
        said = _protocol(tmp_path, endpoint, **{key.replace("__", "."): value for key, value in changes.items()})
        return said.plan("lake", "d", "g").stores[1].store

    first = address()
    assert address(models__small__concurrency=3) == first
    table = {"model": "m", "base_url": endpoint.url}
    alias = {"models.other": table, "models.small": table, "stores.1.writer": "facts(model=other, batch=2)"}
    assert _protocol(tmp_path, endpoint, **alias).plan("lake", "d", "g").stores[1].store == first
    for changes in (
        {"models__small__model": "n"},
        {"stores__1__encoder": "endpoint(model=e)"},
        {"stores__1__writer": "facts(model=small, batch=3)"},
    ):
        assert address(**changes) != first


def test_a_model_that_the_protocol_lacks_is_refused(tmp_path: Path, endpoint: FaultServer) -> None:
    with pytest.raises(InputError, match=r"a table \[models.big\] expected, as facts names it"):
        _protocol(tmp_path, endpoint, **{"stores.1.writer": "facts(model=big)"})


def test_the_forecast_counts_every_batch_and_asks_for_none(tmp_path: Path, endpoint: FaultServer) -> None:
    said = _protocol(tmp_path, endpoint)
    plan = _plan(said, tmp_path / "lake")
    rows = {row.stage: row for row in estimate(said, plan.lake)}
    assert (rows["store"].held, rows["store"].calls, endpoint.asked()) == (0, 4, [])
    assert rows["answer"].calls == 30, "five arms, six questions, each taken to have evidence"
    with pytest.raises(BudgetStop), budget(plan.lake, max_calls=3):
        write_store(plan, plan.stores[1])
    rows = {row.stage: row for row in estimate(said, plan.lake)}
    assert (rows["store"].held, rows["store"].calls) == (3, 1)
    write_store(plan, plan.stores[1])
    assert "store" not in {row.stage for row in estimate(said, plan.lake)}

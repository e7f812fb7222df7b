"""Arms and stores are shown and counted alike."""

from dataclasses import replace
from pathlib import Path

from flows import protocol as protocols
from flows.pools import plan_of
from storage.lake import Lake
from storage.schemas import STATES
from tasks.candidates import build_pools
from tasks.compose import compose
from tasks.encoders.minilm import count_tokens
from tasks.evidence import line
from tasks.imported.bringing import bring
from tasks.index import chunks_to_embed, embed_chunk
from tasks.plan import Plan
from tasks.store import write_store
from tests.conftest import write_locomo
from tests.pool_fixture import pool, queries, write_pool


def _plan(tmp_path: Path, place: Path) -> Plan:
    """Two stores: the turns, and another system's candidates."""
    stores = [{"name": "turns"}, {"name": "attic", "pools": str(place)}]
    changes = {"data.path": str(write_locomo(tmp_path / "x.json")), "stores": stores, "arms": ["hybrid@k2:attic"]}
    protocol, lake = protocols.load("sample", changes), str(tmp_path / "lake")
    ingested = plan_of(protocol, lake)
    return protocol.plan(lake, ingested.dataset, ingested.gold)


def test_a_record_is_shown_alike_whoever_made_it(tmp_path: Path) -> None:
    plan = _plan(tmp_path, write_pool(tmp_path / "first", pool(), queries()))
    write_store(plan, plan.stores[0])
    turns = {record.id: record for record in plan.records(plan.stores[0], "c1")}
    same = turns["c1/D1:1"]
    rows = [{**each, "timestamp": same.said_at, "text": same.text} for each in pool() if each["candidate_id"] == "a"]
    plan = _plan(tmp_path, write_pool(tmp_path / "pool", [{**each, "native_rank": 0} for each in rows], queries()))
    bring(plan, plan.stores[1])
    (theirs,) = plan.records(plan.stores[1], "c1")
    assert line(theirs) == line(same) == "[1:56 pm on 8 May, 2023] " + same.text
    assert line(replace(theirs, said_at=None)) != line(same), "a dropped date would show"


def test_tokens_of_a_state_are_those_of_its_records_whoever_made_them(tmp_path: Path) -> None:
    plan = _plan(tmp_path, write_pool(tmp_path / "pool", pool(), queries(), shown=True))
    store = plan.stores[1]
    bring(plan, store)
    for chunk in chunks_to_embed(plan, store):
        embed_chunk(plan, store, chunk)
    build_pools(plan, store, ["c1"])
    compose(plan, store, ["c1"])
    records = {record.id: record for record in plan.records(store, "c1")}
    states = list(Lake(plan.lake).table(STATES, store.store).read().iter_rows(named=True))
    assert {len(state["record_ids"]) for state in states} > {1}
    for state in states:
        shown = [line(records[id]) for id in state["record_ids"] if id in records]
        assert state["tokens"] == sum(count_tokens(shown)) if shown else state["tokens"] == 0

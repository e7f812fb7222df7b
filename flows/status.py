"""How much of a protocol a lake holds, stage by stage."""

from typing import NamedTuple

from flows.gate import planned
from flows.protocol import Protocol
from storage.lake import Lake
from storage.schemas import CONVERSATIONS, HOLDINGS, IMPORTED, INDEXES
from tasks.adjudicate import unadjudicated
from tasks.answer import selected_states, unanswered
from tasks.candidates import missing_pools, parts_of
from tasks.compose import missing_cells
from tasks.extraction import batches
from tasks.index import vectors_kept
from tasks.ingest import ingest
from tasks.judge import unjudged, unscored
from tasks.sealed import Unsealing


class Held(NamedTuple):
    """One stage's count. `expected` is what a full run holds, as far as the earlier stages tell."""

    stage: str
    what: str
    held: int
    expected: int


def held(protocol: Protocol, lake: str, unsealing: Unsealing | None = None) -> list[Held]:
    """Counts for every stage. Ingests the data if the lake lacks it: all addresses depend on it."""
    data = protocol.data
    dataset = ingest(lake, data.benchmark, data.path, data.sha256 or None, data.split)
    plan, place = planned(protocol, lake, dataset, unsealing), Lake(lake)
    questions = len(plan.questions())
    sessions = place.table(CONVERSATIONS, plan.dataset).read(["conversation_id", "turns"])
    turns, conversations = int(sessions["turns"].sum()), sessions["conversation_id"].n_unique()
    rows = [Held("ingest", "turns", turns, turns), Held("ingest", "questions", questions, questions)]
    for store in plan.stores:
        records = place.table(IMPORTED if store.pools else HOLDINGS, store.store)
        written = records.read(["conversation_id"])["conversation_id"].n_unique()
        rows.append(Held("store", f"{store.name}: conversations", written, conversations))
        if asked := batches(plan, store).rows_by_key("status", named=True, unique=True):
            read = asked["ok"]["batches"] if "ok" in asked else 0
            every = sum(row["batches"] for row in asked.values())
            rows.append(Held("store", f"{store.name}: batches read", read, every))
        rows.append(Held("index", f"{store.name}: vectors", *vectors_kept(plan, store)))
        if not store.pools:
            rows.append(Held("index", f"{store.name}: index", int(place.table(INDEXES, store.index).holds_any()), 1))
        rows.append(Held("pool", f"{store.name}: pools", questions - len(missing_pools(plan, store)), questions))
        if parts := parts_of(plan, store):
            rows.append(Held("pool", f"{store.name}: pools that BM25 took part in", parts.bm25, parts.pools))
            rows.append(Held("pool", f"{store.name}: pools that entities took part in", parts.entities, parts.pools))
        arms = plan.arms_of(store)
        cells = questions * len(arms)
        rows.append(Held("compose", f"{store.name}: selections", cells - len(missing_cells(plan, store, arms)), cells))
        states = len(selected_states(plan, store))
        if plan.judges:
            answered = states - len(unanswered(plan, store))
            rows.append(Held("answer", f"{store.name}: states answered", answered, states))
        rows.append(Held("judge", f"{store.name}: states scored", states - len(unscored(plan, store)), states))
        if plan.panel:
            lacking = len(unadjudicated(plan, store))
            rows.append(Held("sufficiency", f"{store.name}: states judged", states - lacking, states))
    rows.append(Held("judge", "questions judged", questions - len(unjudged(plan)), questions))
    return rows

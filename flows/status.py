"""How much of a protocol a lake holds, stage by stage."""

from typing import NamedTuple

from flows.gate import planned
from flows.protocol import Protocol
from storage.lake import Lake
from storage.schemas import CONVERSATIONS, INDEXES, RECORDS
from tasks.answer import selected_states, unanswered
from tasks.candidates import missing_pools
from tasks.compose import missing_cells
from tasks.index import missing_vectors, text_address, texts_to_embed
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
    turns = len(place.table(CONVERSATIONS, plan.dataset).read(["id"]))
    rows = [Held("ingest", "turns", turns, turns), Held("ingest", "questions", questions, questions)]
    for store in plan.stores:
        conversations = len(set(place.table(CONVERSATIONS, plan.dataset).read(["conversation_id"])["conversation_id"]))
        written = len(set(place.table(RECORDS, store.store).read(["conversation_id"])["conversation_id"]))
        rows.append(Held("store", f"{store.name}: conversations", written, conversations))
        texts = texts_to_embed(plan, store)
        lacking = len(missing_vectors(plan, store, [text_address(text) for text in texts]))
        rows.append(Held("index", f"{store.name}: vectors", len(texts) - lacking, len(texts)))
        rows.append(Held("index", f"{store.name}: index", int(place.table(INDEXES, store.index).holds_any()), 1))
        rows.append(Held("pool", f"{store.name}: pools", questions - len(missing_pools(plan, store)), questions))
        arms = plan.arms_of(store)
        cells = questions * len(arms)
        rows.append(Held("compose", f"{store.name}: selections", cells - len(missing_cells(plan, store, arms)), cells))
        states = len(selected_states(plan, store))
        rows.append(Held("answer", f"{store.name}: states answered", states - len(unanswered(plan, store)), states))
        rows.append(Held("judge", f"{store.name}: states scored", states - len(unscored(plan, store)), states))
    judged = plan.conversation_ids()
    rows.append(Held("judge", "conversations judged", len(judged) - len(unjudged(plan)), len(judged)))
    return rows

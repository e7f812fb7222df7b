"""A session that several conversations hold is kept once, and each conversation reads as if it were alone."""

import json
import random
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from flows import protocol
from storage import vectors
from storage.digests import digest
from storage.holdings import records, turns
from storage.lake import Lake
from storage.schemas import CONVERSATIONS, INDEXES, POOLS, RECORDS, SESSIONS
from tasks.candidates import build_pools, missing_pools
from tasks.compose import compose
from tasks.conversation import Conversation
from tasks.encoders.hashed import Hashed
from tasks.encoders.minilm import count_tokens
from tasks.evidence import line
from tasks.index import build_index, chunks_to_embed, vectors_kept
from tasks.ingest import ingest
from tasks.marks import unmarked
from tasks.plan import Plan
from tasks.pool import Lexicon, MinMax, candidates
from tasks.sources import SOURCES
from tasks.store import write_store

WORDS = [
    "parrot",
    "bass",
    "violin",
    "rain",
    "marathon",
    "bread",
    "garden",
    "letter",
    "train",
    "winter",
    "coffee",
    "museum",
]


def said(draw: random.Random, count: int) -> list[dict[str, Any]]:
    speakers = ("user", "assistant")
    return [{"role": speakers[n % 2], "content": " ".join(draw.choices(WORDS, k=9)) + f" {n}"} for n in range(count)]


def haystacks(count: int, seed: int = 1) -> list[dict[str, Any]]:
    """Questions that share four sessions, at dates of their own, and have one of their own with the evidence."""
    draw = random.Random(seed)
    shared = {f"s{n}": said(draw, 4 + n) for n in range(4)}
    made = []
    for number in range(count):
        own = said(draw, 3)
        own[1]["has_answer"] = True
        held = [(f"answer_{number}", own), *draw.sample(sorted(shared.items()), 3)]
        made.append(
            {
                "question_id": f"synthetic-{number}",
                "question_type": "multi-session",
                "question": " ".join(draw.choices(WORDS, k=3)),
                "answer": "yes",
                "question_date": "2023/05/30 (Tue) 23:40",
                "haystack_dates": [f"2023/05/{draw.randrange(1, 29):02} (Mon) 10:{number:02}" for _ in held],
                "haystack_session_ids": [name for name, _ in held],
                "haystack_sessions": [messages for _, messages in held],
                "answer_session_ids": [f"answer_{number}"],
            }
        )
    return made


def planned(folder: Path, rows: list[dict[str, Any]], *, build: bool = True, **changes: Any) -> Plan:
    path, lake = folder / "synthetic.json", str(folder / "lake")
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows), encoding="utf-8")
    Lake.open(lake)
    found = ingest(lake, "synthetic", str(path))
    made = {"arms": ["hybrid@k3", "full_context@all"], "stores.0.encoder": "hashed", "stores.0.pool.size": 6, **changes}
    plan = protocol.load("synthetic", made).plan(lake, found.dataset, found.gold)
    if build:
        write_store(plan, plan.stores[0])
        build_index(plan, plan.stores[0])
    return plan


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return planned(tmp_path_factory.mktemp("shared"), haystacks(12))


def size(plan: Plan, spec: Any, address: str) -> int:
    return len(Lake(plan.lake).table(spec, address).read())


def test_shared_sessions_are_stored_and_indexed_once(plan: Plan) -> None:
    store, held = plan.stores[0], [4 + n for n in range(4)]
    assert size(plan, SESSIONS, plan.dataset) == size(plan, RECORDS, store.store) == sum(held) + 12 * 3
    assert size(plan, CONVERSATIONS, plan.dataset) == 12 * 4
    assert len(records(Lake(plan.lake), store.store)) > 2 * size(plan, RECORDS, store.store)
    assert Lake(plan.lake).table(INDEXES, store.index).read()["rows"].to_list() == [sum(held) + 12 * 3]


def test_a_haystack_reads_as_its_file_says(plan: Plan) -> None:
    store = plan.stores[0]
    told = SOURCES["synthetic"].load(Path(plan.lake).parent / "synthetic.json").told
    for one in (unmarked("synthetic", each) for each in told):
        own = plan.records(store, one.turns[0].conversation_id)
        assert [(r.id, r.session_id, r.position, r.said_at, r.source_turn_ids) for r in own] == [
            (t.id, t.session_id, t.position, t.said_at, (t.id,)) for t in one.turns
        ]
        assert [r.text for r in own] == [f"{t.speaker}: {t.text}" for t in one.turns]
        sessions = turns(Lake(plan.lake), plan.dataset, [one.turns[0].conversation_id])
        assert sessions.rows() == [(t.conversation_id, t.session_id, t.speaker, t.id) for t in one.turns]


def test_no_id_that_a_reader_sees_tells_which_session_holds_the_answer(plan: Plan) -> None:
    own = plan.records(plan.stores[0], plan.conversation_ids())
    seen = [name for record in own for name in (record.id, record.session_id, record.conversation_id)]
    assert not [name for name in seen if "answer" in name or "synthetic" in name]
    assert {len(record.session_id) for record in own} == {len(own[0].session_id)}
    gold = {id for each in plan.gold_of(plan.conversation_ids()).values() for id in each.turn_ids}
    assert len(gold) == 12
    assert gold <= {record.id for record in own}


def test_tokens_of_a_shared_record_are_those_of_its_shown_form_in_each_conversation(plan: Plan) -> None:
    store = plan.stores[0]
    frame = plan.record_frame(store, plan.conversation_ids())
    shown = [line(record) for record in plan.records(store, plan.conversation_ids())]
    assert frame["tokens"].to_list() == count_tokens(shown)


def test_pools_are_an_exact_search_of_the_haystack_alone(plan: Plan) -> None:
    store = plan.stores[0]
    build_pools(plan, store, plan.conversation_ids())
    assert missing_pools(plan, store) == set()
    pools = {row["question_id"]: row for row in Lake(plan.lake).table(POOLS, store.pool).read().iter_rows(named=True)}
    for question in plan.questions():
        own = plan.records(store, question.conversation_id)
        texts = [record.text for record in own]
        alone = candidates(
            Hashed().encode(texts),
            Hashed().encode([question.text])[0],
            Lexicon(texts).scores(question.text),
            6,
            MinMax(),
        )
        assert pools[question.id]["record_ids"] == [own[row].id for row in alone.rows]
        assert pools[question.id]["native"] == pytest.approx(alone.native)


def test_vectors_come_in_the_order_asked_for_and_a_unit_named_twice_has_its_rows_twice(plan: Plan) -> None:
    store, lake = plan.stores[0], Lake(plan.lake)
    frame = lake.table(RECORDS, store.store).read()
    units = frame["unit"].unique(maintain_order=True).to_list()[::-1]
    asked = [*units, units[0]]
    texts = [text for unit in asked for text in frame.filter(pl.col("unit") == unit).sort("place")["text"]]
    (tag,) = lake.table(INDEXES, store.index).read()["tag"]
    np.testing.assert_array_equal(vectors.read(lake.vectors, store.index, asked, tag), Hashed().encode(texts))


def test_readers_see_only_their_own_haystack(plan: Plan) -> None:
    store = plan.stores[0]
    build_pools(plan, store, plan.conversation_ids())
    assert compose(plan, store, plan.conversation_ids()) == 24
    for id in plan.conversation_ids():
        conversation = Conversation.load(plan, store, id)
        assert all(record.id.startswith(f"{id}/") for record in conversation.records)
        assert len(conversation.vectors) == len(conversation.records)
    assert compose(plan, store, plan.conversation_ids()) == 0


def test_a_writer_that_sees_dates_writes_a_shared_session_once_a_date(tmp_path: Path) -> None:
    rows = haystacks(3)
    dated = planned(tmp_path / "dated", rows, **{"stores.0.writer": "turns(dates=true)"})
    held = records(Lake(dated.lake), dated.stores[0].store)
    assert len(held) == size(dated, RECORDS, dated.stores[0].store)
    assert all(text.startswith(f"{at.day} May 2023 | ") for text, at in held.select("text", "said_at").iter_rows())


def test_a_conversation_bound_bounds_the_index_alone(tmp_path: Path) -> None:
    one = f"c-{digest('synthetic-1')[:12]}"
    plan = planned(tmp_path, haystacks(4), build=False, **{"data.conversations": [one]})
    store = plan.stores[0]
    write_store(plan, store)
    own = len(plan.records(store, one))
    assert build_index(plan, store) == own < size(plan, RECORDS, store.store)


def test_a_killed_ingest_or_store_goes_on_and_nothing_is_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.ingest.BLOCK_TURNS", 8)
    whole = planned(tmp_path / "whole", haystacks(5), build=False)
    write_store(whole, whole.stores[0])
    broken = planned(tmp_path / "broken", haystacks(5), build=False)
    store = broken.stores[0]
    calls = iter([None, None])

    def dies(texts: Iterable[str]) -> list[int]:
        next(calls)
        return count_tokens(list(texts))

    with monkeypatch.context() as patch:
        patch.setattr("tasks.store.count_tokens", dies)
        with pytest.raises((StopIteration, RuntimeError)):
            write_store(broken, store)
    assert 0 < size(broken, RECORDS, store.store) < size(whole, RECORDS, store.store)
    write_store(broken, store)
    assert records(Lake(broken.lake), store.store).equals(records(Lake(whole.lake), store.store))
    assert write_store(broken, store) == 0


def test_the_same_file_is_ingested_once_and_the_addresses_do_not_depend_on_the_lake(tmp_path: Path) -> None:
    one, two = (planned(tmp_path / name, haystacks(3), build=False) for name in ("one", "two"))
    assert (one.dataset, one.gold) == (two.dataset, two.gold)
    again = ingest(one.lake, "synthetic", str(tmp_path / "one" / "synthetic.json"))
    assert again.new == 0
    assert [folder.name for folder in (Path(one.lake) / "sessions").iterdir()] == [one.dataset[:16]]


def test_vectors_that_are_cheap_are_not_kept(plan: Plan) -> None:
    store = plan.stores[0]
    assert chunks_to_embed(plan, store) == []
    assert vectors_kept(plan, store) == (0, 0)
    assert not (Path(plan.lake) / "embeddings").exists()


def test_real_sessions_are_shared_too(tmp_path: Path, shared_data: Path) -> None:
    from flows.synth import Size, synth

    file, lake = tmp_path / "synthetic.json", str(tmp_path / "lake")
    made = synth(shared_data / "longmemeval", file, Size(haystacks=6, sessions=30))
    facts = ingest(Lake.open(lake).root.as_posix(), "synthetic", str(file)).facts
    assert (facts["sessions"], facts["turns"]) == (made["sessions"], made["turns"])
    plan = replace(planned(tmp_path / "x", haystacks(1), build=False), lake=lake)
    assert plan.lake == lake
    sizes = pl.read_parquet(str(next((Path(lake) / "sessions").iterdir()) / "*.parquet"))
    assert len(sizes) == facts["distinct turns"] < facts["turns"]

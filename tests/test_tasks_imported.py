"""Another system's pools: every row is checked, and what it ranked is what readers read."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows import protocol as protocols
from flows.pools import import_pool, plan_of
from storage import pool_files
from storage.errors import InputError
from storage.lake import Lake
from storage.pool_files import POOL, SCHEMAS
from storage.schemas import ANSWERS, POOLS, SCORES, SELECTIONS, STATES
from tasks.answer import answer
from tasks.candidates import build_pools
from tasks.compose import compose
from tasks.conversation import Conversation
from tasks.encoders.minilm import MiniLm, count_tokens
from tasks.evidence import line, line_digest
from tasks.imported.bringing import bring, known
from tasks.imported.checks import checked
from tasks.index import chunks_to_embed, embed_chunk
from tasks.judge import score
from tasks.oracle import compose_oracle
from tasks.plan import Plan, StorePlan
from tests.conftest import conversation, write_locomo
from tests.pool_fixture import TEXTS, VECTORS, pool, queries, resident, row, write_pool

ARMS = ["hybrid", "mem_pursuit", "mmr", "bm25", "oracle", "full_context@all"]


def _protocol(tmp_path: Path, place: Path | str = "", **changes: Any) -> protocols.Protocol:
    data = write_locomo(tmp_path / "x.json")
    stores = [{"name": "attic", "pools": str(place), **changes.pop("store", {})}]
    said = {"data.path": str(data), "arms": ARMS, "budgets": ["k1", "k2"], "stores": stores}
    return protocols.load("sample", {**said, **changes})


def _plan(tmp_path: Path, place: Path | str = "", **changes: Any) -> Plan:
    """The plan of a protocol over ingested data, with the pool's store."""
    protocol = _protocol(tmp_path, place, **changes)
    ingested = plan_of(protocol, str(tmp_path / "lake"))
    return protocol.plan(str(tmp_path / "lake"), ingested.dataset, ingested.gold)


def _run(plan: Plan) -> StorePlan:
    """All stages up to the scores, without a flow."""
    store = plan.stores[0]
    bring(plan, store)
    for chunk in chunks_to_embed(plan, store):
        embed_chunk(plan, store, chunk)
    build_pools(plan, store, ["c1"])
    compose(plan, store, ["c1"])
    compose_oracle(plan, store, ["c1"])
    answer(plan, store, "c1")
    score(plan, store, "c1")
    return store


def _selected(plan: Plan, store: StorePlan) -> dict[tuple[str, str], list[str]]:
    rows = Lake(plan.lake).table(SELECTIONS, store.selections(plan.seed)).read()
    return {(each["arm"], each["question_id"]): each["record_ids"] for each in rows.iter_rows(named=True)}


def test_readers_read_the_order_that_the_system_gave_at_their_own_budget(tmp_path: Path) -> None:
    plan = _plan(tmp_path, write_pool(tmp_path / "pool", pool(), queries()))
    store = _run(plan)
    chosen = _selected(plan, store)
    assert chosen["hybrid@k2", "c1/q0"] == ["c1/b", "c1/a"]
    assert chosen["hybrid@k1", "c1/q1"] == ["c1/a"]
    assert chosen["hybrid@k2", "c1/q2"] == [], "the system found nothing, as queries.parquet says"
    assert set(chosen) == {(str(arm), f"c1/q{place}") for arm in plan.arms for place in range(3)}
    for arm in plan.arms:
        most = arm.limits.records
        assert most is None or all(len(ids) <= most for (name, _), ids in chosen.items() if name == str(arm))
    rows = Lake(plan.lake).table(POOLS, store.pool).read(where=pl.col("question_id") == "c1/q0").row(0, named=True)
    question = plan.questions()[0].text
    vectors = MiniLm().encode([question, *(TEXTS[name] for name in "bac")])
    assert rows["dense"] == pytest.approx(vectors[1:] @ vectors[0], abs=1e-6)
    assert rows["native"] == [0.9, 0.8, 0.1]


def test_metrics_are_undefined_where_sources_are_unknown_and_sessions_count_where_named(tmp_path: Path) -> None:
    rows = pool()
    rows[0] |= {"source_turn_ids": [], "source_session_ids": ["S2"]}
    rows[4] |= {"source_turn_ids": [], "source_session_ids": ["S2"]}
    plan = _plan(tmp_path, write_pool(tmp_path / "pool", rows, queries()))
    sessions = sorted(set(plan.turns("c1")["session_id"]))
    for place in (0, 4):
        rows[place]["source_session_ids"] = [sessions[1].removeprefix("c1/")]
    plan = _plan(tmp_path, write_pool(tmp_path / "pool", rows, queries()))
    store = _run(plan)
    place = Lake(plan.lake)
    states = (
        place.table(STATES, store.store)
        .read()
        .join(place.table(SCORES, plan.scores(store)).read(), on=["question_id", "evidence_hash"])
    )
    found = {(each["question_id"], tuple(sorted(each["record_ids"]))): each for each in states.iter_rows(named=True)}
    assert found["c1/q1", ("c1/a",)]["evidence_recall"] == 0.5
    assert found["c1/q1", ("c1/a",)]["session_recall"] == 0.5
    both = found["c1/q1", ("c1/a", "c1/b")]
    assert (both["evidence_recall"], both["gold_hit"], both["complete_sessions"]) == (None, None, 1.0)
    everything = found["c1/q0", ("c1/a", "c1/b", "c1/c")]
    assert everything["session_recall"] is None and everything["complete_evidence"] is None


def test_a_distance_is_read_as_lower_is_better(tmp_path: Path) -> None:
    rows = [
        row("q0", "a", 0, 0.1, score_kind="l2", higher_is_better=False),
        row("q0", "b", 1, 0.4, score_kind="l2", higher_is_better=False),
    ]
    plan = _plan(tmp_path, write_pool(tmp_path / "pool", rows, queries()), **{"data.questions": ["c1/q0"]})
    store = _run(plan)
    assert Lake(plan.lake).table(POOLS, store.pool).read()["native"].to_list() == [[-0.1, -0.4]]
    rows = [{**each, "native_score": None, "score_kind": "none", "higher_is_better": None} for each in rows]
    plan = _plan(tmp_path, write_pool(tmp_path / "none", rows, queries()), **{"data.questions": ["c1/q0"]})
    assert Lake(plan.lake).table(POOLS, _run(plan).pool).read()["native"].to_list() == [[0.0, -1.0]]


def test_resident_context_stands_before_the_records_of_every_arm_and_out_of_budget_and_metrics(tmp_path: Path) -> None:
    plan = _plan(tmp_path, write_pool(tmp_path / "pool", pool(), queries(), shown=True))
    store = _run(plan)
    plain = _plan(tmp_path, write_pool(tmp_path / "plain", pool(), queries()))
    alone = _run(plain)
    chosen, without = _selected(plan, store), _selected(plain, alone)
    assert chosen == without, "no arm selects otherwise"
    place = Lake(plan.lake)
    states = place.table(STATES, store.store).read()
    before = {"c1/q0": ["c1/resident/0"], "c1/q1": ["c1/resident/0", "c1/resident/1"], "c1/q2": ["c1/resident/0"]}
    for each in states.iter_rows(named=True):
        held = before[each["question_id"]]
        assert each["record_ids"][: len(held)] == held
    bare = {(each["question_id"], tuple(each["record_ids"])): each for each in _states(plain, alone)}
    scores = place.table(SCORES, plan.scores(store)).read().rows_by_key(["question_id", "evidence_hash"], unique=True)
    bare_scores = (
        place.table(SCORES, plain.scores(alone)).read().rows_by_key(["question_id", "evidence_hash"], unique=True)
    )
    for each in states.iter_rows(named=True):
        twin = bare[each["question_id"], tuple(each["record_ids"][len(before[each["question_id"]]) :])]
        assert each["tokens"] == twin["tokens"]
        assert each["evidence_hash"] != twin["evidence_hash"], "what is shown differs, so the answer may"
        assert (
            scores[each["question_id"], each["evidence_hash"]]
            == bare_scores[twin["question_id"], twin["evidence_hash"]]
        )
    shown = plan.shown(store, "c1")
    assert line(shown["c1/resident/0"]) == "Ada keeps birds."
    assert len(place.table(ANSWERS, plan.answers).read()) == len(states) + len(bare)
    conversation = Conversation.load(plan, store, "c1")
    assert conversation.line_digests["c1/resident/1"] == line_digest(shown["c1/resident/1"])
    assert "c1/resident/0" not in conversation.library.places, "no view reaches it"


def test_a_report_tells_resident_tokens_beside_those_of_the_evidence(tmp_path: Path) -> None:
    from flows.report import _shown, frames_of

    told: list[dict[tuple[str, str], list[int | None]]] = []
    for name, shown in (("pool", True), ("plain", False)):
        plan = _plan(tmp_path, write_pool(tmp_path / name, pool(), queries(), shown=shown))
        _run(plan)
        cells = frames_of(plan, [_shown(arm) for arm in plan.arms]).cells
        rows = cells.select("arm", "question_id", "resident", "tokens", "records").iter_rows()
        told.append({(arm, question): counts for arm, question, *counts in rows})
    every, own = count_tokens([held["text"] for held in resident()])
    for (arm, question), (before, *counts) in told[0].items():
        assert before == every + own * (question == "c1/q1")
        assert told[1][arm, question] == [None, *counts], "tokens and records are those of a store without it"


def test_a_conversation_of_which_the_system_found_nothing_has_empty_evidence(tmp_path: Path) -> None:
    data = write_locomo(tmp_path / "two.json", conversation("c1"), conversation("c2"))
    asked = [{"question_id": f"{name}/q{place}"} for name in ("c1", "c2") for place in range(3)]
    place = write_pool(tmp_path / "pool", pool(), asked)
    protocol = protocols.load(
        "sample",
        {"data.path": str(data), "arms": ARMS, "budgets": ["k2"], "stores": [{"name": "attic", "pools": str(place)}]},
    )
    ingested = plan_of(protocol, str(tmp_path / "lake"))
    plan = protocol.plan(str(tmp_path / "lake"), ingested.dataset, ingested.gold)
    store = _run(plan)
    for stage in (build_pools, compose, compose_oracle, score):
        stage(plan, store, ["c2"])
    chosen = {
        ids for (_, question), held in _selected(plan, store).items() if question == "c2/q0" for ids in [(*held,)]
    }
    assert chosen == {()}
    states = Lake(plan.lake).table(STATES, store.store).read(where=pl.col("question_id") == "c2/q0")
    scores = Lake(plan.lake).table(SCORES, plan.scores(store)).read(where=pl.col("question_id") == "c2/q0")
    assert states["tokens"].to_list() == [0] and scores["gold_hit"].to_list() == [0.0]


def _states(plan: Plan, store: StorePlan) -> list[dict[str, Any]]:
    return list(Lake(plan.lake).table(STATES, store.store).read().iter_rows(named=True))


def test_the_systems_own_vectors_are_used_where_the_store_asks_for_them(tmp_path: Path) -> None:
    rows = [{**each, "embedding": VECTORS[each["candidate_id"]], "embedder_id": "attic"} for each in pool()]
    place = write_pool(tmp_path / "pool", rows, queries(vectors=True))
    plan = _plan(tmp_path, place, store={"encoder": "imported"})
    store = _run(plan)
    conversation = Conversation.load(plan, store, "c1")
    expected = {name: np.array(vector) / np.linalg.norm(vector) for name, vector in VECTORS.items()}
    for record, vector in zip(conversation.records, conversation.vectors, strict=True):
        assert vector == pytest.approx(expected[record.id.removeprefix("c1/")], abs=1e-6)
    dense = Lake(plan.lake).table(POOLS, store.pool).read(where=pl.col("question_id") == "c1/q0")["dense"].to_list()[0]
    asked = np.array([1.0, 0.0, 1.0]) / np.sqrt(2)
    assert dense == pytest.approx([float(expected[name] @ asked) for name in "bac"], abs=1e-6)
    with pytest.raises(InputError, match="a reader that embeds texts of its own needs a store with another encoder"):
        conversation.library.embed(["anything"])


@pytest.mark.parametrize(
    ("rows", "asked", "expected"),
    [
        (pool(), queries(vectors=True), r"row 1, column embedding: a vector expected"),
        (
            [{**each, "embedding": VECTORS["a"], "embedder_id": "other"} for each in pool()],
            queries(vectors=True),
            r"one embedder expected, \('attic', 3\), \('other', 3\) found",
        ),
        (
            [{**each, "embedding": VECTORS["a"], "embedder_id": "attic"} for each in pool()],
            queries(),
            "queries.parquet: row 1, column embedding",
        ),
        (
            [{**each, "embedding": VECTORS["a"], "embedder_id": "attic"} for each in pool()],
            None,
            "queries.parquet with embeddings expected",
        ),
    ],
)
def test_vectors_of_two_spaces_or_none_are_refused(tmp_path: Path, rows: Any, asked: Any, expected: str) -> None:
    plan = _plan(tmp_path, write_pool(tmp_path / "pool", rows, asked), store={"encoder": "imported"})
    with pytest.raises(InputError, match=expected):
        bring(plan, plan.stores[0])


def _changed(place: int, **changes: Any) -> list[dict[str, Any]]:
    return [{**each, **(changes if at == place else {})} for at, each in enumerate(pool())]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (_changed(1, schema_version=2), "row 2, column schema_version: 1 expected, '2' found"),
        (_changed(2, benchmark="beam_100k"), "row 3, column benchmark: locomo expected, 'beam_100k' found"),
        (_changed(3, question_id="c1/q9"), "row 4, column question_id: a question of locomo expected, 'c1/q9' found"),
        (_changed(0, conversation_id="c2"), "row 1, column conversation_id: the question's conversation expected"),
        (_changed(1, candidate_id="b", text=TEXTS["b"]), "row 2, column candidate_id: each candidate of a question"),
        (_changed(2, native_rank=3), "row 3, column native_rank: ranks from 0 without gap or repeat"),
        (_changed(2, native_rank=1), "row 3, column native_rank: ranks from 0 without gap or repeat"),
        (_changed(4, native_rank=-1), "row 5, column native_rank"),
        (_changed(1, native_score=0.95), "row 2, column native_score: no better score than those of earlier ranks"),
        (_changed(2, native_score=float("nan")), "row 3, column native_score: a finite score"),
        (_changed(0, higher_is_better=False), "row 1, column higher_is_better: true for cosine, dot and bm25"),
        (_changed(0, higher_is_better=None), "row 1, column higher_is_better: true or false beside a score"),
        (_changed(0, score_kind="none"), "row 1, column native_score: no score where score_kind is none"),
        (_changed(0, score_kind="elo"), "row 1, column score_kind: one of cosine, dot"),
        (_changed(0, kind="poem"), "row 1, column kind: one of turn, note"),
        (_changed(2, text=" "), "row 3, column text: a text expected"),
        (_changed(4, text="Another."), "row 5, column text: one text for each candidate of a conversation"),
        (_changed(4, source_turn_ids=["D1:1"]), "row 5, column source_turn_ids: the same sources for each candidate"),
        (_changed(2, source_turn_ids=["D9:9"]), "row 3, column source_turn_ids: ids of c1 expected, 'D9:9' found"),
        (_changed(2, source_session_ids=["S9"]), "row 3, column source_session_ids: ids of c1 expected, 'S9' found"),
        (_changed(3, run_id="r2"), r"row 4, column run_id: one run \(keep one with --run\) expected, 'r2' found"),
        (_changed(1, embedding=[1.0]), "row 2, column embedder_id: a name beside an embedding"),
        (
            [{**each, "embedding": [1.0] * (1 + (at == 3)), "embedder_id": "e"} for at, each in enumerate(pool())],
            r"row 4, column embedding: one dimension for each embedder expected",
        ),
        (_changed(1, embedding=[float("inf")], embedder_id="e"), "row 2, column embedding: finite numbers"),
    ],
)
def test_a_row_that_does_not_hold_is_named_with_its_column(tmp_path: Path, rows: Any, expected: str) -> None:
    plan = _plan(tmp_path)
    with pytest.raises(InputError, match=expected):
        checked(write_pool(tmp_path / "pool", rows, queries()), known(plan))


def test_the_pool_of_the_other_cases_holds(tmp_path: Path) -> None:
    found = checked(write_pool(tmp_path / "pool", pool(), queries(), shown=True), known(_plan(tmp_path)))
    assert found.pool["source_turn_ids"].to_list()[0] == ["c1/D2:2"]
    assert found.pool["source_turn_ids"].to_list()[1] == ["c1/D1:1"]
    assert len(found.resident) == 2


def test_rows_of_sealed_questions_may_stand_in_a_pool_of_open_ones(tmp_path: Path) -> None:
    place = write_pool(tmp_path / "pool", pool(), queries(), shown=True)
    every = known(_plan(tmp_path))
    part = replace(every, questions={"c1/q0": "c1"})
    with pytest.raises(InputError, match="row 4, column question_id: a question of locomo expected, 'c1/q1' found"):
        checked(place, part)
    assert checked(place, replace(part, sealed=True)).pool.equals(checked(place, every).pool)
    elsewhere = write_pool(tmp_path / "other", [{**each, "conversation_id": "c9"} for each in pool()[3:]])
    with pytest.raises(InputError, match="row 1, column conversation_id: a conversation of locomo expected, 'c9'"):
        checked(elsewhere, replace(part, sealed=True))


def _with(table: pa.Table, name: str, values: list[Any]) -> pa.Table:
    return table.append_column(name, pa.array(values))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda table: _with(table, "gold_turn_ids", ["x"] * 5), "column gold_turn_ids: no gold expected"),
        (lambda table: _with(table, "has_answer", [True] * 5), "column has_answer: no gold expected"),
        (lambda table: _with(table, "mood", ["x"] * 5), "column mood: unknown"),
        (lambda table: table.drop_columns(["native_rank"]), "column native_rank: expected, none found"),
        (
            lambda table: table.set_column(8, "native_rank", pa.array(["first"] * 5)),
            "column native_rank: int32 expected, string found",
        ),
        (
            lambda table: table.set_column(8, "native_rank", pa.array([0, 1, None, 0, 1])),
            "row 3, column native_rank: a value expected, null found",
        ),
    ],
)
def test_a_column_of_gold_or_unknown_missing_or_of_another_type_is_refused(
    tmp_path: Path, change: Any, expected: str
) -> None:
    table = pa.Table.from_pylist(pool(), schema=SCHEMAS[POOL])
    assert table.schema.names[8] == "native_rank"
    pq.write_table(change(table), tmp_path / POOL)
    with pytest.raises(InputError, match=expected):
        pool_files.read(tmp_path)


def test_what_is_no_pool_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a Parquet file or a folder with pool.parquet expected"):
        pool_files.read(tmp_path)
    (tmp_path / POOL).write_bytes(b"not parquet")
    with pytest.raises(InputError, match="a Parquet file expected"):
        pool_files.read(tmp_path)


def test_a_question_of_which_nothing_tells_whether_it_was_asked_is_refused(tmp_path: Path) -> None:
    plan = _plan(tmp_path, write_pool(tmp_path / "pool", pool()))
    with pytest.raises(InputError, match=r"candidates of c1/q2 expected, none found; name it in queries.parquet"):
        _run(plan)


def test_a_changed_pool_or_sidecar_is_another_store_and_another_protocol(tmp_path: Path) -> None:
    place = write_pool(tmp_path / "pool", pool())
    protocol = _protocol(tmp_path, place)
    first, before = _plan(tmp_path, place).stores[0], protocol.digest
    write_pool(place, pool(), shown=True)
    second = _plan(tmp_path, place).stores[0]
    assert len({first.store, second.store, first.pool, second.pool}) == 4
    assert before != protocol.digest
    moved = write_pool(tmp_path / "moved", pool(), shown=True)
    assert _protocol(tmp_path, moved).digest == protocol.digest, "where the files lie does not count"


def test_a_store_of_pools_has_no_writer_and_no_other_store_has_imported_vectors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no writer expected beside pools"):
        _protocol(tmp_path, "x", store={"writer": "turns(dates=true)"})
    with pytest.raises(InputError, match="imported expected only beside pools"):
        _protocol(tmp_path, store={"encoder": "imported"})


def test_import_keeps_one_run_and_says_what_it_holds(tmp_path: Path) -> None:
    both = write_pool(tmp_path / "both", pool() + pool(run_id="r2"), queries(), shown=True)
    protocol, lake = _protocol(tmp_path), str(tmp_path / "lake")
    with pytest.raises(InputError, match=r"one run \(keep one with --run\) expected, 'r2' found"):
        import_pool(protocol, lake, str(both), "", "", "")
    with pytest.raises(InputError, match="one of r1, r2 expected, 'r3' found"):
        import_pool(protocol, lake, str(both), "", str(tmp_path / "to"), "r3")
    told = import_pool(protocol, lake, str(both), "", str(tmp_path / "to"), "r2")
    assert (told["rows"], told["candidates"], told["questions"], told["largest pool"]) == (5, 3, 2, 3)
    assert told["rows without source turns"] == 1 and told["encoder"] == "minilm"
    profile, summary = count_tokens(["Ada keeps birds.", "They spoke of Kiwi."])
    assert told["resident tokens"] == round((profile + profile + summary) / 2, 1)
    with pytest.raises(InputError, match="a folder without a pool expected"):
        import_pool(protocol, lake, str(both), "", str(tmp_path / "to"), "r1")

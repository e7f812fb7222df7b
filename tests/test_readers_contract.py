"""What holds for every reader, whatever its policy."""

import dataclasses
from typing import get_args

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from readers import READERS
from readers.types import Budget, Evidence, Note, Pool, Query, StopReason, asks_model
from tasks.access import Library
from tests.told_access import ORDERLY, ToldAccess

COMPLETING = {name for name, reader in READERS.items() if getattr(reader, "completes", False)}
EVERY = sorted(set(READERS) - COMPLETING)
ASKING = {name for name, reader in READERS.items() if asks_model(reader)}
DRAWN = {"random"}
AGENTS = {"mragent_scripted", "mragent_flat", "mera_flat"}
BEYOND_THE_POOL = {"full_context", "mem0_flat", *AGENTS}
OLDEST_FIRST = {"full_context"}
BLIND_TO_VECTORS = {
    *("bm25", "hybrid", "random", "full_context", "mem0_flat", "locality"),
    *("setr", "rankgpt", "cross_encoder", "llm_pointwise"),
    *AGENTS,
}
UNLIMITED = Budget()

pytestmark = pytest.mark.filterwarnings("error")
thorough = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
every_reader = pytest.mark.parametrize("name", sorted(set(EVERY) - ASKING))
every_completing_reader = pytest.mark.parametrize("name", sorted(COMPLETING - ASKING))


# Builders ------------------------------------------------------------------------------------------------


def make_query(vector=(1.0, 0.0), id="q1", seed=7):
    return Query(id=id, text="Where did she go?", vector=np.asarray(vector, np.float32), seed=seed)


def make_pool(vectors, query=None, *, dense=None, lexical=None, tokens=None):
    """A pool of `vectors` in native order; cosines with `query` unless `dense` is given."""
    query = query or make_query()
    vectors = np.asarray(vectors, np.float32).reshape(-1, len(query.vector))
    size = len(vectors)
    if dense is None:
        with np.errstate(invalid="ignore"):
            dense = np.array([np.dot(row.astype(float), query.vector.astype(float)) for row in vectors])
    codes = np.arange(size, dtype=np.int32)
    return Pool(
        ids=tuple(f"r{i}" for i in range(size)),
        native=np.linspace(1, 0, size),
        dense=np.asarray(dense, float).reshape(size),
        lexical=np.zeros(size) if lexical is None else np.asarray(lexical, float),
        vectors=vectors,
        tokens=np.full(size, 10, np.int32) if tokens is None else np.asarray(tokens, np.int32),
        positions=codes,
        sessions=codes // 4,
        speakers=codes % 2,
        times=codes * 60.0,
    )


def make_library(pool):
    """A conversation of the pool's records in reverse, with two records before them that are no candidates."""
    notes = [Note("x0", "Ada went home.", "Ada", 0, 0, 0.0, 5), Note("x1", "Where did Ada go?", "Bo", 0, 1, 0.0, 5)]
    for place in reversed(range(len(pool))):
        tokens = int(pool.tokens[place])
        text = f"She went to place {place} on day {place % 3}."
        notes.append(Note(pool.ids[place], text, "Ada", 1 + place // 4, len(notes), 60.0 * place, tokens))
    return Library(notes, lambda texts: np.ones((len(texts), pool.vectors.shape[1]), np.float32))


def read(name, query, pool, budget) -> Evidence:
    return READERS[name]().read(query, pool, budget, ToldAccess(make_library(pool), budget))


def costs(name, pool):
    access = ToldAccess(make_library(pool), UNLIMITED)
    ids, tokens = access.everything() if name in BEYOND_THE_POOL else (pool.ids, pool.tokens)
    return dict(zip(ids, tokens.tolist(), strict=True))


@st.composite
def questions(draw, *, spoilt=True):
    """A query with its pool: few directions, so that ties and copies are common; zero and spoilt rows."""
    width = draw(st.integers(1, 5))
    size = draw(st.integers(0, 30))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    vectors = (
        rng.choice([-1.0, 0.0, 0.5, 1.0], (size, width)) if draw(st.booleans()) else rng.normal(size=(size, width))
    )
    if size and draw(st.booleans()):
        vectors = vectors[rng.integers(0, size, size)]
    vectors[rng.random(size) < draw(st.sampled_from([0, 0.2, 1]))] = 0
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    if spoilt:
        rows = np.flatnonzero(rng.random(size) < draw(st.sampled_from([0, 0.2, 1])))
        vectors[rows, rng.integers(0, width, len(rows))] = rng.choice([np.nan, np.inf, -np.inf], len(rows))
    query = make_query(rng.choice([-1.0, 0.0, 0.5, 1.0], width))
    dense = [float(row @ query.vector) if np.isfinite(row).all() else np.nan for row in vectors]
    lexical = rng.integers(0, 3, size)
    return query, make_pool(vectors, query, dense=dense, lexical=lexical, tokens=rng.integers(0, 40, size))


budgets = st.builds(
    Budget,
    records=st.none() | st.integers(0, 40),
    tokens=st.none() | st.integers(0, 600),
)
completion_budgets = st.builds(
    Budget, calls=st.integers(0, 9), rounds=st.integers(0, 5), new_records=st.integers(0, 40)
)


# Properties of every reader ------------------------------------------------------------------------------


@every_reader
@thorough
@given(questions(), budgets)
def test_evidence_is_a_subset_without_repeats_within_budget(name, question, budget):
    query, pool = question
    evidence = read(name, query, pool, budget)
    known = costs(name, pool)
    assert set(evidence.ids) <= set(known)
    assert len(set(evidence.ids)) == len(evidence.ids)
    assert budget.records is None or len(evidence.ids) <= budget.records
    assert budget.tokens is None or sum(known[i] for i in evidence.ids) <= budget.tokens


@every_reader
@thorough
@given(questions(), budgets)
def test_a_reader_is_a_function_of_its_arguments(name, question, budget):
    query, pool = question
    vectors, dense = pool.vectors.copy(), pool.dense.copy()
    first, second = read(name, query, pool, budget), read(name, query, pool, budget)
    assert first.ids == second.ids
    assert first.stop_reason == second.stop_reason
    np.testing.assert_equal(first.gains, second.gains)
    np.testing.assert_equal(first.weights, second.weights)
    np.testing.assert_equal(pool.vectors, vectors)
    np.testing.assert_equal(pool.dense, dense)


@every_reader
@thorough
@given(questions(), budgets)
def test_a_budget_cuts_one_order_at_the_first_record_that_does_not_fit(name, question, budget):
    query, pool = question
    order = read(name, query, pool, UNLIMITED).ids
    kept = read(name, query, pool, budget).ids
    known = costs(name, pool)
    if name in OLDEST_FIRST:
        order, kept = order[::-1], kept[::-1]
    assert kept == order[: len(kept)]
    if len(kept) < len(order) and len(kept) != budget.records:
        assert sum(known[i] for i in order[: len(kept) + 1]) > budget.tokens


@pytest.mark.parametrize("name", sorted(set(EVERY) - AGENTS - ASKING))
@thorough
@given(questions(spoilt=False), st.integers(0, 40))
def test_a_finite_pool_fills_the_records(name, question, records):
    query, pool = question
    assert len(read(name, query, pool, Budget(records=records)).ids) == min(records, len(costs(name, pool)))


@every_reader
@thorough
@given(questions(), budgets)
def test_gains_weights_and_stop_reason_describe_the_ids(name, question, budget):
    query, pool = question
    evidence = read(name, query, pool, budget)
    assert evidence.gains is None or evidence.gains.shape == (len(evidence.ids),)
    assert evidence.weights is None or evidence.weights.shape == (len(evidence.ids),)
    assert evidence.stop_reason in get_args(StopReason)
    if evidence.stop_reason == "pool_exhausted":
        spoilt = {i for i, row in zip(pool.ids, pool.vectors, strict=True) if not np.isfinite(row).all()}
        assert set(evidence.ids) >= set(costs(name, pool)) - spoilt


@pytest.mark.parametrize("name", sorted(set(EVERY) - BLIND_TO_VECTORS - ASKING))
@thorough
@given(questions())
def test_spoilt_records_come_after_all_others_in_native_order(name, question):
    query, pool = question
    sound = np.isfinite(pool.vectors).all(axis=1)
    order = [pool.ids.index(i) for i in read(name, query, pool, UNLIMITED).ids]
    assert set(order[: sound.sum()]) == set(np.flatnonzero(sound))
    assert order[sound.sum() :] == sorted(order[sound.sum() :])


@pytest.mark.parametrize("name", sorted(set(EVERY) - DRAWN - BEYOND_THE_POOL))
@pytest.mark.parametrize("row", [(0.6, 0.8), (1.0, 0.0), (-0.6, 0.8), (0.0, 1.0), (0.0, 0.0)])
@pytest.mark.parametrize("size", [1, 2, 5, 30])
def test_a_pool_of_equals_keeps_its_native_order(name, row, size):
    pool = make_pool([row] * size)
    assert read(name, make_query(), pool, UNLIMITED).ids == pool.ids
    assert read(name, make_query(), pool, Budget(records=3)).ids == pool.ids[:3]


@pytest.mark.parametrize("name", sorted(set(EVERY) - BEYOND_THE_POOL))
@pytest.mark.parametrize("budget", [UNLIMITED, Budget(records=0), Budget(records=10, tokens=100)])
def test_an_empty_pool_is_empty_evidence(name, budget):
    evidence = read(name, make_query(), make_pool([]), budget)
    assert evidence.ids == ()
    assert evidence.stop_reason == "empty_pool"


@pytest.mark.parametrize("name", sorted(set(EVERY) - AGENTS))
def test_a_question_with_a_zero_vector_is_still_read(name):
    query = make_query((0.0, 0.0))
    pool = make_pool([(1.0, 0.0), (0.0, 1.0), (0.6, 0.8)], query)
    assert set(read(name, query, pool, UNLIMITED).ids) >= set(pool.ids)


# Properties of readers that complete a first set ---------------------------------------------------------


@every_completing_reader
@thorough
@given(questions(), completion_budgets)
def test_completion_adds_no_more_than_its_budget_holds(name, question, budget):
    query, pool = question
    access = ToldAccess(make_library(pool), budget)
    evidence = READERS[name]().read(query, pool, budget, access)
    assert set(evidence.ids) <= set(access.everything()[0])
    assert len(set(evidence.ids)) == len(evidence.ids)
    assert len(evidence.ids) <= READERS[name]().init_records + budget.new_records
    assert evidence.calls == access.calls <= budget.calls
    assert evidence.stop_reason in get_args(StopReason)


@every_completing_reader
@thorough
@given(questions(), completion_budgets)
def test_completion_is_a_function_of_its_arguments(name, question, budget):
    query, pool = question
    vectors, dense = pool.vectors.copy(), pool.dense.copy()
    assert read(name, query, pool, budget) == read(name, query, pool, budget)
    np.testing.assert_equal(pool.vectors, vectors)
    np.testing.assert_equal(pool.dense, dense)


@pytest.mark.parametrize("name", sorted(COMPLETING))
def test_completion_of_an_empty_pool_is_empty_and_asks_nothing(name):
    evidence = read(name, make_query(), make_pool([]), Budget(calls=3, rounds=3, new_records=9))
    assert (evidence.ids, evidence.calls, evidence.stop_reason) == ((), 0, "empty_pool")


# Properties of readers that ask a model ------------------------------------------------------------------

replies = st.one_of(
    st.text(max_size=60),
    st.sampled_from(list(ORDERLY.values())),
    st.lists(
        st.sampled_from(
            [
                *("Selected:", "Ranking:", "[3]", "[99]", "2 > 1", "none", '{"records": ', '{"calls": [', "}", "]"),
                *('{"tool": "search_session", "value": 2}', '{"selected": [0, "2", 1.5, true, null]}', "\n\n"),
            ]
        ),
        max_size=9,
    ).map(" ".join),
)


@pytest.mark.parametrize("name", sorted(ASKING))
@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@given(questions(), budgets, completion_budgets, st.dictionaries(st.sampled_from(list(ORDERLY)), replies))
def test_whatever_a_model_says_a_reader_keeps_what_readers_promise(name, question, plain, completion, said):
    query, pool = question
    budget = completion if name in COMPLETING else plain

    def read_within(budget):
        access = ToldAccess(make_library(pool), budget, lambda prompt, _: said.get(prompt, ORDERLY[prompt]))
        return READERS[name]().read(query, pool, budget, access), access

    (evidence, access), (again, _) = read_within(budget), read_within(budget)
    known = dict(zip(*(list(part) for part in access.everything()), strict=True))
    assert set(evidence.ids) <= (set(known) if name in COMPLETING | BEYOND_THE_POOL else set(pool.ids))
    assert len(set(evidence.ids)) == len(evidence.ids)
    assert budget.records is None or len(evidence.ids) <= budget.records
    assert budget.tokens is None or sum(known[i] for i in evidence.ids) <= budget.tokens
    assert (evidence.ids, evidence.stop_reason, evidence.trace) == (again.ids, again.stop_reason, again.trace)
    assert evidence.stop_reason in get_args(StopReason)
    assert evidence.calls == access.calls
    assert {prompt for prompt, _ in access.told} <= set(getattr(READERS[name](), "prompts", ()))
    if name in COMPLETING:
        assert access.calls <= budget.calls
        assert len(evidence.ids) <= READERS[name]().init_records + budget.new_records
    else:
        order = read_within(UNLIMITED)[0].ids
        assert evidence.ids == order[: len(evidence.ids)]
        assert name in AGENTS or set(order) == set(pool.ids)


# What the table promises ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_reader_declares_what_it_is(name):
    reader = READERS[name]
    assert dataclasses.is_dataclass(reader) and reader.__dataclass_params__.frozen
    assert reader.title and "\n" not in reader.title
    assert reader.source and "\n" not in reader.source
    for field in dataclasses.fields(reader):
        assert field.default is not dataclasses.MISSING, f"{field.name} has no default"
    assert reader() == reader() and hash(reader()) == hash(reader())


# Rankings by hand ----------------------------------------------------------------------------------------


def test_rankings_sort_by_their_score_with_ties_native_and_nan_last():
    pool = make_pool(np.zeros((5, 2)), dense=[0.1, np.nan, 0.9, 0.1, 0.5], lexical=[2, 7, np.nan, 7, -np.inf])
    assert read("dense", make_query(), pool, UNLIMITED).ids == ("r2", "r4", "r0", "r3", "r1")
    assert read("bm25", make_query(), pool, UNLIMITED).ids == ("r1", "r3", "r0", "r4", "r2")
    assert read("hybrid", make_query(), pool, UNLIMITED).ids == ("r0", "r1", "r2", "r3", "r4")


def test_random_depends_on_the_seed_and_the_question():
    pool = make_pool(np.zeros((30, 2)))
    one, same, other_seed, other_question = (
        read("random", make_query(id=id, seed=seed), pool, UNLIMITED).ids
        for id, seed in [("q1", 7), ("q1", 7), ("q1", 8), ("q2", 7)]
    )
    assert one == same
    assert sorted(one) == sorted(pool.ids)
    assert len({one, other_seed, other_question}) == 3


@pytest.mark.parametrize(
    ("budget", "expected", "stop_reason"),
    [
        (UNLIMITED, ("x0", "x1", "r2", "r1", "r0"), "pool_exhausted"),
        (Budget(tokens=40), ("x0", "x1", "r2", "r1", "r0"), "pool_exhausted"),
        (Budget(tokens=39), ("x1", "r2", "r1", "r0"), "budget"),
        (Budget(tokens=20), ("r1", "r0"), "budget"),
        (Budget(tokens=20, records=1), ("r0",), "budget"),
        (Budget(records=0), (), "budget"),
    ],
)
def test_full_context_keeps_the_latest_records_that_fit_oldest_first(budget, expected, stop_reason):
    evidence = read("full_context", make_query(), make_pool(np.zeros((3, 2))), budget)
    assert evidence.ids == expected
    assert evidence.stop_reason == stop_reason


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("mmr", {"trade": 1.5}),
        ("mmr", {"trade": float("nan")}),
        ("dpp", {"alpha": -1.0}),
        ("dpp", {"eps": 0.0}),
        ("lin_bilmes", {"alpha": 2.0}),
        ("lin_bilmes", {"lam": -1.0}),
        ("lin_bilmes", {"clusters": 0.0}),
        ("xquad", {"trade": -0.1}),
    ],
)
def test_a_parameter_out_of_range_is_refused_by_name(name, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        READERS[name](**parameters)


def test_a_negative_budget_is_refused():
    with pytest.raises(ValueError, match="records of at least 0 expected, -1 found"):
        Budget(records=-1)

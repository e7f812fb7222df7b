"""A set is completed by a learned score, and what is learned never saw the conversation it is used on."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from readers.rsc import FEATURES, Rsc, features, residual
from readers.types import Budget, Note, Pool, Query
from storage.errors import InputError
from storage.lake import Lake
from storage.schemas import FITS
from tasks.access import Library, QuestionAccess
from tasks.arms import arms, learner
from tasks.compose import compose
from tasks.conversation import Conversation
from tasks.fit import Example, address, dealt, examples, fit, fit_whole, fitted, learned
from tests.conftest import conversation, write_locomo

DAY = 86_400.0


def made_pool(size=40, width=6, seed=0):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(size, width)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    question = vectors[0] + 0.5 * rng.normal(size=width).astype(np.float32)
    question /= np.linalg.norm(question)
    pool = Pool(
        ids=tuple(f"r{i}" for i in range(size)),
        native=np.linspace(1, 0, size),
        dense=vectors.astype(float) @ question.astype(float),
        lexical=rng.integers(0, 5, size).astype(float),
        vectors=vectors,
        tokens=np.full(size, 10, np.int32),
        positions=np.arange(size, dtype=np.int32),
        sessions=rng.integers(0, 5, size).astype(np.int32),
        speakers=rng.integers(0, 2, size).astype(np.int32),
        times=np.where(rng.random(size) < 0.1, np.nan, rng.integers(0, 9, size) * DAY),
    )
    return Query("q", "What?", question), pool


def complete(reader, query, pool, budget):
    notes = [Note(id, "text", "Ada", 0, place, 0.0, 10) for place, id in enumerate(pool.ids)]
    library = Library(notes, lambda texts: np.zeros((len(texts), pool.vectors.shape[1]), np.float32))
    return reader.read(query, pool, budget, QuestionAccess(library, budget))


# The reader ----------------------------------------------------------------------------------------------


def test_features_are_those_of_a_naive_twin():
    query, pool = made_pool()
    held = np.array([0, 3, 7])
    found = features(query, pool, held)
    for i in range(len(pool)):
        coefficients = np.linalg.lstsq(pool.vectors[held].T.astype(float), query.vector.astype(float), rcond=None)[0]
        left = query.vector - pool.vectors[held].T @ coefficients
        gaps = [abs(pool.times[i] - pool.times[j]) / DAY for j in held]
        known = [1 / (1 + gap) for gap in gaps if gap == gap]
        expected = [
            pool.dense[i],
            pool.vectors[i] @ left / np.linalg.norm(left),
            max(pool.vectors[i] @ pool.vectors[j] for j in held),
            (pool.lexical[i] - min(pool.lexical)) / (max(pool.lexical) - min(pool.lexical)),
            sum(pool.sessions[i] == pool.sessions[j] for j in held) / 3,
            max(known, default=0),
            sum(pool.speakers[i] == pool.speakers[j] for j in held) / 3,
            i / len(pool),
        ]
        np.testing.assert_allclose(found[i], expected, atol=1e-5)
    assert found.shape == (len(pool), len(FEATURES))


def test_nothing_is_left_of_a_question_that_the_set_spans():
    assert residual(np.array([0.6, 0.8]), np.eye(2)).tolist() == [0, 0]
    assert residual(np.array([0.6, 0.8]), np.array([[1.0, 0.0], [1.0, 0.0]])) == pytest.approx([0, 1])


def test_three_rounds_of_eight_complete_ten_by_the_weights():
    query, pool = made_pool(size=60)
    last_first = Rsc().fitted([0] * 7 + [1])
    found = complete(last_first, query, pool, Budget(calls=3, rounds=3, new_records=30))
    assert found.ids == (*pool.ids[:10], *pool.ids[:35:-1])
    assert (found.calls, found.stop_reason) == (3, "budget")
    assert [len(step.kept) for step in found.trace] == [10, 8, 8, 8]


def test_each_round_sees_what_the_one_before_it_added():
    query, pool = made_pool(size=40)
    reader = Rsc(init_records=2, page=1)
    ids = complete(reader, query, pool, Budget(calls=2, rounds=2, new_records=2)).ids
    held = [0, 1]
    for id in ids[2:]:
        scores = features(query, pool, np.array(held))[:, 1]
        best = max((i for i in range(len(pool)) if i not in held), key=lambda i: (scores[i], -i))
        assert pool.ids.index(id) == best
        held.append(best)


def test_an_arm_without_weights_learns_and_one_with_weights_does_not():
    arm = arms(["rsc(page=4)@C3"], (), ["turns"])[0]
    assert arm.learns
    assert not arms(["hybrid@k5"], (), ["turns"])[0].learns
    given = arms(['rsc(page=4, weights="1 2 3 4 5 6 -7 .5")@C3'], (), ["turns"])[0]
    assert not given.learns
    assert given.reader.numbers == (1, 2, 3, 4, 5, 6, -7, 0.5)
    assert arms([str(given)], (), ["turns"]) == [given]


@pytest.mark.parametrize("form", ["hybrid", 'rsc(weights="1 2 3 4 5 6 7 8")'])
def test_only_a_reader_that_learns_is_fitted(form):
    assert learner("rsc(page=4)") == Rsc(page=4)
    with pytest.raises(InputError, match="that learns"):
        learner(form)


@pytest.mark.parametrize(
    ("weights", "said"),
    [("1 2", r"weights \(2\) must match features \(8\)"), ("1 2 3 4 5 6 7 inf", "finite"), ("1 2 3 4 5 6 7 x", "'x'")],
)
def test_weights_that_are_not_eight_finite_numbers_are_refused(weights, said):
    with pytest.raises(ValueError, match=said):
        Rsc(weights=weights)


# What is learned -----------------------------------------------------------------------------------------


def choices_of(seed, count=60):
    rng = np.random.default_rng(seed)
    truth = np.array([2.0, 0, -1, 0.5, 0, 0, 1, 0])
    for _ in range(count):
        rows = rng.normal(size=(int(rng.integers(5, 30)), 8))
        best = np.argsort(-(rows @ truth + rng.gumbel(size=len(rows))))
        positives = int(rng.integers(1, 3))
        yield Example(rows[best], positives)


def test_newton_finds_the_minimum_that_a_general_optimiser_finds():
    data = list(choices_of(1))
    scale = np.concatenate([example.rows for example in data]).std(axis=0)

    def loss(weights):
        total = 0.0
        for example in data:
            scores = example.rows @ weights
            total += np.log(np.exp(scores).sum()) - scores[: example.positives].mean()
        return total / len(data) + 1e-3 * ((weights * scale) ** 2).sum()

    rival = minimize(loss, np.zeros(8), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(learned(data), rival.x, atol=1e-4)


def test_positives_are_the_gold_that_the_set_lacks_and_no_gold_is_a_negative():
    query, pool = made_pool(size=150)
    gold = np.zeros(150, bool)
    gold[[4, 20, 90, 140]] = True
    made = list(examples(query, pool, gold, Rsc()))
    assert [example.positives for example in made[:3]] == [2, 2, 1]
    assert all(1 <= example.positives <= 3 for example in made[3:])
    ranks = made[0].rows[:, -1] * 100
    assert ranks[:2].round().tolist() == [20, 90]
    assert ranks[2:].round().tolist() == [rank for rank in range(10, 100) if rank not in (20, 90)]
    assert [example.rows.tolist() for example in examples(query, pool, gold, Rsc())] == [e.rows.tolist() for e in made]


def said(gold):
    """Conversations of one question each, with the gold turn that `gold` names."""
    asked = {"question": "Who is Kiwi?", "answer": "a parrot", "category": 4}
    return [conversation(name, qa=[{**asked, "evidence": [turn]}]) for name, turn in gold.items()]


def pooled(folder: Path, gold: dict[str, str], arm: str, folds: Sequence[Sequence[str]] = ()):
    """A plan of one arm over a small lake of its own, as far as its pools."""
    from flows import protocol as protocols
    from tasks.candidates import build_pools
    from tasks.index import build_index, chunks_to_embed, embed_chunk
    from tasks.ingest import ingest
    from tasks.store import write_store

    folder.mkdir(exist_ok=True)
    data = write_locomo(folder / "x.json", *said(gold))
    given = {"data.path": str(data), "arms": [arm], "budgets": [], "data.folds": folds}
    protocol = protocols.load("sample", given)
    lake = str(Lake.open(folder / "lake").root)
    found = ingest(lake, protocol.data.benchmark, str(data))
    plan = protocol.plan(lake, found.dataset, found.gold)
    store = plan.stores[0]
    write_store(plan, store)
    for chunk in chunks_to_embed(plan, store):
        embed_chunk(plan, store, chunk)
    build_index(plan, store)
    build_pools(plan, store, plan.conversation_ids())
    return plan, store


def fits(folder: Path, gold: dict[str, str], folds: Sequence[Sequence[str]] = ()) -> dict[str, list[float]]:
    """Conversation → the weights it is read with."""
    plan, store = pooled(folder, gold, "rsc(init_records=1, page=1)@C3", folds)
    fit(plan, store)
    rows = Lake(plan.lake).table(FITS, address(plan, store)).read()
    for row in rows.iter_rows(named=True):
        assert row["conversation_id"] not in row["trained_on"]
        arm = fitted(plan, store, plan.arms[0], row["conversation_id"])
        assert list(arm.reader.numbers) == row["weights"]
        assert not arm.learns
    return dict(zip(rows["conversation_id"], rows["weights"].to_list(), strict=True))


def test_a_conversations_weights_never_saw_its_gold(tmp_path):
    gold = {"c1": "D1:1", "c2": "D2:1", "c3": "D2:2"}
    before = fits(tmp_path / "a", gold)
    after = fits(tmp_path / "b", {**gold, "c1": "D1:2"})
    assert before.keys() == gold.keys()
    assert before["c1"] == after["c1"]
    assert before["c2"] != after["c2"]
    assert before["c3"] != after["c3"]


def test_a_protocols_fold_is_read_with_what_the_other_folds_taught(tmp_path):
    gold, folds = {"c1": "D1:1", "c2": "D2:1", "c3": "D2:2"}, [["c1", "c2"], ["c3"]]
    before = fits(tmp_path / "a", gold, folds)
    after = fits(tmp_path / "b", {**gold, "c2": "D1:2"}, folds)
    assert before["c1"] == before["c2"] == after["c1"] == after["c2"]
    assert before["c3"] != after["c3"]


def test_conversations_that_no_fold_names_are_one_more():
    assert dealt(["a", "b", "c", "d"], [["c", "a"], ["x"]]) == [["a", "c"], ["b", "d"]]
    assert dealt([*"abcdefg"], ()) == [["a", "f"], ["b", "g"], ["c"], ["d"], ["e"]]


@pytest.mark.parametrize(("gold", "folds"), [({"c1": "D1:1"}, []), ({"c1": "D1:1", "c2": "D1:2"}, [["c1", "c2"]])])
def test_one_fold_teaches_nothing(tmp_path, gold, folds):
    with pytest.raises(InputError, match="at least two folds of them expected, one found"):
        fits(tmp_path, gold, folds)


def test_a_whole_benchmark_teaches_the_weights_of_all_its_examples(tmp_path):
    plan, store = pooled(tmp_path, {"c1": "D1:1", "c2": "D2:1"}, "rsc(init_records=1, page=1)@C3")
    reader = plan.arms[0].reader
    held = []
    for id in ("c1", "c2"):
        own = Conversation.load(plan, store, id)
        turns = {record.id: record.source_turn_ids for record in own.records}
        for query, pool in own.queries(set(own.questions)):
            gold = plan.gold_of(id)[query.id].turn_ids
            held += examples(query, pool, np.array([bool({*turns[id]} & {*gold}) for id in pool.ids]), reader)
    assert fit_whole(plan, store, reader) == pytest.approx(learned(held).tolist())


def test_an_arm_with_weights_sees_no_gold_of_what_it_reads(tmp_path):
    form = 'rsc(init_records=1, page=1, weights="4 2 -2 4 5 0 3 -1")@C3'
    (one, first), (other, second) = (pooled(tmp_path / turn, {"c1": f"D1:{turn}"}, form) for turn in "12")
    assert one.gold != other.gold
    assert not first.learned_from
    assert first.selections(one.seed) == second.selections(other.seed)
    assert fitted(one, first, one.arms[0], "c1") is one.arms[0]
    assert compose(one, first, ["c1"]) == 1

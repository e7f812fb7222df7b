"""Set selection against rivals, against naive twins and against arithmetic done by hand."""

from math import ceil, exp, log, sqrt

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyversity.strategies.dpp import dpp as pyversity_dpp
from pyversity.strategies.mmr import mmr as pyversity_mmr

from readers.coverage import facility_location, farthest_first, lin_bilmes
from readers.dpp import dpp
from readers.mmr import mmr
from readers.types import Budget, Note, Pool, Query
from readers.xquad import Xquad, xquad
from tasks.access import Library, QuestionAccess

pytestmark = pytest.mark.filterwarnings("error")
thorough = settings(deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))
NAN = float("nan")


# Pools and twins -----------------------------------------------------------------------------------------


def unit_rows(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def random_pool(seed, size=120, width=24):
    """Unit rows in a few topics with non-negative cosines, which pyversity's clipping leaves alone."""
    rng = np.random.default_rng(seed)
    topics = rng.normal(size=(8, width))
    vectors = unit_rows(np.abs(topics[rng.integers(0, 8, size)] + 0.6 * rng.normal(size=(size, width))))
    query = unit_rows(np.abs(rng.normal(size=(1, width))))[0]
    return vectors, (vectors @ query).astype(float)


@st.composite
def grids(draw):
    """Vectors and relevances on a coarse grid: float32 dot products are exact, ties and copies are common."""
    size, width = draw(st.integers(0, 14)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    vectors = rng.integers(-2, 3, (size, width)).astype(np.float32) / 2
    relevance = rng.integers(-3, 9, size) / 8
    relevance[rng.random(size) < draw(st.sampled_from([0, 0.3]))] = NAN
    return vectors, relevance


def greedy(score, usable, k):
    """Each step the usable record with the highest score(selected, record), ties to the lowest index."""
    order, gains = [], []
    while len(order) < min(k, len(usable)):
        left = [i for i in np.flatnonzero(usable) if i not in order]
        if not left:
            rest = [i for i in range(len(usable)) if i not in order]
            return [*order, *rest[: k - len(order)]], gains
        scores = [score(order, i) for i in left]
        pick = next(n for n, value in enumerate(scores) if value >= max(scores) - 1e-10)
        order.append(left[pick])
        gains.append(scores[pick])
    return order, gains


def gain_of(objective):
    return lambda chosen, i: objective([*chosen, i]) - objective(chosen)


def clipped(vectors, relevance):
    usable = np.isfinite(relevance)
    gram = np.maximum(vectors.astype(float) @ vectors.astype(float).T, 0) * np.outer(usable, usable)
    return gram, np.where(usable, np.maximum(relevance, 0), 0), usable


def assert_same(result, expected, tolerance=1e-9):
    order, gains = result
    assert order.tolist() == list(expected[0])
    np.testing.assert_allclose(gains[: len(expected[1])], expected[1], rtol=tolerance, atol=tolerance)
    assert np.isnan(gains[len(expected[1]) :]).all()


# MMR -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("trade", [0.0, 0.3, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_mmr_agrees_with_pyversity(seed, trade):
    vectors, relevance = random_pool(seed)
    order, gains = mmr(vectors, relevance, 20, trade=trade)
    rival = pyversity_mmr(vectors, relevance, 20, diversity=1 - trade)
    assert order.tolist() == rival.indices.tolist()
    np.testing.assert_allclose(gains, rival.selection_scores, atol=1e-6)


@thorough
@given(grids(), st.integers(0, 16), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
def test_mmr_agrees_with_its_definition(pool, k, trade):
    vectors, relevance = pool
    gram = vectors.astype(float) @ vectors.astype(float).T

    def score(chosen, i):
        if not chosen:
            return relevance[i]
        return trade * relevance[i] - (1 - trade) * max(gram[i, j] for j in chosen)

    order, gains = greedy(score, np.isfinite(relevance), k)
    assert_same(mmr(vectors, relevance, k, trade=trade), (order, [trade * g for g in gains[:1]] + gains[1:]))


def test_mmr_by_hand():
    # r1 repeats r0; r2 is orthogonal. .5·.8 − .5·1 = −.1 against .5·.2 − .5·0 = .1.
    vectors = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    order, gains = mmr(vectors, np.array([0.9, 0.8, 0.2]), 3, trade=0.5)
    assert order.tolist() == [0, 2, 1]
    np.testing.assert_allclose(gains, [0.45, 0.1, -0.1])


# DPP -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(6))
def test_dpp_agrees_with_pyversity(seed, beta):
    # pyversity weighs by exp(beta·z), z = (rel − mean) / std: alpha is beta / std, d² differs by a constant.
    vectors, relevance = random_pool(seed)
    spread = relevance.std() + np.finfo(np.float32).eps
    order, gains = dpp(vectors, relevance, 20, alpha=beta / spread)
    rival = pyversity_dpp(vectors, relevance, 20, diversity=1 - beta)
    assert order.tolist() == rival.indices.tolist()
    constant = 2 * beta * relevance.mean() / spread
    np.testing.assert_allclose(gains - constant, np.log(rival.selection_scores), atol=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_dpp_gains_are_those_of_the_log_determinant(seed):
    vectors, relevance = random_pool(seed, size=9, width=7)
    weighted = np.exp(1.5 * relevance)[:, None] * vectors.astype(float)

    def volume(chosen):
        return np.linalg.slogdet(weighted[chosen] @ weighted[chosen].T)[1] if chosen else 0.0

    expected = greedy(gain_of(volume), np.ones(9, bool), 6)
    assert_same(dpp(vectors, relevance, 6, alpha=1.5), expected, tolerance=1e-6)


def test_dpp_by_hand():
    # d² of r0 is e^(2·.5); r1 is at cosine .6 to it, so c² = 1 − .36 = .64; r2 is orthogonal but irrelevant.
    vectors = np.array([[1, 0, 0], [0.6, 0.8, 0], [0, 0, 1]], np.float32)
    order, gains = dpp(vectors, np.array([0.5, 0.4, 0.0]), 3, alpha=1.0)
    assert order.tolist() == [0, 1, 2]
    np.testing.assert_allclose(np.exp(gains), [exp(1.0), 0.64 * exp(0.8), 1.0], rtol=1e-6)
    # With a low alpha the orthogonal record comes second: 1 against .64·e^.08 = .693.
    assert dpp(vectors, np.array([0.5, 0.4, 0.0]), 3, alpha=0.1)[0].tolist() == [0, 2, 1]


def test_dpp_fills_by_relevance_once_no_record_adds_volume():
    vectors = np.array([[1, 0], [1, 0], [0, 0], [0, 1], [1, 0]], np.float32)
    relevance = np.array([0.9, 0.2, 0.3, 0.1, 0.8])
    for alpha in (0.0, 1.0, 400.0):
        order, gains = dpp(vectors, relevance, 5, alpha=alpha)
        assert order.tolist() == [0, 3, 4, 2, 1]
        np.testing.assert_allclose(gains, [2 * alpha * 0.9, 2 * alpha * 0.1, NAN, NAN, NAN])


@pytest.mark.parametrize("alpha", [0.0, 1.0, 60.0])
def test_dpp_takes_no_more_records_by_volume_than_there_are_dimensions(alpha):
    vectors, relevance = random_pool(11, size=30, width=4)
    order, gains = dpp(vectors, relevance, 30, alpha=alpha)
    assert np.isfinite(gains).tolist() == [True] * 4 + [False] * 26
    assert (np.diff(relevance[order[4:]]) <= 0).all()


def test_dpp_stops_at_eps():
    # d² is 1 for r0; after it .8125 − .5² = .5625 for r1 and .25 for r2; after r1 nothing for r2.
    vectors = np.array([[1, 0], [0.5, 0.75], [0, 0.5]], np.float32)
    relevance = np.array([0.0, 0.5, 0.9])
    for eps, expected, entered in [(0.5, [0, 1, 2], 2), (0.6, [0, 2, 1], 1), (1.1, [2, 1, 0], 0)]:
        order, gains = dpp(vectors, relevance, 3, alpha=0.0, eps=eps)
        assert order.tolist() == expected
        np.testing.assert_allclose(gains, [*[0.0, log(0.5625)][:entered], *[NAN] * (3 - entered)], atol=1e-12)


# Facility location and Lin–Bilmes --------------------------------------------------------------------------


@thorough
@given(grids(), st.integers(0, 16))
def test_facility_location_is_the_naive_greedy(pool, k):
    gram, reward, usable = clipped(*pool)

    def objective(chosen):
        return float(reward @ gram[:, chosen].max(axis=1)) if chosen else 0.0

    assert_same(facility_location(*pool, k), greedy(gain_of(objective), usable, k))


def naive_clusters(gram, usable, count):
    candidates, centres = list(np.flatnonzero(usable)), []
    while len(centres) < count:
        left = [i for i in candidates if i not in centres]
        centres.append(min(left, key=lambda i: (max((gram[c, i] for c in centres), default=0), i)))
    own = {centre: code for code, centre in enumerate(centres)}
    return {i: own.get(i, max(range(count), key=lambda c: (gram[centres[c], i], -c))) for i in candidates}


@thorough
@given(
    grids(),
    st.integers(0, 16),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    st.sampled_from([0.0, 1.0, 3.0]),
    st.sampled_from([0.2, 0.5, 1.0]),
)
def test_lin_bilmes_is_the_naive_greedy(pool, k, alpha, lam, share):
    gram, reward, usable = clipped(*pool)
    cluster = naive_clusters(gram, usable, ceil(share * usable.sum()))

    def objective(chosen):
        covered = gram[:, chosen].sum(axis=1)
        masses = [sum(reward[j] for j in chosen if cluster[j] == code) for code in set(cluster.values())]
        return float(np.minimum(covered, alpha * gram.sum(axis=1)).sum() + lam * np.sqrt(masses).sum())

    expected = greedy(gain_of(objective), usable, k)
    assert_same(lin_bilmes(*pool, k, alpha=alpha, lam=lam, clusters=share), expected)


def test_lazy_greedy_on_a_large_pool_is_the_naive_greedy():
    vectors, relevance = random_pool(3, size=200, width=48)
    gram, reward, usable = clipped(vectors, relevance)
    cover, covered, mass = np.zeros(200), np.zeros(200), {}
    cluster = farthest_first(gram, usable, 40)
    ceiling = 0.1 * gram.sum(axis=1)
    facilities, _ = facility_location(vectors, relevance, 20)
    summary, _ = lin_bilmes(vectors, relevance, 20)
    for step in range(20):
        gains = np.maximum(gram - cover, 0) @ reward
        gains[facilities[:step]] = -1
        assert facilities[step] == gains.argmax()
        cover = np.maximum(cover, gram[facilities[step]])

        held = np.array([mass.get(code, 0.0) for code in cluster])
        gains = np.minimum(covered + gram, ceiling).sum(axis=1) - np.minimum(covered, ceiling).sum()
        gains += np.sqrt(held + reward) - np.sqrt(held)
        gains[summary[:step]] = -1
        assert summary[step] == gains.argmax()
        covered += gram[summary[step]]
        mass[cluster[summary[step]]] = held[summary[step]] + reward[summary[step]]


def test_facility_location_by_hand():
    # r1 covers itself and .6 of both sides: .5·.6 + .4·1 + .3·.8; r0 covers .5·1 + .4·.6 + 0.
    vectors = np.array([[1, 0], [0.6, 0.8], [0, 1]], np.float32)
    order, gains = facility_location(vectors, np.array([0.5, 0.4, 0.3]), 3)
    assert order.tolist() == [1, 0, 2]
    np.testing.assert_allclose(gains, [0.3 + 0.4 + 0.24, 0.5 * 0.4, 0.3 * 0.2], rtol=1e-6)


def test_lin_bilmes_by_hand():
    # Two orthogonal pairs of copies, cap .5·2 = 1 each, two clusters: one of each pair covers both copies.
    vectors = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], np.float32)
    order, gains = lin_bilmes(vectors, np.array([0.16, 0.09, 0.25, 0.24]), 4, alpha=0.5, lam=1, clusters=0.5)
    assert order.tolist() == [2, 0, 3, 1]
    np.testing.assert_allclose(gains, [2 + 0.5, 2 + 0.4, sqrt(0.49) - 0.5, sqrt(0.25) - 0.4])


def test_clusters_by_hand():
    gram = np.array([[1, 0.9, 0.1, 0.2], [0.9, 1, 0, 0.3], [0.1, 0, 1, 0.8], [0.2, 0.3, 0.8, 1]])
    every = np.ones(4, bool)
    assert farthest_first(gram, every, 1).tolist() == [0, 0, 0, 0]
    assert farthest_first(gram, every, 2).tolist() == [0, 0, 1, 1]
    assert farthest_first(gram, every, 3).tolist() == [0, 0, 1, 2]
    assert farthest_first(gram, np.array([False, True, True, True]), 2).tolist() == [0, 0, 1, 1]


# xQuAD ---------------------------------------------------------------------------------------------------


@thorough
@given(grids(), st.integers(0, 16), st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(0, 4), st.integers(0, 99))
def test_xquad_agrees_with_its_definition(pool, k, trade, aspects, seed):
    _, relevance = pool
    usable = np.isfinite(relevance)
    strengths = np.random.default_rng(seed).integers(0, 5, (aspects, len(relevance))) / 4

    def probability(values, i):
        low, high = min(values[usable]), max(values[usable])
        return (values[i] - low) / (high - low) if high > low else 0.0

    def score(chosen, i):
        served = [
            probability(row, i) * np.prod([1 - probability(row, j) for j in chosen]) / aspects for row in strengths
        ]
        return (1 - trade) * probability(relevance, i) + trade * sum(served)

    assert_same(xquad(relevance, strengths, k, trade=trade), greedy(score, usable, k))


def test_xquad_by_hand():
    # r0 serves the first aspect in full, so r1, which serves it too, loses to r2, which serves the second.
    relevance = np.array([1.0, 0.8, 0.0])
    strengths = np.array([[1.0, 0.9, 0.0], [0.0, 0.0, 0.7]])
    order, gains = xquad(relevance, strengths, 3, trade=0.8)
    assert order.tolist() == [0, 2, 1]
    np.testing.assert_allclose(gains, [0.2 + 0.4, 0.4, 0.16])


def three_records(dense):
    zeros, codes = np.zeros(3), np.zeros(3, np.int32)
    vectors = np.eye(3, dtype=np.float32)
    return Pool(("r0", "r1", "r2"), zeros, np.array(dense), zeros, vectors, codes, codes, codes, codes, zeros)


def three_notes():
    """Two by Ben and one by Ada, who is named in none."""
    said = [("Ben", "Nice to hear."), ("Ben", "Good for you."), ("Ada", "It was a parrot.")]
    notes = [Note(f"r{i}", text, speaker, 0, i, NAN, 1) for i, (speaker, text) in enumerate(said)]
    return QuestionAccess(Library(notes, lambda texts: pytest.fail("nothing is to be embedded")), Budget())


def test_xquad_s_aspects_are_the_requirements_by_rules():
    # Asked after Ada, r0 serves the question and r2 alone serves her: r1 comes last, though it is nearer than r2.
    pool = three_records([1.0, 0.8, 0.0])
    vector = np.array([1, 0.8, 0], np.float32)

    def read(text, trade):
        return Xquad(trade=trade).read(Query("q", text, vector), pool, Budget(), three_notes()).ids

    assert read("What did Ada buy?", 0.9) == ("r0", "r2", "r1")
    assert read("What did she buy?", 0.9) == ("r0", "r1", "r2")
    assert read("What did Ada buy?", 0.0) == ("r0", "r1", "r2")


@thorough
@given(grids(), st.sampled_from([0.0, 0.5, 0.9]))
def test_xquad_with_the_question_as_its_only_aspect_is_the_order_of_relevance(pool, trade):
    _, relevance = pool
    order, _ = xquad(relevance, relevance[None], len(relevance), trade=trade)
    assert order.tolist() == np.argsort(-relevance, kind="stable").tolist()


def test_xquad_refuses_a_coverage_of_another_pool():
    with pytest.raises(ValueError, match=r"coverage \(2, 4\) must be \(aspects, 3\)"):
        xquad(np.zeros(3), np.zeros((2, 4)), 2)


# Records without a relevance or a vector -------------------------------------------------------------------


@pytest.mark.parametrize("select", [mmr, dpp, facility_location, lin_bilmes])
@pytest.mark.parametrize("bad", [NAN, np.inf, -np.inf])
def test_a_record_without_finite_relevance_or_vector_neither_leads_nor_influences(select, bad):
    vectors, relevance = random_pool(5, size=12, width=6)
    sound_order, sound_gains = select(vectors[2:], relevance[2:], 10)
    vectors[0, 3], relevance[1] = bad, bad
    order, gains = select(vectors, relevance, 12)
    assert order.tolist() == [*(sound_order + 2), 0, 1]
    np.testing.assert_array_equal(gains, [*sound_gains, NAN, NAN])


def test_xquad_places_such_records_last_too():
    query = Query("q", "What did she buy?", np.array([1, 0, 0], np.float32))
    pool = three_records([0.2, NAN, 0.1])
    assert Xquad().read(query, pool, Budget(), three_notes()).ids == ("r0", "r2", "r1")
    pool.vectors[0, 2] = NAN
    assert Xquad().read(query, pool, Budget(), three_notes()).ids == ("r2", "r0", "r1")

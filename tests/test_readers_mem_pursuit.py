"""Does MemPursuit choose what its definition says, on every kind of pool?"""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray

from readers import pursuit_kernels as kernels
from readers.mem_pursuit import MemPursuit, Pursuit, mem_pursuit, mem_pursuit_batch
from readers.types import Access, Budget, Pool, Query
from tests.pursuit_reference import objective, optimum_bounds, reference_path

Rows = NDArray[np.float32]
Case = tuple[Rows, Rows]

seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=60, deadline=None)


def unit(values: NDArray[np.floating]) -> Rows:
    lengths = np.linalg.norm(values, axis=-1, keepdims=True)
    return (values / np.where(lengths == 0, 1, lengths)).astype(np.float32)


def cone(rng: np.random.Generator, size: int, dim: int, spread: float = 1.0) -> Case:
    """A query and memories around a common direction, as an encoder's are."""
    centre = rng.standard_normal(dim)
    noise = rng.standard_normal((size, dim)) * spread
    return unit(centre + rng.standard_normal(dim) * spread), unit(centre + noise)


def copies(distance: float) -> Callable[[np.random.Generator], Case]:
    def make(rng: np.random.Generator) -> Case:
        query, rows = cone(rng, 40, 48)
        shifted = rows[rng.integers(0, 12, 40)].astype(np.float64) + distance * unit(rng.standard_normal((40, 48)))
        return query, np.concatenate([rows[:12], unit(shifted)])[rng.permutation(52)]

    return make


def duplicates(rng: np.random.Generator) -> Case:
    query, rows = cone(rng, 12, 32)
    return query, rows[rng.integers(0, 12, 40)]


def zero_rows(rng: np.random.Generator) -> Case:
    query, rows = cone(rng, 30, 32)
    rows[rng.integers(0, 30, 6)] = 0
    return query, rows


def broken_rows(rng: np.random.Generator) -> Case:
    query, rows = cone(rng, 30, 32)
    rows[3, 5], rows[0, 0], rows[17, 31], rows[18, 1] = np.nan, np.inf, -np.inf, np.nan
    return query, rows


def query_in_hull(rng: np.random.Generator) -> Case:
    _, rows = cone(rng, 30, 32)
    return (rng.dirichlet(np.ones(5)) @ rows[rng.integers(0, 30, 5)]).astype(np.float32), rows


def query_is_a_memory(rng: np.random.Generator) -> Case:
    _, rows = cone(rng, 30, 32)
    return rows[int(rng.integers(30))].copy(), rows


def query_is_a_near_copied_memory(rng: np.random.Generator) -> Case:
    _, rows = copies(1e-5)(rng)
    return rows[int(rng.integers(len(rows)))].copy(), rows


def orthogonal(rng: np.random.Generator) -> Case:
    return unit(np.abs(rng.standard_normal(32))), np.eye(32, dtype=np.float32)[rng.permutation(32)]


def orthogonal_with_ties(rng: np.random.Generator) -> Case:
    return unit(np.ones(16)), np.eye(16, dtype=np.float32)


def antipodal(rng: np.random.Generator) -> Case:
    query, rows = cone(rng, 12, 24, 2.0)
    return query, np.concatenate([rows, -rows])[rng.permutation(24)]


def low_rank(rng: np.random.Generator) -> Case:
    basis = rng.standard_normal((4, 64))
    return unit(rng.standard_normal(4) @ basis), unit(rng.standard_normal((50, 4)) @ basis)


def one_memory(rng: np.random.Generator) -> Case:
    return cone(rng, 1, 16)


def fewer_than_asked(rng: np.random.Generator) -> Case:
    return cone(rng, 7, 16)


def all_identical(rng: np.random.Generator) -> Case:
    query, rows = cone(rng, 1, 16)
    return query, np.repeat(rows, 25, axis=0)


def clustered(rng: np.random.Generator) -> Case:
    query, centres = cone(rng, 6, 64)
    return query, unit(centres[rng.integers(0, 6, 60)] + 0.05 * rng.standard_normal((60, 64)))


def mixed_signs(rng: np.random.Generator) -> Case:
    return unit(rng.standard_normal(24)), unit(rng.standard_normal((60, 24)))


def flat(rng: np.random.Generator) -> Case:
    return cone(rng, 60, 6, 0.5)


def huge_norms(rng: np.random.Generator) -> Case:
    query, rows = cone(rng, 40, 32)
    return query, (rows * rng.uniform(10, 60, (40, 1))).astype(np.float32)


def tiny_norms(rng: np.random.Generator) -> Case:
    query, rows = cone(rng, 40, 32)
    return query, (rows * rng.uniform(1e-3, 1e-1, (40, 1))).astype(np.float32)


def overflowing_norms(rng: np.random.Generator) -> Case:
    query, rows = cone(rng, 40, 32)
    rows[:3] *= np.float32(1e7)
    return query, rows


def zero_query(rng: np.random.Generator) -> Case:
    query, rows = cone(rng, 20, 16)
    return np.zeros_like(query), rows


def unhelpful(rng: np.random.Generator) -> Case:
    query, rows = cone(rng, 20, 16)
    return query, -rows


def never_saturating(rng: np.random.Generator) -> Case:
    rows = unit(rng.standard_normal((60, 128)))
    return unit(rows.sum(axis=0) + 0.3 * rng.standard_normal(128)), rows


def wide_cone(rng: np.random.Generator) -> Case:
    return cone(rng, 200, 384, 1.5)


def one_dimension_dominates(rng: np.random.Generator) -> Case:
    """Eight bits that span the largest entry leave next to none for all others."""
    query, rows = cone(rng, 80, 45)
    rows[:, 7] += rng.uniform(3, 30, 80)
    return query, unit(rows)


def vanishing_rows(rng: np.random.Generator) -> Case:
    query, rows = cone(rng, 40, 33)
    return query, rows * np.repeat(np.float32([1e-33, 1e-20, 1e-5, 1]), 10)[rng.permutation(40), None]


KINDS = {
    "near copies at 1e-3": copies(1e-3),
    "near copies at 1e-4": copies(1e-4),
    "near copies at 1e-5": copies(1e-5),
    "near copies at 1e-6": copies(1e-6),
    "exact duplicates": duplicates,
} | {
    make.__name__.replace("_", " "): make
    for make in (
        zero_rows, broken_rows, query_in_hull, query_is_a_memory, query_is_a_near_copied_memory, orthogonal,
        orthogonal_with_ties, antipodal, low_rank, one_memory, fewer_than_asked, all_identical, clustered, mixed_signs,
        flat, huge_norms, tiny_norms, overflowing_norms, zero_query, unhelpful, never_saturating, wide_cone,
        one_dimension_dominates, vanishing_rows,
    )
}  # fmt: skip

kinds = st.sampled_from(sorted(KINDS))


def case(kind: str, seed: int) -> Case:
    return KINDS[kind](np.random.default_rng(seed))


def reconstruction(path: Pursuit, memories: Rows) -> NDArray[np.float64]:
    return path.weights @ memories[path.order].astype(np.float64)


def gram_of(memories: Rows) -> NDArray[np.float64]:
    return memories.astype(np.float64) @ memories.astype(np.float64).T


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_order_is_the_reference_order(kind: str) -> None:
    for seed in range(12):
        query, memories = case(kind, seed)
        expected = reference_path(query, memories, 40)
        path = mem_pursuit(query, memories, 40)
        assert path.order.tolist() == expected.order, f"seed {seed}"
        assert path.stop_reason == expected.stop_reason
        used = memories[path.order].astype(np.float64)
        scale = max(1.0, float(np.abs(used).max()) ** 2)
        np.testing.assert_allclose(path.weights @ used, expected.weights @ used, atol=2e-9 * scale)
        np.testing.assert_allclose(path.residual_norms**2, expected.losses, atol=1e-9 * scale)
        np.testing.assert_allclose(path.certificate, expected.certificate, atol=1e-9 * scale)


@quick
@given(kinds, seeds, st.integers(1, 60), st.sampled_from([1e-3, 1e-5, 1e-7, 0.0]), st.integers(1, 3))
def test_the_adaptive_stop_is_the_reference_stop(kind: str, seed: int, k: int, tau: float, patience: int) -> None:
    query, memories = case(kind, seed)
    if tau == 0.0 or kind == "overflowing norms":  # a gain of rounding noise has no sign
        tau = 1e-5
    if kind == "query is a near copied memory":  # the reference's own weights are noise at that scale
        tau = max(tau, 1e-5)
    expected = reference_path(query, memories, k, tau=tau, patience=patience)
    losses = np.append(query.astype(np.float64) @ query, expected.losses)
    ratio = (losses[:-1] - losses[1:]) / np.maximum(losses[:-1], 1e-12)
    if np.any(np.abs(ratio - tau) < 1e-3 * tau):
        return  # within rounding of the threshold
    path = mem_pursuit(query, memories, k, tau=tau, patience=patience)
    assert (path.order.tolist(), path.stop_reason) == (expected.order, expected.stop_reason)


def test_a_question_that_is_a_memory_stops_as_soon_as_patience_allows() -> None:
    for seed in range(40):
        query, memories = query_is_a_memory(np.random.default_rng(seed))
        path = mem_pursuit(query, memories, 30, tau=1e-5)
        assert (len(path.order), path.stop_reason) == (3, "adaptive")
        assert np.array_equal(path.order, np.argsort(-(memories.astype(np.float64) @ query), kind="stable")[:3])
        assert path.residual_norms.max() < 1e-9


@quick
@given(kinds, seeds, st.integers(0, 30), st.integers(0, 30))
def test_a_smaller_budget_is_a_prefix(kind: str, seed: int, small: int, more: int) -> None:
    query, memories = case(kind, seed)
    short, long = mem_pursuit(query, memories, small), mem_pursuit(query, memories, small + more)
    assert short.order.tolist() == long.order[:small].tolist()
    assert np.array_equal(short.residual_norms, long.residual_norms[:small])


@quick
@given(kinds, seeds, st.integers(1, 40))
@example("vanishing rows", 0, 6)  # z and w of the factor are large there
def test_weights_lie_on_the_simplex_and_meet_kkt(kind: str, seed: int, k: int) -> None:
    query, memories = case(kind, seed)
    path = mem_pursuit(query, memories, k)
    chosen, q = memories[path.order].astype(np.float64), query.astype(np.float64)
    scale = max(1.0, float((chosen**2).sum(axis=1).max()))
    assert path.weights.min() >= 0
    assert abs(path.weights.sum() - 1) <= 1e-12 * scale
    scores = chosen @ (q - path.weights @ chosen) - 1e-10 * path.weights
    nu = path.weights @ scores
    support = path.weights > 0
    assert np.abs(scores[support] - nu).max() <= 1e-12 * scale
    assert scores.max() <= nu + 1e-12 * scale


@quick
@given(kinds, seeds)
def test_the_objective_never_rises(kind: str, seed: int) -> None:
    query, memories = case(kind, seed)
    chosen, q = memories.astype(np.float64), query.astype(np.float64)
    values = []
    for k in range(1, 16):
        path = mem_pursuit(query, memories, k)
        values.append(objective(q, chosen[path.order], path.weights, 1e-10))
    scale = max(1.0, float(np.nanmax(np.where(np.isfinite(chosen), np.abs(chosen), 0.0))) ** 2)
    assert np.diff(values).max() <= 1e-13 * scale


@quick
@given(seeds, st.integers(2, 20), st.floats(0, 0.3))
def test_memories_near_the_hull_score_within_proposition_1(seed: int, k: int, distance: float) -> None:
    rng = np.random.default_rng(seed)
    query, memories = cone(rng, 40, 24)
    path = mem_pursuit(query, memories, k)
    chosen = memories[path.order].astype(np.float64)
    residual = query.astype(np.float64) - path.weights @ chosen
    inside = rng.dirichlet(np.ones(len(chosen))) @ chosen
    near = inside + distance * unit(rng.standard_normal(24))
    assert near @ residual <= (chosen @ residual).max() + distance * np.linalg.norm(residual) + 1e-9
    bound = (chosen @ residual).max() + distance * np.linalg.norm(residual)
    scores = np.delete(memories.astype(np.float64) @ residual, path.order)
    if scores.max() > bound:  # then the next memory lies outside the neighbourhood of the hull
        assert memories[mem_pursuit(query, memories, k + 1).order[k]].astype(np.float64) @ residual > bound - 1e-9


@settings(max_examples=80, deadline=None)
@given(seeds, st.integers(2, 6), st.integers(1, 4), st.integers(0, 10))
def test_required_facts_come_first_under_the_fact_cluster_model(
    seed: int, facts: int, copies_each: int, noise: int
) -> None:
    """Appendix B.2: h facts, several memories each, distractors; the pool is kept only where assumption B.1 holds."""
    rng = np.random.default_rng(seed)
    dim, rho, wobble = 64, 0.2, 0.004
    axes = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    shared, own, away = axes[0], axes[1 : 1 + facts], axes[1 + facts : 1 + facts + noise]
    centres = np.sqrt(rho) * shared + np.sqrt(1 - rho) * own
    required = unit(
        np.repeat(centres, copies_each, axis=0) + wobble * unit(rng.standard_normal((facts * copies_each, dim)))
    )
    distractors = (
        unit(1.05 * np.sqrt(rho) * shared + np.sqrt(1 - rho) * away) if noise else np.empty((0, dim), np.float32)
    )
    query = unit(shared * 0.3 + centres.mean(axis=0))
    memories = np.concatenate([required, distractors])
    labels = np.concatenate([np.repeat(np.arange(facts), copies_each), np.full(noise, -1)])
    mix = rng.permutation(len(memories))
    memories, labels = memories[mix], labels[mix]

    products, cosines = gram_of(memories), memories.astype(np.float64) @ query
    same = (labels[:, None] == labels) & (labels[:, None] >= 0)
    other = (labels[:, None] != labels) & (labels[:, None] >= 0) & (labels >= 0)
    epsilon = np.sqrt(np.maximum(2 - 2 * products[same].min(), 0))
    eta = np.abs(products[other] - rho).max()
    relevant = cosines[labels >= 0]
    margin = (1 - rho) / (facts - 1) - (relevant.max() - relevant.min()) - 2 * eta - 2 * epsilon
    assert margin > 0
    if noise:
        gamma = relevant.min() - cosines[labels < 0].max()
        assert gamma > 2 * eta
        assert products[np.ix_(labels < 0, labels >= 0)].min() >= rho - eta - 1e-6
    first = labels[mem_pursuit(query, memories, facts).order]
    assert sorted(first) == list(range(facts))


@quick
@given(
    st.sampled_from(sorted(set(KINDS) - {"broken rows", "overflowing norms", "huge norms"})),
    seeds,
    st.integers(1, 20),
)
def test_the_certificate_bounds_the_gap_to_the_full_pool(kind: str, seed: int, k: int) -> None:
    query, memories = case(kind, seed)
    path = mem_pursuit(query, memories, k)
    reached = objective(query.astype(np.float64), memories[path.order].astype(np.float64), path.weights, 1e-10)
    lower, upper = optimum_bounds(query, memories, 1e-10)
    assert path.certificate is not None
    assert reached - upper <= path.certificate + 1e-12
    assert upper - lower <= 1e-9
    if path.certificate == 0:
        assert reached <= upper + 1e-12


@quick
@given(kinds, seeds, st.integers(1, 40))
def test_a_stored_gram_changes_nothing(kind: str, seed: int, k: int) -> None:
    query, memories = case(kind, seed)
    plain = mem_pursuit(query, memories, k)
    with np.errstate(all="ignore"):
        products = gram_of(memories)
        rounded = products.astype(np.float32)
    for gram in (products, rounded):
        if kind == "overflowing norms" and gram is rounded:
            continue
        kept = mem_pursuit(query, memories, k, gram=gram)
        assert kept.order.tolist() == plain.order.tolist()
        assert kept.stop_reason == plain.stop_reason
        used = memories[plain.order].astype(np.float64)
        scale = max(1.0, float(np.abs(used).max()) ** 2)
        np.testing.assert_allclose(kept.weights @ used, plain.weights @ used, atol=2e-9 * scale)


@njit
def products(coarse: NDArray[np.int8], short: NDArray[np.int16]) -> tuple[int, ...]:
    return kernels._products(coarse, 0, 1, 2, 3, short)  # type: ignore[no-any-return]


@pytest.mark.parametrize("dim", [1, 31, 32, 33, 1536])
def test_a_copy_is_as_close_as_its_bound_says_and_its_products_are_exact(dim: int) -> None:
    """The bound is what lets 8 bits rule a memory out; the largest integers are where products would overflow."""
    rng = np.random.default_rng(dim)
    width = -(-dim // kernels.LANES) * kernels.LANES
    coarse, short = np.zeros((4, width), np.int8), np.empty(width, np.int16)
    rows = rng.standard_normal((4, dim)) * [[1.0], [1e-33], [0.0], [1e5]]
    rows[3, 0] = 3e6
    for row, copy in zip(rows.astype(np.float32), coarse, strict=True):
        row.setflags(write=False)
        step = kernels._copy_and_fetch(row, kernels._measure(row, row)[2], copy, row)
        assert np.abs(step * copy[:dim] - row.astype(np.float64)).max() <= kernels._HALF * step
        step = kernels._shorten(row, short)
        assert np.abs(step * short[:dim] - row.astype(np.float64)).max() <= kernels._HALF * step
        assert not short[dim:].any()
        assert list(products(coarse, short)) == (coarse.astype(np.int64) @ short.astype(np.int64)).tolist()
    flat = np.full(dim, -1, np.float32)
    flat.setflags(write=False)
    kernels._copy_and_fetch(flat, kernels._measure(flat, flat)[2], coarse[0], flat)
    kernels._shorten(flat, short)
    assert products(coarse, short)[0] == 127 * dim * int(np.abs(short).max()) < 2**31


def test_a_batch_is_its_questions_whatever_the_threads() -> None:
    rng = np.random.default_rng(5)
    cases = [case(kind, seed) for kind in ("wide cone",) for seed in range(24)]
    queries, pools = np.stack([q for q, _ in cases]), [m for _, m in cases]
    alone = [mem_pursuit(q, m, 20) for q, m in cases]
    for threads in (1, 2, 3, 7):
        for one, other in zip(alone, mem_pursuit_batch(queries, pools, 20, threads=threads), strict=True):
            assert_same(one, other)

    store = np.concatenate(pools[:3])
    rows = [rng.permutation(600)[: rng.integers(1, 200)] for _ in range(24)]
    apart = [mem_pursuit(q, store[r], 20) for q, r in zip(queries, rows, strict=True)]
    for threads in (1, 2, 5):
        for one, other in zip(apart, mem_pursuit_batch(queries, store, 20, rows=rows, threads=threads), strict=True):
            assert_same(one, other)
        kept = mem_pursuit_batch(queries, store, 20, rows=rows, gram=gram_of(store), threads=threads)
        assert [p.order.tolist() for p in kept] == [p.order.tolist() for p in apart]


def assert_same(one: Pursuit, other: Pursuit) -> None:
    for name in ("order", "weights", "residual_norms", "gains"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    assert (one.certificate, one.stop_reason) == (other.certificate, other.stop_reason)


def test_a_case_by_hand() -> None:
    """Query (1,1)/sqrt 2 among the axes: x first (tie, lower index), then y at equal weights; r = (c - 1/2)(1, 1)."""
    c = 1 / np.sqrt(2)
    path = mem_pursuit(np.array([c, c]), np.array([[1, 0], [0, 1], [-1, 0]]), 3)
    assert path.order.tolist() == [0, 1, 2]
    np.testing.assert_allclose(path.weights, [0.5, 0.5, 0], atol=1e-7)
    np.testing.assert_allclose(path.residual_norms, [np.sqrt(2 - 2 * c)] + [(c - 0.5) * np.sqrt(2)] * 2, atol=1e-7)
    np.testing.assert_allclose(path.gains, [2 * c - 1, 2 - 2 * c - 2 * (c - 0.5) ** 2, 0], atol=1e-7)
    assert path.certificate == 0
    assert path.stop_reason == "pool_exhausted"


def test_duplicates_enter_and_share_their_weight() -> None:
    query, rows = np.array([1, 0.2], np.float32), np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    path = mem_pursuit(query, rows, 3)
    assert sorted(path.order.tolist()) == [0, 1, 2]
    weights = path.weights[np.argsort(path.order)]
    np.testing.assert_allclose(weights[0], weights[1], atol=1e-5)


def test_rows_with_nan_or_infinity_are_never_selected() -> None:
    query, memories = case("broken rows", 1)
    path = mem_pursuit(query, memories, 100)
    assert sorted(path.order.tolist()) == np.flatnonzero(np.isfinite(memories).all(axis=1)).tolist()
    assert path.stop_reason == "pool_exhausted"
    nothing = mem_pursuit(query, np.full((4, 32), np.nan, np.float32), 3)
    assert (len(nothing.order), nothing.certificate, nothing.stop_reason) == (0, None, "pool_exhausted")


def test_empty_pools_and_empty_budgets_give_empty_paths() -> None:
    query, memories = case("wide cone", 0)
    empty = mem_pursuit(query, memories[:0], 5)
    assert (len(empty.order), empty.certificate, empty.stop_reason) == (0, None, "empty_pool")
    none = mem_pursuit(query, memories, 0)
    assert (len(none.order), none.certificate, none.stop_reason) == (0, None, "budget")
    assert mem_pursuit_batch(np.empty((0, 4), np.float32), [], 3) == []


def test_any_layout_and_type_is_read() -> None:
    query, memories = case("wide cone", 3)
    expected = mem_pursuit(query, memories, 20)
    wide = np.zeros((400, 768), np.float32)
    wide[::2, ::2] = memories
    for other in (
        np.asfortranarray(memories),
        memories.astype(np.float64),
        wide[::2, ::2],
        memories.tolist(),
    ):
        assert_same(expected, mem_pursuit(query.astype(np.float64), other, 20))
    frozen = memories.copy()
    frozen.flags.writeable = False
    assert_same(expected, mem_pursuit(query, frozen, 20))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"query": np.ones(3)}, "memories are 4-dimensional, the query has 3 dimensions"),
        ({"query": np.ones((1, 4))}, "query must have 1 dimension, not 2"),
        ({"memories": np.ones(4)}, "memories must have 2 dimensions, not 1"),
        ({"query": np.array([1, np.nan, 0, 0])}, "the query holds NaN"),
        ({"k": -1}, "k is -1"),
        ({"ridge": 0.0}, "ridge is 0.0"),
        ({"ridge": np.inf}, "ridge is inf"),
        ({"tau": -1e-3}, "tau is -0.001"),
        ({"patience": 0}, "patience is 0"),
        ({"gram": np.ones((2, 3))}, r"gram \(2, 3\) must be \(5, 5\)"),
    ],
)
def test_a_mistake_is_named(change: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"query": np.ones(4), "memories": np.ones((5, 4)), "k": 2}
    arguments |= change
    with pytest.raises(ValueError, match=message):
        mem_pursuit(arguments.pop("query"), arguments.pop("memories"), arguments.pop("k"), **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("mistake", [{"ridge": 0.0}, {"tau": -1.0}, {"patience": 0}])
def test_the_reader_refuses_a_mistake_before_it_reads(mistake: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(mistake))):
        MemPursuit(**mistake)  # type: ignore[arg-type]


def test_mistakes_in_a_batch_are_named() -> None:
    queries, store = np.ones((2, 4), np.float32), np.ones((5, 4), np.float32)
    with pytest.raises(ValueError, match=r"memories \(1 pools\) must match queries \(2\)"):
        mem_pursuit_batch(queries, [store], 2)
    with pytest.raises(ValueError, match="rows 0 to 5 must lie in a store of 5"):
        mem_pursuit_batch(queries, store, 2, rows=[[0, 5], [1]])
    with pytest.raises(ValueError, match="threads is 0"):
        mem_pursuit_batch(queries, [store, store], 2, threads=0)
    with pytest.raises(ValueError, match="needs rows"):
        mem_pursuit_batch(queries, [store, store], 2, gram=np.ones((5, 5)))


def test_the_kernels_cannot_allocate_and_calls_leave_nothing_behind() -> None:
    """Compiled without numba's memory manager an allocation is a compile error; Python's own traces stay flat."""
    assert kernels.pursue.targetoptions["_nrt"] is False
    query, memories = case("wide cone", 0)
    mem_pursuit(query, memories, 50)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(50):
            mem_pursuit(query, memories, 50)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 4_000
    assert peak - before < 20_000  # one result, not a workspace (that would be 60 kB and more)


def pool_of(memories: Rows) -> Pool:
    n = len(memories)
    zeros, counts = np.zeros(n), np.full(n, 10, np.int32)
    return Pool(
        tuple(f"r{i}" for i in range(n)), zeros, zeros, zeros, memories, counts, counts, counts, counts, zeros
    )  # fmt: skip


class NoAccess:
    def everything(self) -> tuple[tuple[str, ...], NDArray[np.integer]]:
        raise AssertionError("the reader needs nothing but the pool")


def test_the_reader_cuts_the_path_to_records_and_tokens() -> None:
    query, memories = case("wide cone", 2)
    pool, asked, access = pool_of(memories), Query("q", "?", query), NoAccess()
    path = mem_pursuit(query, memories, 20)
    ids = tuple(f"r{i}" for i in path.order)
    by_records = MemPursuit().read(asked, pool, Budget(records=20), access)
    assert (by_records.ids, by_records.stop_reason, by_records.calls) == (ids, "budget", 0)
    by_tokens = MemPursuit().read(asked, pool, Budget(records=20, tokens=75), access)
    assert (by_tokens.ids, by_tokens.stop_reason) == (ids[:7], "budget")
    assert by_tokens.gains is not None and len(by_tokens.gains) == 7
    adaptive = MemPursuit(tau=1e-2).read(asked, pool, Budget(records=200), access)
    assert adaptive.stop_reason == "adaptive" and adaptive.ids == ids[: len(adaptive.ids)]
    assert MemPursuit().read(asked, pool, Budget(), access).stop_reason == "pool_exhausted"
    assert MemPursuit().read(asked, pool_of(memories[:0]), Budget(records=3), access).stop_reason == "empty_pool"


def _is_access(access: Access) -> Access:
    return access


def test_the_stand_in_is_an_access() -> None:
    assert _is_access(NoAccess()).everything is not None

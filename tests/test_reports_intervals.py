"""Bootstrap intervals of means, against scipy, closed forms and a naive twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from reports.intervals import WEIGHTS_AT_ONCE, Floats, Integers, Means, bootstrap_means


def bootstrap(values: Floats, clusters: Integers | None = None, samples: int = 2000, seed: int = 3) -> Means:
    own = np.arange(len(values)) if clusters is None else clusters
    return bootstrap_means(values, own, samples=samples, rng=np.random.default_rng(seed))


def naive(column: Floats, clusters: Integers, samples: int, rng: np.random.Generator) -> tuple[float, float]:
    """Draw clusters with replacement, pool their rows, average what is defined."""
    codes = np.unique(clusters)
    draws = np.random.default_rng(int(rng.integers(2**63))).integers(0, len(codes), (samples, len(codes)))
    means = []
    for drawn in draws:
        pooled = np.concatenate([column[clusters == codes[i]] for i in drawn])
        if not np.isnan(pooled).all():
            means.append(np.nanmean(pooled))
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def test_intervals_equal_a_twin_that_resamples_rows_one_by_one() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((25, 3))
    values[rng.random((25, 3)) < 0.3] = np.nan
    clusters = rng.integers(0, 6, 25)
    found = bootstrap(values, clusters, samples=300, seed=11)
    twin = np.random.default_rng(11)
    by_question = [naive(values[:, 0], np.arange(25), 300, twin), naive(values[:, 0], clusters, 300, twin)]
    assert (found.low[0], found.high[0]) == pytest.approx(by_question[0])
    assert (found.cluster_low[0], found.cluster_high[0]) == pytest.approx(by_question[1])
    twin = np.random.default_rng(11)  # every column sees the same resamples
    assert (found.low[2], found.high[2]) == pytest.approx(naive(values[:, 2], np.arange(25), 300, twin))


def test_question_intervals_agree_with_scipy() -> None:
    values = np.random.default_rng(1).beta(2, 5, (200, 1))
    found = bootstrap(values, samples=20_000)
    theirs = stats.bootstrap(
        (values[:, 0],), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(2)
    ).confidence_interval
    assert found.low[0] == pytest.approx(theirs.low, abs=0.001)
    assert found.high[0] == pytest.approx(theirs.high, abs=0.001)


def test_question_interval_of_a_rate_is_the_binomial_quantile() -> None:
    values = np.array([1.0] * 30 + [0.0] * 70)[:, None]
    found = bootstrap(values, samples=50_000)
    assert found.low[0] == pytest.approx(stats.binom.ppf(0.025, 100, 0.3) / 100, abs=0.0101)
    assert found.high[0] == pytest.approx(stats.binom.ppf(0.975, 100, 0.3) / 100, abs=0.0101)


def test_two_clusters_give_the_interval_of_their_two_means() -> None:
    """Each of the two is drawn twice a quarter of the time, so the percentiles are the clusters' means."""
    values = np.array([0.0, 0.0, 1.0, 0.0])[:, None]
    found = bootstrap(values, np.array([4, 4, 9, 9]))
    assert (found.cluster_low[0], found.cluster_high[0], found.clusters[0]) == (0.0, 0.5, 2)


def test_questions_of_one_conversation_widen_its_interval_when_they_agree() -> None:
    values = np.repeat([0.0, 1.0, 1.0, 0.0, 1.0, 0.0], 40)[:, None]
    found = bootstrap(values, np.repeat(np.arange(6), 40))
    assert found.cluster_high[0] - found.cluster_low[0] > 4 * (found.high[0] - found.low[0])


def test_a_column_of_differences_is_the_difference_of_the_resampled_means() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.random(60), rng.random(60)
    clusters = rng.integers(0, 5, 60)
    found = bootstrap(np.column_stack([a, b, a - b, a - a]), clusters, samples=400, seed=8)
    draws = np.random.default_rng(int(np.random.default_rng(8).integers(2**63))).integers(0, 60, (400, 60))
    expected = np.quantile(a[draws].mean(1) - b[draws].mean(1), [0.025, 0.975])
    assert (found.low[2], found.high[2]) == pytest.approx(tuple(expected))
    assert found.low[3] == found.high[3] == found.cluster_low[3] == found.cluster_high[3] == 0.0


def test_undefined_rows_leave_the_denominator() -> None:
    found = bootstrap(np.array([[1.0], [np.nan], [0.0], [np.nan], [1.0]]), np.array([0, 0, 1, 1, 2]))
    assert (found.mean[0], found.n[0], found.clusters[0]) == (pytest.approx(2 / 3), 3, 3)


@pytest.mark.parametrize("column", [[np.nan, np.nan], [np.nan, 0.4]])
def test_fewer_than_two_defined_questions_have_no_interval(column: list[float]) -> None:
    found = bootstrap(np.array(column)[:, None], np.array([0, 1]))
    assert np.isnan([found.low[0], found.high[0], found.cluster_low[0], found.cluster_high[0]]).all()
    assert found.n[0] == np.isfinite(column).sum()


def test_one_conversation_has_a_question_interval_and_no_clustered_one() -> None:
    found = bootstrap(np.array([0.0, 1.0, 1.0, 0.0])[:, None], np.zeros(4, dtype=np.int64))
    assert found.low[0] < found.high[0]
    assert np.isnan(found.cluster_low[0])


def test_no_questions_and_no_columns_are_fine() -> None:
    assert np.isnan(bootstrap(np.empty((0, 2))).mean).all()
    assert bootstrap(np.empty((3, 0))).mean.shape == (0,)


def test_chunks_do_not_change_the_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(2).random((50, 7))
    clusters = np.arange(50) % 4
    whole = bootstrap(values, clusters, samples=101)
    monkeypatch.setattr("reports.intervals.WEIGHTS_AT_ONCE", 170)
    monkeypatch.setattr("reports.intervals.COLUMNS_AT_ONCE", 3)
    assert WEIGHTS_AT_ONCE != 170
    pieces = bootstrap(values, clusters, samples=101)
    assert np.allclose(whole.low, pieces.low, rtol=0, atol=1e-12)
    assert np.allclose(whole.cluster_high, pieces.cluster_high, rtol=0, atol=1e-12)


def test_other_columns_do_not_change_an_interval() -> None:
    values = np.random.default_rng(4).random((40, 5))
    alone, among = bootstrap(values[:, 3:4]), bootstrap(values)
    assert alone.low[0] == pytest.approx(among.low[3], abs=1e-12)


cells = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, float("nan")]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(cells, st.integers(0, 4)), min_size=1, max_size=30), st.integers(0, 2**32))
def test_intervals_lie_in_the_range_of_the_values(rows: list[tuple[float, int]], seed: int) -> None:
    values = np.array([value for value, _ in rows])[:, None]
    found = bootstrap(values, np.array([code for _, code in rows]), samples=80, seed=seed)
    known = values[~np.isnan(values)]
    for low, high in ((found.low[0], found.high[0]), (found.cluster_low[0], found.cluster_high[0])):
        if not np.isnan(low):
            assert known.min() - 1e-9 <= low <= high <= known.max() + 1e-9


@settings(max_examples=25, deadline=None)
@given(st.integers(20, 200), st.floats(0.1, 0.9), st.integers(0, 2**32))
def test_intervals_contain_the_mean(n: int, rate: float, seed: int) -> None:
    values = (np.random.default_rng(seed).random(n) < rate).astype(np.float64)[:, None]
    found = bootstrap(values, np.arange(n) % 7, samples=500, seed=seed)
    assert found.low[0] <= found.mean[0] <= found.high[0]
    assert found.cluster_low[0] <= found.mean[0] <= found.cluster_high[0]


@pytest.mark.parametrize(
    ("values", "clusters", "samples", "message"),
    [
        (np.zeros(3), np.zeros(3, dtype=np.int64), 10, "2-D"),
        (np.zeros((3, 1)), np.zeros(2, dtype=np.int64), 10, "one code for each of 3"),
        (np.zeros((3, 1)), np.zeros(3, dtype=np.int64), 0, "at least 1, got 0"),
    ],
)
def test_shapes_and_samples_are_checked(values: Floats, clusters: Integers, samples: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bootstrap_means(values, clusters, samples=samples, rng=np.random.default_rng(0))


def test_level_is_checked() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        bootstrap_means(np.zeros((2, 1)), np.arange(2), samples=1, rng=np.random.default_rng(0), level=95)


def test_bca_is_the_formula_over_a_twins_resamples_and_leave_one_out_means() -> None:
    rng = np.random.default_rng(6)
    values = rng.exponential(size=(30, 2))
    values[rng.random((30, 2)) < 0.2] = np.nan
    clusters = rng.integers(0, 7, 30)
    found = bootstrap(values, clusters, samples=400, seed=13)
    twin = np.random.default_rng(13)
    expected = [naive_bca(values[:, 1], own, 400, twin) for own in (np.arange(30), clusters)]
    assert (found.bca_low[1], found.bca_high[1]) == pytest.approx(expected[0])
    assert (found.cluster_bca_low[1], found.cluster_bca_high[1]) == pytest.approx(expected[1])


def naive_bca(column: Floats, clusters: Integers, samples: int, rng: np.random.Generator) -> tuple[float, float]:
    codes = np.unique(clusters)
    draws = np.random.default_rng(int(rng.integers(2**63))).integers(0, len(codes), (samples, len(codes)))
    groups = [column[clusters == code] for code in codes]
    means = np.array([np.nanmean(np.concatenate([groups[i] for i in drawn])) for drawn in draws])
    mean = np.nanmean(column)
    left = [np.nanmean(column[clusters != code]) for code in codes if not np.isnan(column[clusters == code]).all()]
    away = np.mean(left) - np.array(left)
    skew = (away**3).sum() / (6 * (away**2).sum() ** 1.5)
    means, mean = (
        means.round(12),
        mean.round(12),
    )  # every unit drawn once gives the mean, in whatever order it is summed
    bias = stats.norm.ppf(((means < mean).mean() + (means <= mean).mean()) / 2)
    shifted = bias + stats.norm.ppf([0.025, 0.975])
    low, high = np.quantile(means, stats.norm.cdf(bias + shifted / (1 - skew * shifted)))
    return float(low), float(high)


def test_bca_intervals_agree_with_scipy() -> None:
    values = np.random.default_rng(1).exponential(size=(80, 1))
    found = bootstrap(values, samples=20_000)
    theirs = stats.bootstrap(
        (values[:, 0],), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(2)
    ).confidence_interval
    assert (found.bca_low[0], found.bca_high[0]) == pytest.approx((theirs.low, theirs.high), abs=0.01)
    assert found.bca_high[0] > found.high[0] + 0.01  # the skew that a percentile interval misses


def test_a_column_that_never_varies_has_the_interval_of_its_value() -> None:
    found = bootstrap(np.full((20, 1), 1 / 3), np.arange(20) % 4)
    ends = (found.low, found.bca_low, found.bca_high, found.cluster_bca_low, found.cluster_bca_high)
    assert np.allclose(ends, 1 / 3, rtol=0, atol=1e-12)


def test_errors_are_those_of_a_mean_and_of_conversations_by_hand() -> None:
    """Means 1/2; residual sums of the conversations 1, -1 and 0: sqrt(3/2 * 2) / 6."""
    column = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0])
    found = bootstrap(column[:, None], np.array([0, 0, 1, 1, 2, 2]))
    assert found.error[0] == pytest.approx(stats.sem(column))
    assert found.cluster_error[0] == pytest.approx(np.sqrt(3) / 6)


def test_float32_changes_no_interval_of_whole_numbers_and_takes_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    values = np.column_stack([rng.integers(-1, 2, 300), rng.integers(0, 9_000_001, 300), rng.random(300)]) * 1.0
    clusters = rng.integers(0, 10, 300)
    narrow = bootstrap(values, clusters, samples=300)
    monkeypatch.setattr("reports.intervals.FLOAT32_WHOLE", 0)
    wide = bootstrap(values, clusters, samples=300)
    for name in ("low", "high", "bca_low", "bca_high", "cluster_low", "cluster_bca_high"):
        assert getattr(narrow, name) == pytest.approx(getattr(wide, name), rel=1e-14)

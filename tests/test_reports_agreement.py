"""Agreement and calibration against published cases, scikit-learn, scipy and simulation."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from reports.agreement import cohen_kappa, flip_rate, judges_by_arm, krippendorff_alpha, pairwise
from reports.calibration import Proportion, corrected, errors, rogan_gladen, wilson
from reports.diagnosis import DIAGNOSES, diagnosed, diagnosis_table, sufficiency_table

NAN = float("nan")
# Krippendorff's own example: four observers, twelve units, missing values (2011, section C).
PUBLISHED = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T


def test_alpha_of_krippendorffs_own_example() -> None:
    assert krippendorff_alpha(PUBLISHED, "nominal") == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(PUBLISHED, "interval") == pytest.approx(0.849, abs=5e-4)


def naive_alpha(values: np.ndarray, interval: bool) -> float:
    """Alpha pair by pair, from its definition."""

    def differ(a: float, b: float) -> float:
        return (a - b) ** 2 if interval else float(a != b)

    units = [[v for v in row if not np.isnan(v)] for row in values]
    units = [unit for unit in units if len(unit) >= 2]
    every = [v for unit in units for v in unit]
    within = sum(
        sum(differ(a, b) for i, a in enumerate(unit) for j, b in enumerate(unit) if i != j) / (len(unit) - 1)
        for unit in units
    ) / len(every)
    chance = sum(differ(a, b) for i, a in enumerate(every) for j, b in enumerate(every) if i != j)
    return 1 - within / (chance / (len(every) * (len(every) - 1)))


@pytest.mark.parametrize("interval", [False, True])
def test_alpha_is_its_definition_pair_by_pair(interval: bool) -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        values = rng.choice([0.0, 0.5, 1.0, NAN], size=(12, 3))
        found = krippendorff_alpha(values, "interval" if interval else "nominal")
        assert found == pytest.approx(naive_alpha(values, interval))


def test_kappa_is_scikit_learns() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        one = rng.integers(0, 3, 40).astype(float)
        other = np.where(rng.random(40) < 0.6, one, rng.integers(0, 3, 40))
        assert cohen_kappa(one, other) == pytest.approx(cohen_kappa_score(one, other))


def test_agreement_is_undefined_where_chance_alone_would_agree() -> None:
    ones = np.ones(5)
    assert cohen_kappa(ones, ones) is None
    assert krippendorff_alpha(np.ones((5, 2))) is None
    assert krippendorff_alpha(np.array([[1.0, NAN], [NAN, 0.0]])) is None
    assert cohen_kappa(np.array([NAN, 1.0]), np.array([1.0, NAN])) is None


def test_flip_rate_counts_items_whose_repeats_differ() -> None:
    assert flip_rate([[1, 1, 1], [1, 0, 1], [0, None, 0], [1, None, None], []]) == pytest.approx(1 / 3)
    assert flip_rate([[1], [None, 0]]) is None


@pytest.mark.parametrize(("k", "n"), [(0, 10), (10, 10), (3, 10), (163, 1540)])
def test_wilson_is_scipys(k: int, n: int) -> None:
    expected = binomtest(k, n).proportion_ci(method="wilson")
    found = wilson(k, n)
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_nothing_measured_has_no_rate() -> None:
    assert wilson(0, 0) == Proportion(0, 0, None, None)
    assert wilson(0, 0).rate is None


@given(st.integers(1, 200), st.data())
def test_rogan_gladen_of_a_perfect_judge_changes_nothing(n: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(0, n))
    found = rogan_gladen(wilson(k, n), wilson(0, 1000), wilson(0, 1000))
    assert found is not None
    assert found.value == pytest.approx(k / n)
    assert 0 <= found.low <= found.value <= found.high <= 1


def test_rogan_gladen_by_hand() -> None:
    # 70 % accepted with 10 % false accepts and 20 % false rejects: (0.7 - 0.1) / (1 - 0.1 - 0.2)
    found = rogan_gladen(wilson(70, 100), wilson(10, 100), wilson(20, 100))
    assert found is not None and found.value == pytest.approx(0.6 / 0.7)
    assert rogan_gladen(wilson(70, 100), wilson(60, 100), wilson(40, 100)) is None, "no better than chance"
    assert rogan_gladen(wilson(5, 100), wilson(30, 100), wilson(0, 100)).value == 0  # type: ignore[union-attr]
    assert rogan_gladen(wilson(70, 100), wilson(0, 0), wilson(20, 100)) is None


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_corrected_interval_holds_the_truth_as_often_as_it_says(share: float) -> None:
    rng = np.random.default_rng(11)
    accept, reject, trials = 0.15, 0.1, 2000
    seen = rng.binomial(300, share * (1 - reject) + (1 - share) * accept, trials)
    wrong, good = rng.binomial(150, accept, trials), rng.binomial(150, reject, trials)
    held = 0
    for k, a, r in zip(seen.tolist(), wrong.tolist(), good.tolist(), strict=True):
        found = rogan_gladen(wilson(k, 300), wilson(a, 150), wilson(r, 150))
        held += found is not None and found.low <= share <= found.high
    assert 0.935 <= held / trials <= 0.98


def test_error_rates_count_only_what_was_judged() -> None:
    rows = [
        ("good", 1.0), ("good", 0.75), ("good", None), ("specific", 0.0), ("specific", 0.5), ("vague", 1.0),
        ("unknown", 1.0),
    ]  # fmt: skip
    found = errors(pl.DataFrame(rows, schema={"truth": pl.String, "score": pl.Float64}, orient="row"))
    assert found.false_accept == {"specific": wilson(0.5, 2), "vague": wilson(1, 1)}
    assert found.false_reject == wilson(0.25, 2)
    assert found.unjudged == 1
    seen, estimate = corrected([1.0, None, 0.2, 0.9], found)
    assert seen == wilson(2.1, 4)
    assert estimate is not None and estimate.value == pytest.approx((2.1 / 4 - 0.25) / (1 - 0.25 - 0.125))
    assert corrected([1.0], found, "vague")[1] is None, "a judge that accepts all that is vague tells nothing"
    assert corrected([1.0], errors(pl.DataFrame({"truth": ["good"], "score": [1.0]})))[1] is None


def _verdicts(rows: list[tuple[str, str, str, str, float | None]]) -> pl.DataFrame:
    schema = {"arm": pl.String, "question_id": pl.String, "answer": pl.String, "judge": pl.String, "score": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(kind=pl.lit("single-hop"))


def test_one_table_shows_the_same_answers_under_all_judges() -> None:
    frame = _verdicts(
        [
            ("a", "q1", "x", "j", 1.0), ("a", "q2", "y", "j", None), ("b", "q1", "x", "j", 1.0),
            ("b", "q2", "z", "j", 0.0), ("a", "q1", "x", "k", 0.0), ("a", "q2", "y", "k", 0.8),
            ("b", "q1", "x", "k", 0.0), ("b", "q2", "z", "k", 0.2),
        ]
    )  # fmt: skip
    table = {(row["arm"], row["judge"]): row for row in judges_by_arm(frame).iter_rows(named=True)}
    assert table["a", "j"]["strict"] == 0.5 and table["a", "j"]["judged"] == 1.0
    assert (table["a", "j"]["n"], table["a", "j"]["n_judged"]) == (2, 1)
    assert table["a", "k"]["strict"] == pytest.approx(0.4)
    pair = pairwise(frame).row(0, named=True)
    assert (pair["one"], pair["other"], pair["n"]) == ("j", "k", 2), "x was given by two arms and counts once"
    assert pair["agreement"] == 0.5


def test_three_judges_have_a_row_for_all() -> None:
    rows = [("a", f"q{i}", "x", judge, float(i % 2)) for judge in "jkl" for i in range(6)]
    table = pairwise(_verdicts(rows))
    assert table["one"].to_list() == ["j", "j", "k", "all"]
    assert table["alpha_nominal"].to_list() == [1.0] * 4
    assert table["kappa"].to_list() == [1.0, 1.0, 1.0, None]


@pytest.mark.parametrize(
    ("sufficiency", "score", "complete", "expected"),
    [
        ("sufficient", 1.0, 1.0, "sound"),
        ("sufficient", 1.0, 0.0, "sound"),
        ("sufficient", 0.0, 0.0, "misread"),
        ("insufficient", 1.0, 1.0, "lucky"),
        ("insufficient", 0.0, 1.0, "insufficient"),
        ("insufficient", 0.0, 0.0, "absent"),
        ("insufficient", 0.0, None, "undecided"),
        ("insufficient", 1.0, None, "lucky"),
        ("uncertain", 1.0, 1.0, "undecided"),
        (None, 1.0, 1.0, "undecided"),
        ("sufficient", None, 1.0, "undecided"),
    ],
)
def test_every_cell_has_one_diagnosis(
    sufficiency: str | None, score: float | None, complete: float | None, expected: str
) -> None:
    schema = {"arm": pl.String, "kind": pl.String, "sufficiency": pl.String}
    schema |= {"score": pl.Float64, "complete_evidence": pl.Float64}  # type: ignore[dict-item]
    frame = pl.DataFrame([("a", "temporal", sufficiency, score, complete)], schema=schema, orient="row")
    assert diagnosed(frame)["diagnosis"].to_list() == [expected]
    row = diagnosis_table(frame).row(0, named=True)
    assert row[expected] == sum(row[name] for name in DIAGNOSES) == row["n"] == 1
    assert diagnosis_table(frame, apart=["temporal"]).is_empty()


def test_uncertain_leaves_the_denominator_and_is_counted() -> None:
    labels = ["sufficient", "insufficient", "insufficient", "uncertain", None]
    frame = pl.DataFrame({"arm": "a", "kind": "k", "sufficiency": labels})
    row = sufficiency_table(frame).row(0, named=True)
    assert row["share"] == pytest.approx(1 / 3)
    assert (row["n"], row["uncertain"], row["missing"]) == (5, 1, 1)

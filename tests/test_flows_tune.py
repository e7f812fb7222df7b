"""Parameters are chosen on other conversations than those that they are reported on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flows import protocol as protocols
from flows.tune import Search, choices
from storage.errors import InputError
from storage.lake import Lake
from tasks.grid import settings as grid_settings
from tests.conftest import conversation, write_locomo


@settings(deadline=None, max_examples=100)
@given(st.integers(2, 5), st.integers(1, 4), st.integers(0, 20), st.integers(0, 2**32 - 1))
def test_a_folds_choice_is_the_best_of_the_other_folds(count, columns, more, seed):
    rng = np.random.default_rng(seed)
    folds = np.concatenate([np.arange(count), rng.integers(0, count, more)])
    values = rng.integers(0, 3, (len(folds), columns)) / 2
    chosen, lead = choices(values, folds)
    for fold in range(count):
        rows = [row for row, own in zip(values.tolist(), folds, strict=True) if own != fold]
        means = [sum(row[column] for row in rows) / len(rows) for column in range(columns)]
        best = next(column for column in range(columns) if means[column] > max(means) - 1e-9)
        assert chosen[fold] == best
        rest = [mean for column, mean in enumerate(means) if column != best]
        assert lead[fold] == pytest.approx(means[best] - max(rest), abs=1e-9) if rest else np.isnan(lead[fold])


@given(st.integers(0, 2**32 - 1))
def test_what_a_fold_scores_does_not_change_its_own_choice(seed):
    rng = np.random.default_rng(seed)
    folds = np.repeat(np.arange(4), 5)
    values = rng.random((20, 6))
    before, _ = choices(values, folds)
    values[folds == 2] = rng.random((5, 6))
    assert choices(values, folds)[0][2] == before[2]


def test_a_grid_is_every_combination_in_order_without_repeats():
    found = grid_settings("locality(sigma=0.1)", ["rho=0.25,0.5,0.5", "gamma=0.0,1.0,1"])
    assert found == (
        "locality(rho=0.25, sigma=0.1)",
        "locality(rho=0.25, gamma=1.0, sigma=0.1)",
        "locality(sigma=0.1)",
        "locality(gamma=1.0, sigma=0.1)",
    )


@pytest.mark.parametrize(
    ("reader", "grid", "said"),
    [
        ("locality", [], "none found"),
        ("locality", ["rho"], "'rho' found"),
        ("locality", ["rho="], "'rho=' found"),
        ("locality", ["roh=1"], "did you mean rho"),
        ("locality(rho=1)", ["rho=2"], "rho once expected"),
        ("lokality", ["rho=2"], "did you mean locality"),
        ("locality", ["rho=-1"], "at least 0"),
    ],
)
def test_a_grid_that_the_reader_does_not_take_is_refused(reader, grid, said):
    with pytest.raises(InputError, match=said):
        grid_settings(reader, grid)


def test_held_out_figures_are_what_the_chosen_settings_find(server, tmp_path):
    from flows.tune import tune

    data = write_locomo(tmp_path / "x.json", *(conversation(name) for name in ("c1", "c2", "c3")))
    protocol = protocols.load("sample", {"data.path": str(data), "statistics.samples": 200})
    lake = str(Lake.open(tmp_path / "lake").root)
    forms = grid_settings("mmr", ["trade=0.0,0.5,1.0"])
    found = tune(protocol, lake, Search(forms, budget="k2"))
    assert [fold.conversations for fold in found.folds] == [("c1",), ("c2",), ("c3",)]
    assert sum(found.times_chosen.values()) == 3
    # The three conversations are alike, so every fold chooses alike and every figure is that of one conversation.
    assert len(found.times_chosen) == 1
    assert {(fold.questions, fold.value, fold.baseline) for fold in found.folds} == {
        (2, found.value.mean, found.baseline.mean)
    }
    assert found.difference.mean == pytest.approx(found.value.mean - found.baseline.mean)
    assert sum(count for count, _, _ in found.kinds.values()) == 6
    for search, said in (
        (Search(forms, metric="luck"), "'luck' found"),
        (Search(forms, store="x"), "'x' found"),
        (Search(("oracle",)), "sees no gold"),
        (Search(("rsc",), budget="C1", baseline="bfr_text"), "sees no gold"),
    ):
        with pytest.raises(InputError, match=said):
            tune(protocol, lake, search)

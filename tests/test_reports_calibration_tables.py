"""A judge's measured errors stand beside its scores, and correct them."""

from dataclasses import replace

import polars as pl

from reports.calibration import corrected, errors
from reports.calibration_tables import calibration_tables
from reports.tables import summarise
from tests.report_fixture import JUDGES, build_results


def test_errors_and_corrected_scores_are_those_of_the_planted_replies() -> None:
    plain = build_results()
    planted = pl.DataFrame(
        {"truth": ["good"] * 20 + ["specific"] * 20 + ["vague"] * 20, "score": [1.0] * 19 + [0.0] * 36 + [1.0] * 5}
    )
    made = replace(plain, calibrations={JUDGES[1]: errors(planted)})
    rates, scores = calibration_tables(made, summarise(made))
    (row,) = rates.blocks[0].rows
    assert [cell.value for cell in row.cells] == ["0.0", "25.0", "5.0", "0"]
    first = scores.blocks[0].rows[0]
    verdicts = plain.verdicts.filter(pl.col("arm") == first.label, pl.col("judge") == JUDGES[1])
    seen, by_vague = corrected(verdicts["score"].to_list(), made.calibrations[JUDGES[1]], "vague")
    assert by_vague is not None and seen.rate is not None
    assert first.cells[0].value == f"{100 * seen.rate:.1f}"
    assert first.cells[2].value == f"{100 * by_vague.value:.1f}" != first.cells[0].value


def test_without_measured_errors_there_is_no_table() -> None:
    plain = build_results(conversations=1, questions=3)
    assert calibration_tables(plain, summarise(plain)) == []

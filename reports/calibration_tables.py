"""How far are judged scores to be believed?"""

from collections.abc import Sequence

import polars as pl

from reports.calibration import WRONG, Errors, Estimate, Proportion, corrected
from reports.grid import begun
from reports.measures import Measure
from reports.results import Arm, Results
from reports.shown import Block, Head, Row, Shown, Table, interval, number_of
from reports.tables import BudgetGroup, Statistics, overall

_PERCENT = number_of(Measure("", "", "evidence"))


def calibration_tables(results: Results, statistics: Statistics) -> list[Table]:
    """The judges' measured errors, then each such judge's scores corrected by them; none where none was measured."""
    if not results.calibrations:
        return []
    return [_errors(results), *(_corrected(results, statistics, judge) for judge in results.calibrations)]


def scores_of(results: Results, judge: str) -> dict[str, Sequence[float | None]]:
    """Arm → a judge's scores over every expected cell of the overall row, None where it did not judge.

    An arm of which it has judged nothing at all has no scores.
    """
    asked = overall(results).select("question_id")
    verdicts = results.verdicts.filter(pl.col("judge") == judge).join(asked, on="question_id", how="semi")
    return dict(verdicts.filter(begun()).group_by("arm").agg("score").iter_rows())


def _errors(results: Results) -> Table:
    heads = [
        *(
            Head(f"Accepts {truth} wrong replies", f"mean score of planted replies, {truth} and wrong")
            for truth in WRONG
        ),
        Head("Rejects good replies", "what planted good replies lack to a score of 1, on average"),
        Head("Not judged", "planted replies without a score, count"),
    ]
    rows = []
    for judge, found in results.calibrations.items():
        rates = [found.false_accept.get(truth) for truth in WRONG]
        cells = [_proportion(rate) for rate in (*rates, found.false_reject)]
        rows.append(Row(judge, "", False, (*cells, Shown(f"{found.unjudged:,}"))))
    return Table("Errors of the judges on planted replies, %", tuple(heads), (Block("Judges", tuple(rows)),), "Judge")


def _corrected(results: Results, statistics: Statistics, judge: str) -> Table:
    heads = [
        Head("As judged", "strict: score over every expected cell, not judged counts as 0; Wilson's 95 % interval"),
        *(
            Head(f"Corrected by {truth}", f"Rogan-Gladen, by how often {truth} wrong replies are accepted")
            for truth in WRONG
        ),
    ]
    scores = scores_of(results, judge)
    blocks = [_block(results, judge, group, scores) for group in statistics.groups]
    return Table(f"{judge}: scores corrected for its errors, %", tuple(heads), tuple(blocks))


def _block(results: Results, judge: str, group: BudgetGroup, scores: dict[str, Sequence[float | None]]) -> Block:
    errors = results.calibrations[judge]
    return Block(group.words, tuple(_row(arm, scores.get(arm.label, []), errors) for arm in group.arms))


def _row(arm: Arm, scores: Sequence[float | None], errors: Errors) -> Row:
    seen, _ = corrected(scores, errors)
    cells = [_estimate(corrected(scores, errors, truth)[1]) for truth in WRONG]
    note = "uses gold, not ranked" if arm.uses_gold else ""
    return Row(arm.label, note, arm.uses_gold, (_proportion(seen), *cells))


def _proportion(found: Proportion | None) -> Shown:
    if found is None or found.rate is None:
        return Shown("–")
    return Shown(_PERCENT(found.rate), interval(found.low, found.high, _PERCENT, "–"), n=f"{found.n:,}")


def _estimate(found: Estimate | None) -> Shown:
    return (
        Shown("not possible")
        if found is None
        else Shown(_PERCENT(found.value), interval(found.low, found.high, _PERCENT, "–"))
    )

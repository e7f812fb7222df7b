"""How is what completion added shown, beside what the paper printed?"""

from collections.abc import Callable, Sequence

import polars as pl

from reports.completion import Completed, completed
from reports.published import published
from reports.results import Results
from reports.shown import Block, Head, Row, Shown, Table, gain, share
from reports.tables import budget_words, overall, series_of


def completion_tables(results: Results) -> list[Table]:
    """Before and after completion, then budget by budget; no table where nothing completes."""
    found = completed(results)
    if not found:
        return []
    tables = [_before_and_after(results, found)]
    several = [own for own in _by(found, lambda each: series_of(each.arm)).values() if len(own) > 1]
    return [*tables, _budget_points(results, several)] if several else tables


def _before_and_after(results: Results, found: Sequence[Completed]) -> Table:
    heads = [
        Head("First records", "records of the first set, mean"),
        Head("Gold Hit before", "of the first set"),
        Head("Gold Hit after", "of the whole evidence"),
        Head("Gained", "Gold Hit after less before, percentage points"),
        Head("Complete before", "all gold turns in the first set"),
        Head("Complete after", "all gold turns in the evidence"),
        Head("Gained", "Complete after less before, percentage points"),
        Head("Paper: Gold Hit before", "the published figure"),
        Head("Paper: after", "the published figure"),
    ]

    def row(own: Completed) -> Row:
        said = published().of(published().completion, results.reads, own.arm)
        cells = [Shown(f"{own.first_records:.1f}")]
        for measure in ("gold_hit", "complete_evidence"):
            cells += [share(own.before[measure]), share(own.after[measure]), gain(own.gained[measure])]
        return Row(own.arm.label, "", False, (*cells, _said(said.get("before")), _said(said.get("after"))))

    heads = heads if any(row(own).cells[-1].value != "–" for own in found) else heads[:-2]
    blocks = [
        Block(
            budget_words(own[0].arm),
            tuple(Row(each.label, "", False, each.cells[: len(heads)]) for each in map(row, own)),
        )
        for own in _by(found, lambda each: each.arm.held_to).values()
    ]
    n = max(own.after["gold_hit"].n for own in found)
    return Table(f"Before and after completion, % (n = {n:,})", tuple(heads), tuple(blocks))


def _budget_points(results: Results, series: Sequence[Sequence[Completed]]) -> Table:
    """What each budget realised, one block a reader."""
    asked = results.cells.join(overall(results), on="question_id", how="semi")
    cells = asked.group_by("arm").agg(pl.col("calls", "records").mean())
    realised = {arm: (calls, records) for arm, calls, records in cells.iter_rows()}
    heads = [
        Head("Calls", "access calls for a question, mean"),
        Head("Records", "in the evidence of a question, mean"),
        Head("Gold Hit", "any gold turn is in the evidence"),
        Head("Complete", "all gold turns are in the evidence"),
        Head("Paper: calls", "the published figure"),
        Head("Paper: records", "the published figure"),
        Head("Paper: complete", "the published figure"),
    ]

    def row(own: Completed) -> Row:
        said = published().of(published().budgets, results.reads, own.arm)
        calls, records = realised[own.arm.label]
        shown = (Shown(_decimals(calls)), Shown(_decimals(records)))
        shares = (share(own.after["gold_hit"]), share(own.after["complete_evidence"]))
        paper = (_decimals(said.get("calls")), _decimals(said.get("records")))
        return Row(
            own.arm.budget, "", False, (*shown, *shares, *map(Shown, paper), _said(said.get("complete_evidence")))
        )

    rows = [(series_of(own[0].arm), tuple(map(row, own))) for own in series]
    heads = heads if any(each.cells[-1].value != "–" for _, own in rows for each in own) else heads[:-3]
    blocks = [
        Block(name, tuple(Row(each.label, "", False, each.cells[: len(heads)]) for each in own), verbatim=True)
        for name, own in rows
    ]
    return Table("What each budget of completion realised", tuple(heads), tuple(blocks), "Budget")


def _by(found: Sequence[Completed], key: Callable[[Completed], str]) -> dict[str, list[Completed]]:
    parts: dict[str, list[Completed]] = {}
    for own in found:
        parts.setdefault(key(own), []).append(own)
    return parts


def _said(percentage: float | None) -> Shown:
    return Shown("–" if percentage is None else f"{percentage:.1f}")


def _decimals(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"

"""Which tables does a report show of its arms?"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from reports.comparisons import Comparison, Contrast
from reports.findings import points
from reports.folds import by_fold
from reports.grid import ALL
from reports.measures import REALISED, Measure
from reports.results import Arm, Results
from reports.shown import Block, Head, Row, Shown, Table, interval, number_of
from reports.tables import PRIMARY, BudgetGroup, Cell, Estimate, Statistics, mixed_group

OFFLINE = "offline"


def named(statistics: Statistics, family: str) -> list[Measure]:
    """The measures of a family."""
    return [each for each in statistics.measures if each.family == family]


def measure_table(
    caption: str,
    statistics: Statistics,
    columns: Sequence[Measure],
    groups: Sequence[BudgetGroup] | None = None,
    bare: Collection[str] = (),
) -> Table:
    """Arms of `groups` (all of them if None) by `columns`; those named in `bare` without intervals."""
    heads = [Head(measure.head, measure.definition) for measure in columns]

    def show(group: BudgetGroup, arm: Arm, place: int) -> tuple[Shown, Estimate]:
        measure = columns[place]
        found = statistics.estimates[Cell(arm.label, ALL, measure.name)]
        shown = _show(statistics, group, arm, ALL, measure)
        return (Shown(shown.value, n=shown.n) if measure.name in bare else shown), found

    return _table(caption, heads, statistics.groups if groups is None else groups, show)


CAPTIONS: Mapping[str, str] = {
    "records": "Equal records: evidence handed over, %",
    "tokens": "Equal tokens: evidence handed over, %",
    "completion": "Equal completion: evidence handed over, %",
    "none": "No budget: evidence handed over, %",
    "mixed": "Budgets mixed, as the protocol asks: evidence handed over, %",
}


def evidence_tables(results: Results, statistics: Statistics) -> list[Table]:
    """A table for each kind of bound, with what every arm realised; all bounds in one ranking only where asked for."""
    realised = [measure for measure in statistics.measures if measure.name in REALISED]
    columns = [*named(statistics, "evidence"), *realised]
    groups = [*statistics.groups, *([mixed_group(statistics)] if results.mix_budgets else [])]
    by_unit: dict[str, list[BudgetGroup]] = {}
    for group in groups:
        by_unit.setdefault(group.unit, []).append(group)
    return [measure_table(CAPTIONS[unit], statistics, columns, own, REALISED) for unit, own in by_unit.items()]


def fold_measures(results: Results, statistics: Statistics) -> list[Measure]:
    """Those shown fold by fold; none without folds."""
    shown = (PRIMARY, "gold_hit")
    return [each for name in shown for each in statistics.measures if each.name == name] if results.folds else []


def fold_table(results: Results, statistics: Statistics, measure: Measure) -> Table:
    """Each fold beside the pooled mean."""
    folds = by_fold(results, (measure.name,))
    heads = [Head("Pooled", measure.definition), *(Head(_unbroken(fold.conversations), "") for fold in folds)]

    def show(group: BudgetGroup, arm: Arm, place: int) -> tuple[Shown, Estimate]:
        if place == 0:
            found = statistics.estimates[Cell(arm.label, ALL, measure.name)]
            return _show(statistics, group, arm, ALL, measure), found
        own = folds[place - 1].found.get((arm.label, measure.name), Estimate())
        rivals = [folds[place - 1].found.get((each.label, measure.name), Estimate()).value for each in group.ranked]
        known = [value for value in rivals if value is not None]
        top = arm in group.ranked and len(known) > 1 and own.value == max(known) != min(known)
        return Shown(number_of(measure)(own.value), n=f"{own.n:,}", mark="best" if top else ""), own

    return _table(f"{measure.head} by fold, %", heads, statistics.groups, show)


def kind_table(results: Results, statistics: Statistics, measure: Measure) -> Table:
    """One measure, a column a kind of question."""
    kinds = (ALL, *results.kinds)
    heads = [Head(f"{kind} (apart)" if kind in results.apart else kind, "") for kind in kinds]

    def show(group: BudgetGroup, arm: Arm, place: int) -> tuple[Shown, Estimate]:
        found = statistics.estimates[Cell(arm.label, kinds[place], measure.name)]
        return _show(statistics, group, arm, kinds[place], measure), found

    label = f" ({OFFLINE})" if results.offline and measure.family == "judged" else ""
    return _table(f"{measure.head}{label} by category, %", heads, statistics.groups, show)


def difference_table(statistics: Statistics, comparisons: Mapping[Contrast, Comparison]) -> Table | None:
    """Arm minus hybrid at the same budget; None if no arm has a baseline."""
    columns = named(statistics, "evidence")
    heads = [Head(measure.head, measure.definition) for measure in columns]
    groups = [
        BudgetGroup(g.budget, g.unit, g.words, tuple(a for a in g.ranked if a.label in statistics.baselines), ())
        for g in statistics.groups
    ]

    def show(_: BudgetGroup, arm: Arm, place: int) -> tuple[Shown, Estimate]:
        compared = comparisons[Contrast(arm.label, statistics.baselines[arm.label], ALL, columns[place].name)]
        found = compared.difference
        mark = "" if found.value is None else compared.verdict
        value = points(found.value)
        by_question = interval(found.low, found.high, points, " to ")
        by_cluster = interval(found.cluster_low, found.cluster_high, points, " to ")
        return Shown(value, by_question, by_cluster, f"{found.n:,}", mark), found

    kept = [group for group in groups if group.ranked]
    return _table("Difference from hybrid, percentage points", heads, kept, show) if kept else None


def marked(table: Table | None, results: Results, statistics: Statistics) -> Table | None:
    """On a sealed split a comparison that was not declared says so."""
    sealing = results.sealing
    if table is None or sealing is None:
        return table

    def row(own: Row) -> Row:
        if sealing.is_declared(own.label, statistics.baselines[own.label]):
            return own
        return replace(own, note="; ".join(filter(None, [own.note, "exploratory"])))

    blocks = tuple(replace(block, rows=tuple(map(row, block.rows))) for block in table.blocks)
    return replace(table, blocks=blocks)


def _unbroken(names: Sequence[str]) -> str:
    """Names with hyphens at which no line may end."""
    return ", ".join(names).replace("-", "\u2011")


def score_measures(results: Results, statistics: Statistics) -> list[Measure]:
    """Strict scores of each judge, and those over judged cells where any arm's differ."""
    judged = named(statistics, "judged")
    chosen = []
    for strict, over_judged in zip(judged[::2], judged[1::2], strict=True):
        chosen.append(strict)
        pairs = [
            (statistics.estimates[Cell(a.label, ALL, m.name)].n for m in (strict, over_judged)) for a in results.arms
        ]
        if any(len(set(pair)) > 1 for pair in pairs):
            chosen.append(over_judged)
    return chosen


def score_table(results: Results, statistics: Statistics) -> Table | None:
    """Scores by judge; None where nobody judged."""
    columns = score_measures(results, statistics)
    caption = f"Scores of {OFFLINE} answers by {OFFLINE} judges, %" if results.offline else "Scores of answers, %"
    return measure_table(caption, statistics, columns) if columns else None


def _table(
    caption: str,
    heads: Sequence[Head],
    groups: Sequence[BudgetGroup],
    show: Callable[[BudgetGroup, Arm, int], tuple[Shown, Estimate]],
) -> Table:
    """Blocks of rows, with a column's n moved into its head where every row has the same."""
    found = {
        (arm.label, place): show(group, arm, place)
        for group in groups
        for arm in group.arms
        for place in range(len(heads))
    }
    counts = [{own.n for (_, at), (_, own) in found.items() if at == place} for place in range(len(heads))]
    shared = [f"{max(own, default=0):,}" if len(own - {0}) < 2 else "" for own in counts]
    stores = {arm.store for group in groups for arm in group.arms}

    def cell(arm: Arm, place: int) -> Shown:
        own = found[arm.label, place][0]
        return Shown(own.value, own.by_question, own.by_cluster, "" if shared[place] else own.n, own.mark)

    blocks = tuple(
        Block(
            group.words,
            tuple(
                Row(
                    arm.label,
                    _note(arm, stores),
                    arm.uses_gold,
                    tuple(cell(arm, place) for place in range(len(heads))),
                )
                for arm in group.arms
            ),
        )
        for group in groups
    )
    return Table(caption, tuple(Head(h.title, h.definition, n) for h, n in zip(heads, shared, strict=True)), blocks)


def _note(arm: Arm, stores: Collection[str]) -> str:
    notes = ["uses gold, not ranked"] if arm.uses_gold else []
    return "; ".join([*notes, f"store {arm.store}"] if len(stores) > 1 else notes)


def _show(statistics: Statistics, group: BudgetGroup, arm: Arm, kind: str, measure: Measure) -> Shown:
    found = statistics.estimates[Cell(arm.label, kind, measure.name)]
    number = number_of(measure)
    best = measure.ranks and arm.label in statistics.best(group, kind, measure.name)
    return Shown(
        number(found.value),
        interval(found.low, found.high, number, "–"),
        interval(found.cluster_low, found.cluster_high, number, "–"),
        f"{found.n:,}",
        "best" if best else "",
    )

"""How are paired comparisons shown?"""

from collections.abc import Iterator, Mapping, Sequence

from reports.comparisons import DECLARED, SECONDARY, Comparison, Contrast, declared
from reports.findings import chance, points
from reports.grid import ALL
from reports.measures import Measure
from reports.rates import EVERY, SUBSETS, Rate, subsets_of
from reports.results import Results
from reports.shown import Block, Head, Row, Shown, Table, interval, number_of
from reports.tables import BudgetGroup, Cell, Statistics

Compared = Mapping[Contrast, Comparison]
PAIRED_HEADS = (
    Head("n", "questions defined for both arms"),
    Head("Baseline", "mean of the baseline on them, %"),
    Head("Arm", "mean of the arm on them, %"),
    Head("Difference", "arm less baseline, points, with BCa intervals by question and by conversation"),
    Head("Won, lost", "questions on which the arm is higher, lower"),
    Head("p", "exact McNemar where the measure knows 0 and 1 alone, else sign-flip, by question"),
    Head("Holm p", "adjusted among the arms against one baseline by this measure, or among the kinds of one pair"),
    Head("Clustered p", "sign-flip of whole conversations, not adjusted"),
    Head("Effect", "Cohen's h of rates, d_z (mean / sd of the differences) of scores"),
    Head("Odds ratio", "questions won for each one lost; defined for rates where any is lost"),
    Head("Detectable", "smallest true difference that samples of this size show 4 times of 5, points"),
)


def paired_tables(results: Results, statistics: Statistics, comparisons: Compared, family: str) -> list[Table]:
    """A table a measure of a family, the protocol's own first: every arm against its baseline, over all questions."""
    known = {each.contrast.metric for each in comparisons.values() if each.p is not None}
    measures = [each for each in statistics.measures if each.family == family and each.name in known]
    ordered = sorted(measures, key=lambda measure: measure.name != results.metric)
    return [_paired_table(results, statistics, comparisons, measure) for measure in ordered]


def kinds_table(results: Results, statistics: Statistics, comparisons: Compared) -> Table | None:
    """The declared pair by kind of question, those of which a question is defined for both; None without a pair."""
    if not results.primary:
        return None
    baseline, arm = results.primary
    (measure,) = (each for each in statistics.measures if each.name == results.metric)
    found = {kind: comparisons.get(Contrast(arm, baseline, kind, measure.name)) for kind in results.kinds}
    rows = [Row(kind, "", False, paired_cells(own)) for kind, own in found.items() if own and own.difference.n]
    block = Block(f"{arm} against {baseline}", tuple(rows), verbatim=True)
    return Table(f"{_caption(results, measure)} by kind of question", PAIRED_HEADS, (block,), "Kind")


def subset_tables(
    results: Results,
    statistics: Statistics,
    comparisons: Compared,
    rates: Mapping[Cell, Mapping[str, Rate]],
    family: str,
) -> list[Table]:
    """All questions beside those without known wrong labels, by the protocol's measure and by each judge."""
    subsets = subsets_of(results)
    names = [results.metric, *(f"{judge}{end}" for judge in results.judges for end in ("_strict", "_judged"))]
    measures = [each for each in statistics.measures if each.name in names and each.family == family]
    if len(subsets) == 1:
        return []
    heads = [Head(*SUBSETS[subset]) for subset in subsets]
    heads += [Head(f"Difference: {SUBSETS[subset][0].lower()}", "arm less baseline, points") for subset in subsets]

    def row(label: str, is_ceiling: bool, measure: Measure) -> Row:
        own = rates[Cell(label, ALL, measure.name)]
        baseline = statistics.baselines.get(label, "")
        found = [comparisons.get(Contrast(label, baseline, ALL, measure.name, subset)) for subset in subsets]
        shown = [_rate(own[subset], measure) for subset in subsets]
        return Row(label, "uses gold, not ranked" if is_ceiling else "", is_ceiling, (*shown, *map(_gain, found)))

    return [
        Table(
            f"{_caption(results, measure)}, all questions and audited ones, %",
            tuple(heads),
            tuple(
                Block(group.words, tuple(row(arm.label, arm.uses_gold, measure) for arm in group.arms))
                for group in statistics.groups
            ),
        )
        for measure in measures
    ]


def _caption(results: Results, measure: Measure) -> str:
    return f"{measure.head} (offline)" if results.offline and measure.family == "judged" else measure.head


def _paired_table(results: Results, statistics: Statistics, comparisons: Compared, measure: Measure) -> Table:
    blocks = [
        Block(f"{group.words}, against {baseline}", tuple(_rows(comparisons, arms, baseline, measure)))
        for group in statistics.groups
        for baseline, arms in _by_baseline(statistics, group).items()
    ]
    for arm, baseline in dict.fromkeys((each.arm, each.baseline) for each in declared(results)):
        if statistics.baselines.get(arm) != baseline:
            rows = tuple(_rows(comparisons, [arm], baseline, measure))
            blocks.append(Block(f"Against {baseline}, as declared", rows, verbatim=True))
    return Table(_caption(results, measure), PAIRED_HEADS, tuple(block for block in blocks if block.rows))


def _by_baseline(statistics: Statistics, group: BudgetGroup) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for arm in group.ranked:
        if arm.label in statistics.baselines:
            found.setdefault(statistics.baselines[arm.label], []).append(arm.label)
    return found


def _rows(comparisons: Compared, arms: Sequence[str], baseline: str, measure: Measure) -> Iterator[Row]:
    for arm in arms:
        found = comparisons.get(Contrast(arm, baseline, ALL, measure.name, EVERY))
        if found is not None:
            yield Row(arm, "declared" if found.family in (DECLARED, SECONDARY) else "", False, paired_cells(found))


def paired_cells(found: Comparison) -> tuple[Shown, ...]:
    """A comparison as the cells of a row under `PAIRED_HEADS`."""
    percent = number_of(Measure("", "", "evidence"))
    effect = found.cohen_h if found.test == "mcnemar" else found.d_z
    by_question, by_cluster = (interval(*ends, points, " to ") for ends in (found.bca, found.cluster_bca))
    texts = (
        f"{found.wins:,}, {found.losses:,}",
        _p(found.p),
        _p(found.holm),
        _p(found.cluster_p),
        _signed(effect),
        "–" if found.odds_ratio is None else f"{found.odds_ratio:.2f}",
        "–" if found.detectable is None else f"{100 * found.detectable:.1f}",
    )
    return (
        Shown(f"{found.difference.n:,}"),
        Shown(percent(found.before)),
        Shown(percent(found.after)),
        Shown(points(found.difference.value), by_question, by_cluster, mark=_mark(found)),
        *(Shown(text) for text in texts),
    )


def _rate(found: Rate, measure: Measure) -> Shown:
    percent = number_of(measure)
    return Shown(percent(found.value), interval(found.low, found.high, percent, "–"), n=f"{found.n:,}")


def _gain(found: Comparison | None) -> Shown:
    if found is None:
        return Shown("–")
    ends = found.difference
    by_question = interval(ends.low, ends.high, points, " to ")
    by_cluster = interval(ends.cluster_low, ends.cluster_high, points, " to ")
    return Shown(points(ends.value), by_question, by_cluster, f"{ends.n:,}", _mark(found))


def _mark(found: Comparison) -> str:
    return "" if found.difference.value is None else found.verdict


def _p(p: float | None) -> str:
    return chance(p).removeprefix("= ")


def _signed(effect: float | None) -> str:
    return "–" if effect is None else f"{effect:+.2f}".replace("-", "−")

"""What does a reader of the report see, and where is it written?"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from reports.calibration_tables import calibration_tables
from reports.comparison_tables import kinds_table, paired_tables, subset_tables
from reports.comparisons import Comparison, Contrast, compare, comparison_rows
from reports.completion_tables import completion_tables
from reports.explorer import explorer_page
from reports.figures import draw
from reports.files import csv, inline, templates, write
from reports.findings import Finding, findings, points
from reports.folds import by_fold, fold_rows
from reports.kept import keep_cells
from reports.overview_figures import overview
from reports.published import published
from reports.rates import Rate, rate_rows, rates
from reports.results import EVIDENCE_METRICS, Arm, Results
from reports.shown import Block, Fact, Head, Row, Shown, Table, interval, number_of
from reports.tables import (
    ALL,
    PRIMARY,
    REALISED,
    BudgetGroup,
    Cell,
    Estimate,
    Measure,
    Statistics,
    clustered_rows,
    main_rows,
    mixed_group,
    summarise,
)

QUESTION = "Does the reader hand the agent enough evidence to answer?"
DIGEST = re.compile(r"(?:sha256:)?[0-9a-f]{40,64}")
SHORT_DIGEST = 16
OFFLINE = "offline"
PICTURES = ("cost", "differences", "kinds", "reuse", "agreement", "calibration")  # budgets are drawn as coverage


def write_report(results: Results, folder: Path) -> Mapping[str, Path]:
    """Write the report into `folder`, each file whole or not at all; returns what was written by name.

    Names: `report` and, of an open split, `questions` (html) and `cells` (parquet), `markdown`, `main`, `clustered`,
    `comparisons`, `rates` and, of a run with folds, `folds` (csv), one per figure (svg), and `cost_data`,
    `differences_data`, `kinds_data`, `reuse_data` (csv) of those that have any.
    Raises `ValueError` as `reports.tables.summarise` does, before anything is written.
    """
    statistics = summarise(results)
    comparisons, shares = compare(results), rates(results)
    figures = draw(results, statistics)
    pictures = overview(results, statistics, comparisons, PICTURES)
    view = _view(results, statistics, comparisons, shares, figures)
    view |= {"pictures": {own.name: (own, inline(own.svg)) for own in pictures}}
    pages = _templates()
    texts = {
        "report": ("report.html", pages.get_template("report.html.j2").render(view)),
        "markdown": ("report.md", pages.get_template("report.md.j2").render(view)),
        "main": ("main.csv", csv(main_rows(results, statistics))),
        "clustered": ("clustered.csv", csv(clustered_rows(results, statistics))),
        "comparisons": ("comparisons.csv", csv(comparison_rows(comparisons))),
        "rates": ("rates.csv", csv(rate_rows(shares))),
    }
    if results.sealing is None:  # the page tells questions and gold, which stay sealed in the lake
        texts["questions"] = ("questions.html", explorer_page(results))
    if results.folds:
        texts["folds"] = ("folds.csv", csv(fold_rows(results, tuple(EVIDENCE_METRICS))))
    texts |= {name: (f"{name}.svg", svg) for name, svg in figures.items()}
    texts |= {own.name: (f"{own.name}.svg", own.svg) for own in pictures}
    texts |= {f"{own.name}_data": (f"{own.name}.csv", csv(own.data)) for own in pictures}
    folder.mkdir(parents=True, exist_ok=True)
    written = {name: write(folder / file, text) for name, (file, text) in texts.items()}
    return written if results.sealing else {**written, "cells": keep_cells(results, folder)}


def _view(
    results: Results,
    statistics: Statistics,
    comparisons: Mapping[Contrast, Comparison],
    shares: Mapping[Cell, Mapping[str, Rate]],
    figures: Mapping[str, str],
) -> dict[str, Any]:
    found = findings(results, statistics, comparisons)
    return {
        "title": results.title,
        "question": QUESTION,
        "offline": results.offline,
        "summary": _summary(results),
        "results": _by_topic(found),
        "limits": [each.text for each in found if each.kind == "limit"],
        "samples": f"{results.samples:,}",
        "seed": results.seed,
        "evidence": _evidence_tables(results, statistics),
        "completion": completion_tables(results),
        "published": published().source,
        "folds": [_fold_table(results, statistics, measure) for measure in _fold_measures(results, statistics)],
        "differences": _marked(_difference_table(statistics, comparisons), results, statistics),
        "paired": paired_tables(results, statistics, comparisons, "evidence"),
        "paired_scores": paired_tables(results, statistics, comparisons, "judged"),
        "paired_kinds": kinds_table(results, statistics, comparisons),
        "subsets": subset_tables(results, statistics, comparisons, shares, "evidence"),
        "subset_scores": subset_tables(results, statistics, comparisons, shares, "judged"),
        "by_kind": [
            _kind_table(results, statistics, measure)
            for measure in sorted(_named(statistics, "evidence"), key=lambda m: m.name != PRIMARY)
        ],
        "cost": _measure_table(
            "Cost of a question",
            statistics,
            [*_named(statistics, "cost"), *_named(statistics, "count"), *_named(statistics, "latency")],
        ),
        "scores": _score_table(results, statistics),
        "calibration": calibration_tables(results, statistics),
        "scores_by_kind": [_kind_table(results, statistics, m) for m in _score_measures(results, statistics)],
        "evidence_terms": _terms(statistics, "evidence"),
        "cost_terms": [*_terms(statistics, "cost"), *_terms(statistics, "count"), *_terms(statistics, "latency")],
        "figures": {name: inline(svg) for name, svg in figures.items()},
        "reuse": [_fact(label, value) for label, value in results.reuse.items()],
        "timings": [Fact(stage, _duration(seconds)) for stage, seconds in results.timings.items()],
        "facts": [_fact(label, value) for label, value in results.facts.items()],
        "identity": [_digest(name, value) for name, value in results.identity.items()],
        "ceilings": [a.label for a in results.arms if a.uses_gold],
        "sealing": results.sealing.lines() if results.sealing else [],
    }


def _summary(results: Results) -> list[Fact]:
    conversations = results.questions["conversation_id"].n_unique()
    return [
        Fact("Run", results.name),
        Fact("Benchmark", results.benchmark),
        Fact("Split", results.split),
        Fact("Questions", f"{results.questions.height:,} in {conversations:,} conversations"),
        Fact("Arms", f"{len(results.arms):,}"),
    ]


def _by_topic(found: Sequence[Finding]) -> dict[str, list[str]]:
    topics: dict[str, list[str]] = {}
    for each in found:
        if each.kind == "result":
            topics.setdefault(each.topic, []).append(each.text)
    return topics


def _named(statistics: Statistics, family: str) -> list[Measure]:
    return [each for each in statistics.measures if each.family == family]


def _terms(statistics: Statistics, family: str) -> list[Fact]:
    return [Fact(each.head, each.definition) for each in _named(statistics, family)]


def _measure_table(
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


def _evidence_tables(results: Results, statistics: Statistics) -> list[Table]:
    """A table for each kind of bound, with what every arm realised; all bounds in one ranking only where asked for."""
    realised = [measure for measure in statistics.measures if measure.name in REALISED]
    columns = [*_named(statistics, "evidence"), *realised]
    groups = [*statistics.groups, *([mixed_group(statistics)] if results.mix_budgets else [])]
    by_unit: dict[str, list[BudgetGroup]] = {}
    for group in groups:
        by_unit.setdefault(group.unit, []).append(group)
    return [_measure_table(CAPTIONS[unit], statistics, columns, own, REALISED) for unit, own in by_unit.items()]


def _fold_measures(results: Results, statistics: Statistics) -> list[Measure]:
    shown = (PRIMARY, "gold_hit")
    return [each for name in shown for each in statistics.measures if each.name == name] if results.folds else []


def _fold_table(results: Results, statistics: Statistics, measure: Measure) -> Table:
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


def _kind_table(results: Results, statistics: Statistics, measure: Measure) -> Table:
    kinds = (ALL, *results.kinds)
    heads = [Head(f"{kind} (apart)" if kind in results.apart else kind, "") for kind in kinds]

    def show(group: BudgetGroup, arm: Arm, place: int) -> tuple[Shown, Estimate]:
        found = statistics.estimates[Cell(arm.label, kinds[place], measure.name)]
        return _show(statistics, group, arm, kinds[place], measure), found

    label = f" ({OFFLINE})" if results.offline and measure.family == "judged" else ""
    return _table(f"{measure.head}{label} by category, %", heads, statistics.groups, show)


def _difference_table(statistics: Statistics, comparisons: Mapping[Contrast, Comparison]) -> Table | None:
    """Arm minus hybrid at the same budget; None if no arm has a baseline."""
    columns = _named(statistics, "evidence")
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


def _marked(table: Table | None, results: Results, statistics: Statistics) -> Table | None:
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


def _score_measures(results: Results, statistics: Statistics) -> list[Measure]:
    """Strict scores of each judge, and those over judged cells where any arm's differ."""
    judged = _named(statistics, "judged")
    chosen = []
    for strict, over_judged in zip(judged[::2], judged[1::2], strict=True):
        chosen.append(strict)
        pairs = [
            (statistics.estimates[Cell(a.label, ALL, m.name)].n for m in (strict, over_judged)) for a in results.arms
        ]
        if any(len(set(pair)) > 1 for pair in pairs):
            chosen.append(over_judged)
    return chosen


def _score_table(results: Results, statistics: Statistics) -> Table | None:
    columns = _score_measures(results, statistics)
    caption = f"Scores of {OFFLINE} answers by {OFFLINE} judges, %" if results.offline else "Scores of answers, %"
    return _measure_table(caption, statistics, columns) if columns else None


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


def _fact(label: str, value: Any) -> Fact:
    return Fact(label, ", ".join(_plain(value)) or "–")


def _plain(value: Any) -> Iterator[str]:
    """A fact's value as words: numbers grouped, lists and mappings laid out, missing as a dash."""
    if isinstance(value, Mapping):
        for key, own in value.items():
            yield f"{key}: {', '.join(_plain(own))}"
    elif isinstance(value, (list, tuple, set, frozenset)):
        for own in value:
            yield from _plain(own)
    elif isinstance(value, bool):
        yield "yes" if value else "no"
    elif isinstance(value, int):
        yield f"{value:,}"
    elif isinstance(value, float):
        yield f"{value:,.4g}"
    else:
        yield "–" if value is None else str(value)


def _digest(name: str, value: str) -> Fact:
    text = str(value)
    if not DIGEST.fullmatch(text):
        return Fact(name, text)
    return Fact(name, text.removeprefix("sha256:")[:SHORT_DIGEST], text)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {seconds % 60:.0f} s"


def _templates() -> Environment:
    found = templates()
    found.filters["md"] = _markdown
    return found


def _markdown(text: str) -> Markup:
    """User text that can neither break out of a Markdown line or table cell nor open an HTML element."""
    inert = re.sub(r"([\\`*\[\]|])", r"\\\1", " ".join(str(text).split()))
    return Markup(inert.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))

"""What does a reader of the report see, and where is it written?"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reports.arm_tables import (
    difference_table,
    evidence_tables,
    fold_measures,
    fold_table,
    kind_table,
    marked,
    measure_table,
    named,
    score_measures,
    score_table,
)
from reports.calibration_tables import calibration_tables
from reports.comparison_tables import kinds_table, paired_tables, subset_tables
from reports.comparisons import Comparison, Contrast, compare, comparison_rows
from reports.completion_tables import completion_tables
from reports.explorer import explorer, write_explorer
from reports.facts import digest_fact, duration, fact
from reports.files import alone, csv, inline, templates, write
from reports.findings import Finding, findings
from reports.folds import fold_rows
from reports.kept import keep_cells
from reports.overview_figures import overview
from reports.published import published
from reports.rates import Rate, rate_rows, rates
from reports.results import EVIDENCE_METRICS, Results
from reports.shown import Fact
from reports.tables import PRIMARY, Cell, Statistics, clustered_rows, main_rows, summarise

QUESTION = "Does the reader hand the agent enough evidence to answer?"


def write_report(results: Results, folder: Path) -> Mapping[str, Path]:
    """Write the report into `folder`, each file whole or not at all; returns what was written by name.

    Names: `report` and, of an open split, `questions` (html), `details` (the folder of its scripts) and `cells`
    (parquet), `markdown`, `main`, `clustered`, `comparisons`, `rates` and, of a run with folds, `folds` (csv); for each
    figure of `reports.overview_figures.overview` its name (svg) and `…_data` (csv).
    Raises `ValueError` as `reports.tables.summarise` does, before anything is written.
    """
    statistics = summarise(results)
    comparisons, shares = compare(results), rates(results)
    pictures = overview(results, statistics, comparisons)
    view = _view(results, statistics, comparisons, shares)
    view |= {"pictures": {own.name: (own, inline(own.svg)) for own in pictures}}
    pages = templates()
    texts = {
        "report": ("report.html", pages.get_template("report.html.j2").render(view)),
        "markdown": ("report.md", pages.get_template("report.md.j2").render(view)),
        "main": ("main.csv", csv(main_rows(results, statistics))),
        "clustered": ("clustered.csv", csv(clustered_rows(results, statistics))),
        "comparisons": ("comparisons.csv", csv(comparison_rows(comparisons))),
        "rates": ("rates.csv", csv(rate_rows(shares))),
    }
    if results.folds:
        texts["folds"] = ("folds.csv", csv(fold_rows(results, tuple(EVIDENCE_METRICS))))
    texts |= {own.name: (f"{own.name}.svg", alone(own.svg)) for own in pictures}
    texts |= {f"{own.name}_data": (f"{own.name}.csv", csv(own.data)) for own in pictures}
    open_pages = None if results.sealing else explorer(results)  # questions and gold stay sealed in the lake
    folder.mkdir(parents=True, exist_ok=True)
    written = {name: write(folder / file, text) for name, (file, text) in texts.items()}
    if open_pages is None:
        return written
    return {**written, **write_explorer(open_pages, folder), "cells": keep_cells(results, folder)}


def _view(
    results: Results,
    statistics: Statistics,
    comparisons: Mapping[Contrast, Comparison],
    shares: Mapping[Cell, Mapping[str, Rate]],
) -> dict[str, Any]:
    found = findings(results, statistics, comparisons)
    completion = completion_tables(results)
    return {
        "title": results.title,
        "question": QUESTION,
        "offline": results.offline,
        "summary": _summary(results),
        "results": _by_topic(found),
        "limits": [each.text for each in found if each.kind == "limit"],
        "samples": f"{results.samples:,}",
        "seed": results.seed,
        "evidence": evidence_tables(results, statistics),
        "completion": completion,
        "published": published().source if any(table.quotes for table in completion) else "",
        "folds": [fold_table(results, statistics, measure) for measure in fold_measures(results, statistics)],
        "differences": marked(difference_table(statistics, comparisons), results, statistics),
        "paired": paired_tables(results, statistics, comparisons, "evidence"),
        "paired_scores": paired_tables(results, statistics, comparisons, "judged"),
        "paired_kinds": kinds_table(results, statistics, comparisons),
        "subsets": subset_tables(results, statistics, comparisons, shares, "evidence"),
        "subset_scores": subset_tables(results, statistics, comparisons, shares, "judged"),
        "by_kind": [
            kind_table(results, statistics, measure)
            for measure in sorted(named(statistics, "evidence"), key=lambda m: m.name != PRIMARY)
        ],
        "cost": measure_table(
            "Cost of a question",
            statistics,
            [*named(statistics, "cost"), *named(statistics, "count"), *named(statistics, "latency")],
        ),
        "scores": score_table(results, statistics),
        "calibration": calibration_tables(results, statistics),
        "scores_by_kind": [kind_table(results, statistics, m) for m in score_measures(results, statistics)],
        "evidence_terms": _terms(statistics, "evidence"),
        "cost_terms": [*_terms(statistics, "cost"), *_terms(statistics, "count"), *_terms(statistics, "latency")],
        "reuse": [fact(label, value) for label, value in results.reuse.items()],
        "timings": [Fact(stage, duration(seconds)) for stage, seconds in results.timings.items()],
        "facts": [fact(label, value) for label, value in results.facts.items()],
        "identity": [digest_fact(name, value) for name, value in results.identity.items()],
        "ceilings": [a.label for a in results.arms if a.uses_gold],
        "sealing": results.sealing.lines() if results.sealing else [],
    }


def _summary(results: Results) -> list[Fact]:
    conversations = results.questions["conversation_id"].n_unique()
    return [
        Fact("Run", results.name),
        Fact("Benchmark", results.reads),
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


def _terms(statistics: Statistics, family: str) -> list[Fact]:
    return [Fact(each.head, each.definition) for each in named(statistics, family)]

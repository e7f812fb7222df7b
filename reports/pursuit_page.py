"""What does a reader of a pursuit's analysis see, and where is it written?"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from markupsafe import Markup

from reports.files import csv, inline, templates, write
from reports.findings import percent, points, verdict
from reports.page import DIGEST, SHORT_DIGEST, Block, Fact, Head, Row, Shown, Table
from reports.pursuit_analysis import (
    CURVES,
    DIFFERENCE,
    OVERLAP_BUDGETS,
    PAIRS_GROUP,
    PAPER_GROUP,
    POLICIES,
    Found,
    Key,
    Study,
    budgets,
    estimate,
    estimate_rows,
    nested_curve,
    overall,
)
from reports.pursuit_figures import draw, preference_group
from reports.pursuit_findings import comparisons, number, readings, signed
from reports.pursuit_published import DIFFERS, OVERLAP, SETTING, SOURCE
from reports.tables import ALL, Estimate

Show = Callable[[float | None], str]


@dataclass(frozen=True)
class Section:
    """One figure with what is said of it. `first`: the head of its table's first column."""

    name: str
    title: str
    asked: str
    reading: str
    figure: Markup
    caption: str
    table: Table
    first: str
    differs: Sequence[str]


def write_analysis(study: Study, folder: Path) -> dict[str, Path]:
    """Write the analysis into `folder`, each file whole or not at all; returns what was written by name.

    Names: `analysis` (html), `overlap`, `curve`, `reconstruction`, `preference` (svg), `questions`, `summary`,
    `curve_data` (csv).
    """
    found, rows = estimate(study), overall(study)
    figures = draw(study, found)
    sections = _sections(study, found, rows, figures)
    page = templates().get_template("pursuit.html.j2").render(
        title=f"What the pursuit recalls: {study.title}",
        question="Does reconstruction by residual find the evidence that relevance misses?",
        source=SOURCE,
        summary=_summary(study),
        sections=sections,
        samples=f"{study.samples:,}",
        seed=study.seed,
        identity=[_digest(name, value) for name, value in study.identity.items()],
    )
    texts = {
        "analysis": ("analysis.html", page),
        **{name: (f"{name}.svg", svg) for name, svg in figures.items()},
        "questions": ("questions.csv", csv(study.rows)),
        "summary": ("summary.csv", csv(estimate_rows(found))),
        "curve_data": ("curve.csv", csv(nested_curve(rows))),
    }
    return {name: write(folder / file, text) for name, (file, text) in texts.items()}


def read_sentences(summary: pl.DataFrame) -> dict[str, str]:
    """The sentences of a written summary.csv, figure → sentence."""
    ends = ["value", "low", "high", "cluster_low", "cluster_high", "n", "clusters"]
    found = {
        Key(row["figure"], row["group"], row["measure"]): Estimate(*(row[end] for end in ends))
        for row in summary.iter_rows(named=True)
    }
    tabulated = {int(key.group[1:]) for key in found if key.figure == "curve" and key.group != "adaptive"}
    return readings(found, sorted(tabulated))

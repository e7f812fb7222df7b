"""What does a reader of a pursuit's analysis see, and where is it written?"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from reports.comparisons import verdict
from reports.facts import digest_fact
from reports.files import alone, csv, inline, templates, write
from reports.findings import percent, points
from reports.grid import ALL
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
    estimate_rows,
    nested_curve,
    overall,
)
from reports.pursuit_figures import draw, preference_group
from reports.pursuit_findings import comparisons, number, readings, signed
from reports.pursuit_published import DIFFERS, OVERLAP, OVERLAP_BENCHMARK, OVERLAP_NOTE, SETTING, SOURCE
from reports.shown import Block, Fact, Head, Row, Shown, Table
from reports.tables import Estimate

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


def write_analysis(study: Study, found: Found, folder: Path) -> dict[str, Path]:
    """Write the analysis into `folder`, each file whole or not at all; returns what was written by name.

    `found`: the study's `reports.pursuit_analysis.estimate`.

    Names: `analysis` (html), `overlap`, `curve`, `reconstruction`, `preference` (svg), `questions`, `numbers`,
    `curve_data` (csv).
    """
    rows = overall(study)
    figures = draw(study, found)
    sections = _sections(study, found, figures)
    page = (
        templates()
        .get_template("pursuit.html.j2")
        .render(
            title=f"What the pursuit recalls: {study.title}",
            question="Does reconstruction by residual find the evidence that relevance misses?",
            source=SOURCE,
            summary=_summary(study),
            sections=sections,
            samples=f"{study.samples:,}",
            seed=study.seed,
            identity=[digest_fact(name, value) for name, value in study.identity.items()],
        )
    )
    texts = {
        "analysis": ("analysis.html", page),
        **{name: (f"{name}.svg", alone(svg)) for name, svg in figures.items()},
        "questions": ("questions.csv", csv(study.rows)),
        "numbers": ("numbers.csv", csv(estimate_rows(found))),
        "curve_data": ("curve.csv", csv(nested_curve(rows))),
    }
    return {name: write(folder / file, text) for name, (file, text) in texts.items()}


def _sections(study: Study, found: Found, figures: Mapping[str, str]) -> list[Section]:
    rows = overall(study)
    said = readings(found, budgets(rows))
    drawn = preference_group(rows)
    printed = study.benchmark == OVERLAP_BENCHMARK
    text = {
        "overlap": (
            "Overlap and session coverage (figure 3)",
            "How many of hybrid's records does the pursuit replace, and what does the exchange do to gold sessions?",
            "Bars: this run, with 95 % intervals over conversations."
            + (" Hollow diamonds: the paper's LoCoMo figures, on another store and encoder." if printed else ""),
            _overlap_table(found, printed),
            "Reader",
        ),
        "curve": (
            "Every budget from one path (figure 4b)",
            "How does evidence grow with the budget, and where does the adaptive path stop?",
            "Lines: share of questions whose first K records hold all gold turns, all gold sessions. Bars: 95 % "
            f"intervals over conversations. Stars: mean size at which the adaptive path stops ({study.adaptive}), and "
            "hybrid cut to the same sizes question by question.",
            _curve_table(found, budgets(rows)),
            "Reader",
        ),
        "reconstruction": (
            "Gold against as many of hybrid (figure 7)",
            "Do gold records lie closer to the question than as many of hybrid's, each set refitted?",
            "One advantage a question, Eq. 28; both sets refitted over the simplex. Questions whose sets are equal "
            "have an advantage of exactly 0 and are not drawn.",
            _reconstruction_table(found),
            "Questions",
        ),
        "preference": (
            "Preference for what is missing (figure 8)",
            "With one gold record held, does the residual score prefer the gold that is missing?",
            f"One mean difference a question, Eq. 29, |S| = 1. Questions: {drawn}.",
            _preference_table(found),
            "Questions",
        ),
    }
    ours = "Here: " + "; ".join(f"{label} {value}" for label, value in study.setting.items()) + "."
    return [
        Section(
            name,
            title,
            asked,
            said[name],
            inline(figures[name]),
            caption,
            table,
            first,
            (f"{SETTING} {ours}", *DIFFERS[name]),
        )
        for name, (title, asked, caption, table, first) in text.items()
    ]


def _overlap_table(found: Found, is_printed: bool) -> Table:
    measures = {"session recall": "Gold sessions found", "complete sessions": "All gold sessions"}
    heads = (Head("Replaced", "share of hybrid's records that the pursuit's do not hold"), *_heads(measures.values()))

    def block(k: int) -> Block:
        def row(policy: str) -> Row:
            replaced = found[Key("overlap", f"k{k}", "replaced")] if policy == "mem_pursuit" else None
            cells = [_cell(replaced, _share)] + [
                _cell(found[Key("overlap", f"k{k}", f"{policy} {measure}")], _share) for measure in measures
            ]
            return Row(policy, "", False, tuple(cells))

        def published(policy: str) -> Row:
            names = ["replaced" if policy == "mem_pursuit" else "", *(f"{policy} {measure}" for measure in measures)]
            values = [OVERLAP.get((f"k{k}", name)) for name in names]
            shown = tuple(Shown("" if value is None else _share(value)) for value in values)
            return Row(f"{policy}, published", OVERLAP_NOTE, True, shown)

        difference = [found[Key("overlap", f"k{k}", f"{DIFFERENCE} {measure}")] for measure in measures]
        minus = Row("mem_pursuit − hybrid, points", "", False, (Shown(""), *map(_difference, difference)))
        return Block(f"{k} records", (*map(row, POLICIES), minus, *(map(published, POLICIES) if is_printed else ())))

    return Table("Replaced records and gold sessions, %", heads, tuple(block(k) for k in OVERLAP_BUDGETS))


def _curve_table(found: Found, at: Sequence[int]) -> Table:
    def block(group: str, words: str) -> Block:
        rows = [
            Row(
                policy,
                "",
                False,
                tuple(_cell(found[Key("curve", group, f"{policy} {own}")], _share) for own in CURVES.values()),
            )
            for policy in POLICIES
        ]
        minus = tuple(_difference(found[Key("curve", group, f"{DIFFERENCE} {own}")]) for own in CURVES.values())
        return Block(words, (*rows, Row("mem_pursuit − hybrid, points", "", False, minus)))

    size = found[Key("curve", "adaptive", "records")]
    ends = f" (95 % interval {number(size.low, 1)}–{number(size.high, 1)} by question)" if size.low is not None else ""
    blocks = [block(f"k{k}", f"{k} records") for k in at]
    blocks.append(block("adaptive", f"adaptive: {number(size.value, 1)} records on average{ends}"))
    return Table(
        "Evidence held by the first records, %", _heads(["All gold turns", "All gold sessions"]), tuple(blocks)
    )


def _reconstruction_table(found: Found) -> Table:
    columns: Mapping[str, tuple[str, Show]] = {
        "gold closer": ("Gold closer, %", _share),
        "hybrid closer": ("Hybrid closer, %", _share),
        "equal": ("Equal, %", _share),
        "mean advantage": ("Mean advantage", signed),
        "gold residual": ("Gold residual", _three),
        "hybrid residual": ("Hybrid residual", _three),
    }
    first = (ALL, "one gold record", PAIRS_GROUP, "all gold records in the pool")
    return _group_table("Residuals of gold and of as many hybrid records", "reconstruction", first, columns, found)


def _preference_table(found: Found) -> Table:
    columns: Mapping[str, tuple[str, Show]] = {
        "missing preferred": ("Missing preferred, %", _share),
        "comparator preferred": ("Comparator preferred, %", _share),
        "mean preference": ("Mean difference", signed),
        "mean by cosine alone": ("By query cosine alone", signed),
        "added by the residual": ("Added by the residual", signed),
    }
    return _group_table(
        "Missing gold against the most similar other record", "preference", (PAPER_GROUP, PAIRS_GROUP), columns, found
    )


def _group_table(
    caption: str, figure: str, first: Sequence[str], columns: Mapping[str, tuple[str, Show]], found: Found
) -> Table:
    """A row a group of questions: the named ones, then the kinds."""
    groups = list(dict.fromkeys(key.group for key in found if key.figure == figure))

    def row(group: str) -> Row:
        cells = tuple(_cell(found[Key(figure, group, name)], show) for name, (_, show) in columns.items())
        note = f"{comparisons(found, group):,} comparisons" if figure == "preference" else ""
        return Row(group, note, False, cells)

    kinds = tuple(row(group) for group in groups if group not in first)
    blocks = [Block("overall", tuple(map(row, first))), *([Block("by category", kinds)] if kinds else [])]
    return Table(caption, _heads(title for title, _ in columns.values()), tuple(blocks))


def _cell(own: Estimate | None, show: Show) -> Shown:
    if own is None:
        return Shown("")
    return Shown(
        show(own.value), _range(own.low, own.high, show), _range(own.cluster_low, own.cluster_high, show), f"{own.n:,}"
    )


def _difference(own: Estimate) -> Shown:
    shown = _cell(own, points)
    mark = "" if own.value is None else verdict(own)
    return Shown(shown.value, shown.by_question, shown.by_cluster, shown.n, mark)


def _range(low: float | None, high: float | None, show: Show) -> str:
    """Empty also where both ends are one value: there resampling cannot show any uncertainty."""
    return "" if low is None or high is None or low == high else f"{show(low)} to {show(high)}"


def _heads(titles: Iterable[str]) -> tuple[Head, ...]:
    return tuple(Head(title, "") for title in titles)


def _share(value: float | None) -> str:
    return percent(value).removesuffix(" %")


def _three(value: float | None) -> str:
    return number(value, 3)


def _summary(study: Study) -> list[Fact]:
    conversations = study.rows["conversation_id"].n_unique()
    return [
        Fact("Run", study.name),
        Fact("Benchmark", study.benchmark),
        Fact("Split", study.split),
        Fact("Questions with gold", f"{study.rows.height:,} of {study.questions:,} in {conversations:,} conversations"),
        *(Fact(label, value) for label, value in study.setting.items()),
    ]

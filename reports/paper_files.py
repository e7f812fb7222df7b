"""How are the papers' tables written beside this run's numbers?"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import polars as pl
from jinja2 import Environment
from markupsafe import Markup

from reports.drawing import Figure
from reports.files import csv, inline, templates, write
from reports.paper_tables import UNPUBLISHED, PaperCell, PaperTable

FORMATS = ("html", "md", "csv", "latex")
NONE, NOT_PUBLISHED = "–", "n/p"
NOTATION = (
    "Each cell: this run [95 % interval] / the paper (difference). n/p: not published. Letters say why none is here."
)
TEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "−": "$-$", "–": "--", "τ": r"$\tau$", "×": r"$\times$", "≥": r"$\geq$", "≤": r"$\leq$",
}  # fmt: skip


@dataclass(frozen=True)
class ShownCell:
    """A cell as text. `mark`: the letter of what is to be said of it, which `why` says; empty where nothing is."""

    ours: str
    interval: str
    published: str
    difference: str
    mark: str
    why: str
    arm: str


@dataclass(frozen=True)
class ShownTable:
    """`rows`: (label, cells). `whys`: letter → reason."""

    table: PaperTable
    number: str
    rows: tuple[tuple[str, tuple[ShownCell, ...]], ...]
    whys: Mapping[str, str]
    reading: str


def write_tables(
    tables: Sequence[PaperTable],
    figures: Sequence[Figure],
    formats: Sequence[str],
    folder: Path,
    title: str,
    summary: Mapping[str, str],
) -> dict[str, Path]:
    """Write tables in the given `FORMATS` and figures into `folder`, each file whole or not at all.

    Returns name → path: `tables.html` holds all; `bfr.table16.md`, `.csv`, `.tex` one table each; a figure has its
    `.svg`, `.png` and `.csv`, and one that is called as a table stands above it.
    """
    shown = [show(table) for table in tables]
    pages = _templates()
    drawn = [(figure, inline(figure.svg)) for figure in figures]
    above = {figure.name: (figure, svg) for figure, svg in drawn if figure.name in {table.name for table in tables}}
    view: dict[str, Any] = {"title": title, "summary": summary, "notation": NOTATION, "above": above}
    view["figures"] = [each for each in drawn if each[0].name not in above]
    texts = {}
    if "html" in formats:
        texts["tables.html"] = pages.get_template("paper_tables.html.j2").render(view, tables=shown)
    for name, ending in (("md", "md"), ("latex", "tex")):
        if name in formats:
            page = pages.get_template(f"paper_table.{ending}.j2")
            texts |= {f"{own.table.name}.{ending}": page.render(view, own=own) for own in shown}
    if "csv" in formats:
        texts |= {f"{table.name}.csv": csv(cell_rows(table)) for table in tables}
    folder.mkdir(parents=True, exist_ok=True)
    paths = {name: write(folder / name, text) for name, text in texts.items()}
    return paths | {name: path for each in figures for name, path in each.write(folder).items()}


def cell_rows(table: PaperTable) -> pl.DataFrame:
    """A row for every cell of a table: `table, row, column, arm, ours, low, high, n, published, difference, why`."""
    rows = []
    for label, cells in table.rows:
        for head, cell in zip(table.heads, cells, strict=True):
            number = (cell.ours, cell.low, cell.high, cell.n or None, cell.published, cell.difference)
            rows.append((table.name, label, head, cell.arm or None, *number, _said(cell) or None))
    names = ("table", "row", "column", "arm", "ours", "low", "high", "n", "published", "difference", "why")
    text = ("table", "row", "column", "arm", "why")
    kinds = {name: pl.String if name in text else pl.Int64 if name == "n" else pl.Float64 for name in names}
    return pl.DataFrame(rows, schema=kinds, orient="row")


def show(table: PaperTable) -> ShownTable:
    """A table as text, with a letter for each reason."""
    reasons = list(dict.fromkeys(cell.why for cell in table.cells if cell.why))
    letters = {why: _letter(i) for i, why in enumerate(reasons)}
    columns = [[cells[j] for _, cells in table.rows] for j in range(len(table.heads))]
    numbers = [_number(column, head) for column, head in zip(columns, table.heads, strict=True)]
    rows = tuple(
        (label, tuple(_shown(cell, number, letters) for cell, number in zip(cells, numbers, strict=True)))
        for label, cells in table.rows
    )
    number = table.name.partition(".")[2]
    return ShownTable(
        table,
        re.sub(r"^([a-z]+)(\d+\w?)$", lambda own: f"{own[1].capitalize()} {own[2]}", number),
        rows,
        {letter: why for why, letter in letters.items()},
        reading(table),
    )


def reading(table: PaperTable) -> str:
    """One sentence: how many published numbers have ours beside them, and how far apart the furthest two are."""
    published = [cell for cell in table.cells if cell.published is not None]
    beside = [
        (label, head, cell)
        for label, cells in table.rows
        for head, cell in zip(table.heads, cells, strict=True)
        if cell.difference is not None
    ]
    if not published:
        return "The paper's numbers are not published, or not at hand."
    if not beside:
        return f"None of {len(published):,} published numbers has one of this run beside it."
    label, head, cell = max(beside, key=lambda own: abs(own[2].difference or 0.0))
    show_it = _number([cell], head)
    has, it = ("has", "it") if len(beside) == 1 else ("have", "them")
    return (
        f"{len(beside):,} of {len(published):,} published numbers {has} one of this run beside {it}; the furthest "
        f"apart is {head} of {label}: {show_it(cell.ours)} against {show_it(cell.published)}."
    )


def _shown(cell: PaperCell, number: Callable[[float | None], str], letters: Mapping[str, str]) -> ShownCell:
    sides = cell.low is not None and cell.high is not None and cell.low != cell.high
    return ShownCell(
        number(cell.ours),
        f"{number(cell.low)}–{number(cell.high)}" if sides else "",
        NOT_PUBLISHED if cell.published is None else number(cell.published),
        "" if cell.difference is None else _signed(number, cell.difference),
        letters.get(cell.why, ""),
        cell.why,
        cell.arm,
    )


def _said(cell: PaperCell) -> str:
    """What there is to say of a cell: of ours, and of theirs where it is not published."""
    return "; ".join(filter(None, [cell.why, UNPUBLISHED if cell.published is None else ""]))


def _number(cells: Sequence[PaperCell], head: str) -> Callable[[float | None], str]:
    """How a column's numbers are shown: with as many decimals as the paper prints; p with two digits."""
    printed = [str(cell.published).partition(".")[2] for cell in cells if cell.published is not None]
    places = max((len(own.rstrip("0")) for own in printed), default=1)
    whole = head in ("n", "Questions")

    def text(value: float | None) -> str:
        if value is None:
            return NONE
        if re.search(r"\bp$", head):
            return f"{value:.2g}"
        rounded = round(value, 0 if whole else max(1, min(places, 2))) + 0.0  # no −0.0
        return f"{rounded:.{0 if whole else max(1, min(places, 2))}f}".replace("-", "−")

    return text


def _signed(number: Callable[[float | None], str], difference: float) -> str:
    text = number(difference)
    return text if text.startswith(("−", "-")) or not text.strip("0.") else f"+{text}"


def _letter(place: int) -> str:
    """a, b, …, z, aa, ab, …"""
    return ("" if place < 26 else _letter(place // 26 - 1)) + ascii_lowercase[place % 26]


def _templates() -> Environment:
    found = templates()
    found.filters["tex"] = _tex
    return found


def _tex(text: Any) -> Markup:
    """Text that LaTeX sets as it stands; what stands between backticks is typed."""
    plain = "".join(TEX.get(each, each) for each in " ".join(str(text).split()))
    return Markup(re.sub(r"`([^`]*)`", r"\\texttt{\1}", plain))

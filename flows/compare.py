"""Whether two runs may be put side by side, and how they then differ, question by question."""

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from flows.protocol import Protocol
from reports.compare_page import Setting, Side, write_page
from reports.comparisons import Comparison, Contrast, compare_runs
from reports.kept import kept_cells
from storage.errors import InputError
from storage.lake import Lake
from storage.places import place, read_whole
from tasks.plan import Plan

FIELDS = ("benchmark", "data", "gold", "split", "denominators", "answerer", "judges", "sufficiency", "budgets", "seed")
"""What must be equal before numbers of two runs are compared, in the order of being looked at."""
DIGEST = re.compile(r"[0-9a-f]{16}|[0-9a-f]{64}")


class Unequal(NamedTuple):
    """A field in which two runs differ."""

    field: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.field}: {self.first} and {self.second}"


class Compared(NamedTuple):
    """Two runs side by side.

    `rows`: `arm, k, kind, metric, first, second, difference, n, n_second` of both main tables. `despite`: the fields
    passed over. `folders` of the reports, `said`: their `comparable`. `sides`: with the cells that each report kept.
    `paired`: tests on common questions; empty where either kept no cells or nothing is in common. `made`: what else
    the runs were made from and differs, by the names of a report's protocol and digests.
    """

    rows: pl.DataFrame
    despite: list[Unequal]
    folders: tuple[Path, Path]
    said: tuple[dict[str, Any], dict[str, Any]]
    sides: tuple[Side, Side]
    paired: Mapping[Contrast, Comparison]
    made: list[Unequal]


def comparable(protocol: Protocol, plan: Plan) -> dict[str, Any]:
    """The values of `FIELDS` of a run, kept in its report's summary. Prompts are part of the answerer and judges."""
    return {
        "benchmark": plan.benchmark,
        "data": plan.dataset,
        "gold": plan.gold,
        "split": plan.split,
        "denominators": {**protocol.declared["denominators"], "questions": len(plan.questions())},
        **plan.parts(),
        "budgets": sorted({arm.budget for arm in plan.arms}),
        "seed": plan.seed,
    }


def compare(first: str, second: str, lake: str, despite: Collection[str] = ()) -> Compared:
    """Two runs' main tables joined on their common rows and, where both kept their cells, paired by question.

    A run is a report's folder, or its name in the lake. Raises `InputError` for a run that is not there, and names the
    first field of `FIELDS` that is unequal and not in `despite`.
    """
    wrong = sorted(set(despite) - set(FIELDS))
    if wrong:
        raise InputError(f"--despite: one of {', '.join(FIELDS)} expected, {wrong[0]!r} found")
    folders = _folder(first, lake), _folder(second, lake)
    summaries = _summary(folders[0]), _summary(folders[1])
    said = dict(summaries[0]["comparable"]), dict(summaries[1]["comparable"])
    unequal = [
        Unequal(name, *(_brief(each.get(name)) for each in said))
        for name in FIELDS
        if said[0].get(name) != said[1].get(name)
    ]
    for each in unequal:
        if each.field not in despite:
            raise InputError(
                f"compare: equal {each.field} expected, {each.first} and {each.second} found; these numbers do not "
                f"compare (to print them so marked: --despite {each.field})"
            )
    rows = _joined(*folders)
    sides = _side(folders[0]), _side(folders[1])
    return Compared(rows, unequal, folders, said, sides, _paired(*sides), _made(*summaries))


def page(found: Compared, folder: Path | None = None) -> Path:
    """Write the page of a comparison beside the second run's report, or into a folder; returns its path."""
    first, second = (each.name for each in found.folders)
    passed = {each.field for each in found.despite}
    one, other = found.said
    settings = [Setting(name, _brief(one.get(name)), _brief(other.get(name)), name in passed) for name in FIELDS]
    path = (folder or found.folders[1].parent) / f"compare-{first}-{second}.html"
    made = [Setting(*each, differs=True) for each in found.made]
    return write_page(path, found.sides, settings, made, found.paired, found.rows)


def _side(folder: Path) -> Side:
    arms = pl.read_csv(read_whole(folder / "main.csv"), columns=["arm"])["arm"].unique(maintain_order=True)
    return Side(folder.name, kept_cells(folder), arms.to_list())


def _paired(one: Side, other: Side) -> Mapping[Contrast, Comparison]:
    if one.cells is None or other.cells is None:
        return {}
    if one.cells.questions.join(other.cells.questions, on="question_id", how="semi").is_empty():
        return {}
    try:
        return compare_runs(one.cells, other.cells)
    except ValueError as error:
        raise InputError(f"compare: {error}; these runs do not pair") from error


def _folder(run: str, lake: str) -> Path:
    for folder in (place(run), Lake(lake).reports / run):
        if _is_report(folder):
            return folder
    reports = Lake(lake).reports
    known = sorted(path.parent.name for path in reports.glob("*/summary.json") if _is_report(path.parent))
    raise InputError(
        f"compare: a report's folder or one of {', '.join(known[-5:]) or 'no report in this lake'} expected, "
        f"{run!r} found"
    )


def _is_report(folder: Path) -> bool:
    """An analysis has a summary too, but no main table."""
    return all((folder / name).is_file() for name in ("summary.json", "main.csv"))


def _summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(read_whole(folder / "summary.json"))
    if "comparable" not in found:
        raise InputError(f"compare: a report that says what it measured expected, {folder} is older; report it again")
    return found


def _made(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Unequal]:
    """What differs of what two reports were made from, words before digests; nothing of a report that is older."""
    one, other = (summary.get("identity", {}) for summary in (first, second))
    found = [
        Unequal(name, *(_brief(own.get(name, "none")) for own in (one, other)))
        for name in dict.fromkeys([*one, *other])
        if one and other and one.get(name) != other.get(name)
    ]
    return sorted(found, key=lambda each: DIGEST.fullmatch(each.first) is not None)


def _joined(first: Path, second: Path) -> pl.DataFrame:
    key = ["arm", "k", "kind", "metric"]
    tables = [
        pl.read_csv(read_whole(folder / "main.csv"), schema_overrides={"k": pl.String, "value": pl.Float64})
        for folder in (first, second)
    ]
    left, right = (table.select(*key, "value", "n") for table in tables)
    rows = left.join(right, on=key, suffix="_second", maintain_order="left")
    return rows.select(
        *key,
        pl.col("value").alias("first"),
        pl.col("value_second").alias("second"),
        (pl.col("value_second") - pl.col("value")).alias("difference"),
        "n",
        "n_second",
    )


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[:16] if DIGEST.fullmatch(text) else text[:160]

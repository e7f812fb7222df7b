"""What did the papers print where a run has numbers of its own?"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from reports.results import Arm

FILE = Path(__file__).with_name("published.toml")
PAPERS = ("bfr", "mempursuit")
FIRST_SET = "fca_ms"  # the paper completes no other


@dataclass(frozen=True)
class Printed:
    """One published table or figure. `name`: `bfr.table16`; `rows`: (words of the row, its numbers, None unpublished).

    `setting`: how the paper measured, name → words. `of`, `columns` and the rows' words are read by
    `reports.coordinates`.
    """

    name: str
    title: str
    source: str
    setting: Mapping[str, Any]
    of: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float | None, ...]], ...]


@cache
def printed() -> Mapping[str, Printed]:
    """Every table and figure of `published.toml` by name, in the papers' order."""
    said = _said()
    return {
        f"{paper}.{name}": _printed(said, paper, name)
        for paper in PAPERS
        for name, table in said[paper].items()
        if isinstance(table, dict)
    }


class Published(NamedTuple):
    """What stands beside a run's completion. `budgets`, `completion`: (method, budget) → column → number."""

    source: str
    benchmark: str
    budgets: Mapping[tuple[str, str], Mapping[str, float]]
    completion: Mapping[tuple[str, str], Mapping[str, float]]

    def of(self, table: Mapping[tuple[str, str], Mapping[str, float]], benchmark: str, arm: Arm) -> Mapping[str, float]:
        """The row of an arm that begins as the paper's does, on the paper's benchmark; empty for any other."""
        match = re.fullmatch(r"(\w+)\((.*)\)", arm.reader)
        begins = match is not None and f"init={FIRST_SET}" == match[2]
        return table.get((match[1], arm.budget), {}) if match and begins and benchmark == self.benchmark else {}


@cache
def published() -> Published:
    """The figures of tables 16 (matched budgets) and 19 (Gold Hit before and after completion) of the BFR paper."""
    points, folds = printed()["bfr.table16"], printed()["bfr.table19"]
    names = {"calls": "calls", "records": "records", "cer": "complete_evidence"}
    budgets: dict[tuple[str, str], Mapping[str, float]] = {}
    for words, numbers in points.rows:
        own = {names[c]: n for c, n in zip(points.columns, numbers, strict=True) if c in names and n is not None}
        method, _, budget = words.partition("@")
        keys = [(m, "C0") for m in ("bfr_text", "bfr_mv")] if method.startswith("C0") else [(method, budget)]
        budgets |= dict.fromkeys(keys, own)
    gold_hit = {words: number for words, (number,) in folds.rows if number is not None}
    before = next(number for words, number in gold_hit.items() if words.startswith("initial"))
    completion = {
        (words.partition("@")[0], words.partition("@")[2]): {"before": before, "after": after}
        for words, after in gold_hit.items()
        if not words.startswith("initial")
    }
    return Published(points.source, str(points.setting["benchmark"]), budgets, completion)


def _printed(said: Mapping[str, Any], paper: str, name: str) -> Printed:
    table = said[paper][name]
    drawn = said[paper][table["same"]] if "same" in table else table
    rows = tuple((words, tuple(map(_number, numbers))) for words, *numbers in drawn["rows"])
    return Printed(
        name=f"{paper}.{name}",
        title=table["title"],
        source=said[paper]["source"],
        setting=said["settings"][table["setting"]],
        of=table.get("of", ""),
        columns=tuple(drawn["columns"]),
        rows=rows,
    )


def _number(value: float | str) -> float | None:
    return None if value == "" else float(value)


@cache
def _said() -> Mapping[str, Any]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def names(wanted: Sequence[str]) -> tuple[list[str], list[str]]:
    """(tables that `wanted` names, all if empty; words that name none). `bfr` and `table16` name several or one."""
    found: list[str] = []
    unknown = []
    for word in wanted:
        own = [name for name in printed() if word in (name, *name.split("."))]
        found += [name for name in own if name not in found]
        unknown += [] if own else [word]
    return (found if wanted else list(printed())), unknown

"""What did the BFR paper print where a run's completion has a number of its own?"""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from reports.results import Arm

FILE = Path(__file__).with_name("published.toml")
FIRST_SET = "fca_ms"  # the paper completes no other


class Published(NamedTuple):
    """`budgets` and `completion`: (method, budget) → column → number."""

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
    """The figures of `published.toml`."""
    said = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return Published(said["source"], said["benchmark"], _rows(said["budgets"]), _rows(said["completion"]))


def _rows(table: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, float]]:
    names = table["columns"][2:]
    return {(method, budget): dict(zip(names, numbers, strict=True)) for method, budget, *numbers in table["rows"]}

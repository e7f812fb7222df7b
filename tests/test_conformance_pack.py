"""The promises of docs/conformance.md are kept by tests that exist."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROWS = [
    line for line in (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8").splitlines() if "`tests/" in line
]
NODES = re.findall(r"`(tests/\w+\.py)::(\w+)`", "\n".join(line for line in ROWS if line.startswith("|")))


@cache
def _tests(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_known_pitfall_has_its_row() -> None:
    numbers = [int(found[1]) for line in ROWS if (found := re.match(r"\| (\d+) \|", line))]
    assert numbers == list(range(1, 24))


@pytest.mark.parametrize(("file", "name"), NODES, ids=[f"{file}::{name}" for file, name in NODES])
def test_a_named_test_exists(file: str, name: str) -> None:
    assert name in _tests(file)

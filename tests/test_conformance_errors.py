"""Errors that a worker of a cluster raises reach the run as they were."""

import pickle
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import readers
import storage
import tasks
from readers.types import OverBudget
from storage.ledger import BrokenLedger
from storage.manifest import Difference, FrozenDiffers
from storage.tables import CorruptPart
from tasks.llm.budget import BudgetStop
from tasks.llm.faults import Fault, Malformed
from tasks.llm.patience import GaveUp
from tasks.sealed import StillSealed

ARGUMENTS: dict[type[Exception], tuple[Any, ...]] = {
    BrokenLedger: (Path("ledger.jsonl"), ["line 3", "line 4"]),
    BudgetStop: ("--max-calls 3", 3, 0.25),
    CorruptPart: (Path("part-1.parquet"), "a cut file"),
    FrozenDiffers: (Difference("models.small", {"seed": 1}, None),),
    GaveUp: (Fault("status 503", again=True, wait_s=2.0),),
    Malformed: ({"code": 502},),
    OverBudget: ("calls", 3),
    StillSealed: ("locomo",),
}


def _ours() -> Iterator[type[Exception]]:
    """Every exception that the packages define."""
    for package in (readers, storage, tasks):
        for path in Path(package.__file__ or "").parent.rglob("*.py"):
            if named := re.findall(r"^class (\w+)\((?:Exception|\w+Error)\):", path.read_text("utf-8"), re.MULTILINE):
                parts = path.relative_to(Path(package.__file__ or "").parents[1]).with_suffix("").parts
                yield from (getattr(import_module(".".join(parts)), name) for name in named)


def test_errors_arrive_from_another_process_with_their_words_and_facts() -> None:
    kinds = set(_ours())
    assert kinds >= set(ARGUMENTS)
    for kind in kinds:
        assert ("__init__" in vars(kind)) == (kind in ARGUMENTS), f"{kind}: a row in ARGUMENTS"
        raised = kind(*ARGUMENTS.get(kind, ("what was expected, what was found",)))
        arrived = pickle.loads(pickle.dumps(raised))
        assert type(arrived) is kind
        assert (str(arrived), vars(arrived)) == (str(raised), vars(raised))

"""A reader asks its model no more than the forecast says it may, and where nothing stops it, as much."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest

from readers import READERS
from readers.types import Budget, asks_model
from tasks.asks import RERANK, bounds
from tests.test_readers_contract import make_library, make_pool, make_query
from tests.told_access import ToldAccess, orderly

ASKING = sorted(name for name, reader in READERS.items() if asks_model(reader))


class Counting(ToldAccess):
    """Counts calls of a rerank endpoint too, which takes no prompt."""

    def rerank(self, question: str, texts: Sequence[str], dialect: str) -> Any:
        most = 32 if dialect == "tei" else 1000
        self.told += [(RERANK, {"from": str(start)}) for start in range(0, len(texts), most)]
        return super().rerank(question, texts, dialect)


def _insatiable() -> Any:
    """Agents search on with new words each time."""
    numbers = count()

    def say(prompt: str, variables: Mapping[str, str]) -> str:
        if prompt == "mragent":
            return json.dumps({"calls": [{"tool": "search_text", "value": f"went place {next(numbers)}"}]})
        if prompt == "mera_plan":
            return json.dumps({"query": f"She went to place {next(numbers)}"})
        return orderly(prompt, variables)

    return say


@pytest.mark.parametrize("name", ASKING)
@pytest.mark.parametrize("size", [0, 7, 45])
def test_no_reader_asks_more_than_its_bound(name: str, size: int) -> None:
    pool = make_pool(np.ones((size, 2)) / np.sqrt(2))
    for parameters in [{"dialect": "jina"}, {"dialect": "tei"}] if name == "cross_encoder" else [{}]:
        reader: Any = READERS[name](**parameters)
        completes = getattr(reader, "completes", False)
        budget = Budget(records=5, calls=3) if completes else Budget()
        allowed = {prompt: asks for prompt, (asks, _) in bounds(reader, size, size + 2)}
        for say in (_insatiable(), lambda prompt, variables: "nothing of use"):
            access = Counting(make_library(pool), budget, say)
            reader.read(make_query(), pool, budget, access)
            # The same again is no further ask.
            told = Counter(prompt for prompt, _ in {(prompt, str(variables)) for prompt, variables in access.told})
            assert all(told[prompt] <= allowed[prompt] for prompt in told), (told, allowed)
            if size == 45 and not completes and say.__name__ == "say":
                assert told == allowed

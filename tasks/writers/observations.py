"""The facts that a benchmark's file comes with, as a store."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from storage.errors import InputError
from tasks.asking import Asking
from tasks.writers.conversation import Case, Embed, Written


@dataclass(frozen=True)
class Observations:
    """LoCoMo's own `observation` facts, one record each, with the turns that the file names as their sources.

    A model wrote them when the benchmark was made; none is asked here. Source: Maharana et al. 2024
    (arXiv 2402.17753), whose retrieval experiments use them as a store.
    """

    name: ClassVar[str] = "observations"
    title: ClassVar[str] = "the facts that LoCoMo's file comes with"

    def spec(self) -> dict[str, Any]:
        """Nothing: the dataset's address covers the facts."""
        return {}

    def write_all(self, cases: Sequence[Case], asking: Asking, embed: Embed) -> Iterator[Written]:
        """The records of each conversation. Raises `InputError` for a conversation without any."""
        for case in cases:
            if not case.observed:
                raise InputError(
                    f"writer observations: facts under `observation` expected in conversation "
                    f'{case.turns[0].conversation_id}, none found; name a file that has them, or writer = "turns"'
                )
            yield Written(case.turns[0].conversation_id, case.observed)

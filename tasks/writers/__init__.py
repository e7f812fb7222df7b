"""How conversations become records: one module a writer."""

from collections.abc import Sequence
from typing import Any, Protocol

from storage.records import Record, Turn
from tasks.writers.turns import Turns


class Writer(Protocol):
    """Makes the records of one conversation. Its fields are parameters and part of the store's address."""

    def write(self, turns: Sequence[Turn]) -> list[Record]:
        """Records in time order, each with the ids of the turns it was made from."""
        ...


WRITERS: dict[str, type[Any]] = {
    "turns": Turns,
}

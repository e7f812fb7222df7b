"""How conversations become records: one module a writer."""

from collections.abc import Sequence
from typing import Any, Protocol

from storage.records import Record, Turn
from tasks.writers.facts import Facts
from tasks.writers.observations import Observations
from tasks.writers.turns import Turns


class Writer(Protocol):
    """Makes the records of one conversation. Its fields are parameters and part of the store's address."""

    def write(self, turns: Sequence[Turn]) -> list[Record]:
        """Records in time order, each with the ids of the turns it was made from."""
        ...


WRITERS: dict[str, type[Any]] = {
    "turns": Turns,
    "facts": Facts,
    "observations": Observations,
}
"""Each is a `Writer`, or a `tasks.writers.conversation.ConversationWriter` that is handed whole conversations."""

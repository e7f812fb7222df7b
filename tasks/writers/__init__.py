"""How sessions become records: one module a writer."""

from collections.abc import Sequence
from typing import Any, Protocol

from storage.records import Record, Turn
from tasks.writers.facts import Facts
from tasks.writers.observations import Observations
from tasks.writers.turns import Turns


class Writer(Protocol):
    """Makes the records of one session. Its fields are parameters and part of the store's address.

    It sees the session's content, which several conversations may hold: a turn's id is its name within the session,
    and `said_at` is None unless the writer is `dated`.
    """

    @property
    def dated(self) -> bool:
        """Whether what it writes depends on the session's date, so that each date has records of its own."""
        ...

    def write(self, turns: Sequence[Turn]) -> list[Record]:
        """Records in time order, ids unique within the session, each with the ids of the turns it was made from."""
        ...


WRITERS: dict[str, type[Any]] = {
    "turns": Turns,
    "facts": Facts,
    "observations": Observations,
}
"""Each is a `Writer`, or a `tasks.writers.conversation.ConversationWriter` that is handed whole conversations."""

"""What a writer that needs whole conversations is handed, and what it hands back."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from storage.records import Record, Turn
from tasks.asking import Asking
from tasks.outcomes import Status

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True)
class Case:
    """One conversation: its turns in time order and the records that its file came with."""

    turns: Sequence[Turn]
    observed: Sequence[Record] = ()


@dataclass(frozen=True)
class Batch:
    """What came of asking for the facts of some turns in a row.

    `facts`: records made. `repeated`: facts dropped because a record says the same. `unplaced`: records whose
    sources are all the turns of the batch, as the reply named none of them. `raw`: the reply that could not be read.
    """

    first_turn_id: str
    turns: int
    status: Status
    facts: int = 0
    repeated: int = 0
    unplaced: int = 0
    raw: str | None = None


@dataclass(frozen=True)
class Written:
    """One conversation's records in time order, and the account of how they came about where a model was asked."""

    conversation_id: str
    records: Sequence[Record]
    batches: Sequence[Batch] = ()


class ConversationWriter(Protocol):
    """Makes records of whole conversations. Its fields are parameters and part of the store's address."""

    def spec(self) -> dict[str, Any]:
        """What changes the records beside the parameters and the code of this package."""
        ...

    def write_all(self, cases: Sequence[Case], asking: Asking, embed: Embed) -> Iterator[Written]:
        """What is written of each conversation, as soon as it is finished, in whatever order.

        `embed`: texts to (n, d) unit rows, by the store's encoder.
        """
        ...

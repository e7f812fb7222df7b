"""What a reader may read beyond its pool: views over one conversation, counted."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class ConversationAccess:
    """Views over the records of one conversation in time order. `calls` counts the reads of one question."""

    def __init__(self, ids: Sequence[str], tokens: Sequence[int]) -> None:
        self._ids = tuple(ids)
        self._tokens = np.asarray(tokens, np.int32)
        self.calls = 0

    def everything(self) -> tuple[tuple[str, ...], NDArray[np.int32]]:
        """All record ids in time order and their token counts; it is no retrieval and costs no call."""
        return self._ids, self._tokens

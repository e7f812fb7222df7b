"""The vectors that a memory system gave with its pool: nothing else can be embedded in their space."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from storage.errors import InputError


@dataclass(frozen=True)
class Imported:
    """Vectors of an imported pool's records and questions, as its files hold them."""

    title: ClassVar[str] = "the vectors that an imported pool holds"
    kept: ClassVar[bool] = True

    def identity(self) -> dict[str, Any]:
        """Nothing of its own: the pool's digest is part of the address."""
        return {"model": "imported"}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Raises `InputError`: the system's embedder is not here."""
        raise InputError(
            f"encoder imported: a vector in the pool's files expected, none found for {texts[0][:60]!r}; a reader that "
            f"embeds texts of its own needs a store with another encoder"
        )

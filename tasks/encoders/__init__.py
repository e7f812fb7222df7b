"""How texts become vectors: one module an encoder."""

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from tasks.encoders.endpoint import Endpoint
from tasks.encoders.hashed import Hashed
from tasks.encoders.imported import Imported
from tasks.encoders.minilm import MiniLm


class Encoder(Protocol):
    """Turns texts into unit vectors. Its fields are parameters; `identity` is part of every vector's address.

    `kept`: whether the lake keeps its vectors, as it should unless they are cheaper to make than to read.
    """

    kept: ClassVar[bool]

    def identity(self) -> dict[str, Any]:
        """What changes the vectors: model, its digest, truncation."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) float32, unit rows; a text that has no vector gives a zero row."""
        ...


ENCODERS: dict[str, type[Any]] = {
    "minilm": MiniLm,
    "endpoint": Endpoint,
    "hashed": Hashed,
    "imported": Imported,
}

"""An encoder of no meaning, for timing alone: hashed runs of characters, deterministic and fast."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

_RUN = 4
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Hashed:
    """Counts of runs of four bytes, hashed with a sign into `width` places and made a unit vector.

    Close texts are those that share spelling. It makes pools of the right size at a known cost, which is all that
    timings at size need; what readers select from them says nothing about readers. Its vectors are cheaper to make
    than to keep, so none are kept. Source: Weinberger et al. 2009, on runs of bytes instead of words.
    """

    title: ClassVar[str] = "hashed runs of characters: for timing alone"
    kept: ClassVar[bool] = False

    width: int = 384

    def identity(self) -> dict[str, Any]:
        """The name and the width."""
        return {"model": "hashed", "width": self.width}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, width) float32, unit rows; an empty text gives a zero row."""
        vectors = np.zeros((len(texts), self.width), np.float32)
        for row, text in zip(vectors, texts, strict=True):
            data = np.frombuffer(text.lower().encode("utf-8", "surrogatepass"), np.uint8).astype(np.uint64)
            if not len(data):
                continue
            runs = sum((data[i : len(data) - _RUN + 1 + i] << np.uint64(8 * i) for i in range(_RUN)), np.uint64(0))
            hashed = (runs if len(data) >= _RUN else data) * _ODD >> np.uint64(32)
            signs = np.where(hashed & np.uint64(1), 1.0, -1.0)
            row += np.bincount((hashed >> np.uint64(1)).astype(np.int64) % self.width, signs, self.width)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms > 0, norms, 1.0), np.float32)

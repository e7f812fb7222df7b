"""An encoder of no meaning, for timing alone: hashed runs of characters, deterministic and fast."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

_RUN = 4
_ODD = np.uint32(0x9E3779B1)


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
            data = text.lower().encode("utf-8", "surrogatepass")
            data += bytes(max(0, _RUN - len(data))) if data else data
            starts = [np.frombuffer(data, "<u4", (len(data) - i) // _RUN, i) for i in range(min(_RUN, len(data)))]
            if starts:
                hashed = np.concatenate(starts) * _ODD >> np.uint32(12)
                counts = np.bincount(hashed % np.uint32(2 * self.width), minlength=2 * self.width)
                row[:] = counts[: self.width] - counts[self.width :]
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms > 0, norms, 1.0), np.float32)

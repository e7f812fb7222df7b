"""An encoder behind any OpenAI-compatible `/embeddings` endpoint."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tasks.llm import embed

_BATCH = 128


@dataclass(frozen=True)
class Endpoint:
    """Vectors of `model` from `base_url`; the key is read from the environment, never stored.

    The address of a vector holds the model's name, not the place that served it.
    """

    title: ClassVar[str] = "any OpenAI-compatible /embeddings endpoint"
    kept: ClassVar[bool] = True

    model: str = "text-embedding-3-small"
    base_url: str = "https://api.openai.com/v1"

    def identity(self) -> dict[str, Any]:
        """The model's name."""
        return {"model": self.model}

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n, d) float32, unit rows. Raises what `tasks.llm.embed` raises."""
        rows: list[list[float]] = []
        for start in range(0, len(texts), _BATCH):
            rows += embed(self.base_url, self.model, [text or " " for text in texts[start : start + _BATCH]])
        vectors = np.asarray(rows, np.float64)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.where(norms > 0, norms, 1.0), np.float32)

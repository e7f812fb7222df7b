"""The readers of BFR with a model: its first set and, where they steer the reads, its requirements."""

from dataclasses import dataclass
from typing import Any, ClassVar

from readers.bfr import BfrAdaptive, BfrMv, BfrState, BfrText
from readers.decomposition import PROMPT


@dataclass(frozen=True)
class BfrTextModel(BfrText):
    """BFR-Text after a first set that a model had a part in; `init` may be a reader that asks one.

    `model` is lent to `init` too. Asks: those of `init`, two for FCA-MS as published. Completion asks nothing.
    Other parameters, and what is raised, as in `BfrText`.
    """

    init: str = "fca_ms_model"
    model: str = ""

    title: ClassVar[str] = "FCA-MS by a model, then further pages of a text search for the question"

    @property
    def prompts(self) -> tuple[str, ...]:
        """The prompts of `init`."""
        return prompts_of(self.init)


@dataclass(frozen=True)
class BfrMvModel(BfrMv):
    """BFR-MV after a first set that a model had a part in: with the budget C6, the paper's main arm.

    `model`, asks and the rest as in `BfrTextModel` and `BfrMv`.
    """

    init: str = "fca_ms_model"
    model: str = ""

    title: ClassVar[str] = "FCA-MS by a model, then text, entity and session reads in fixed turn"

    @property
    def prompts(self) -> tuple[str, ...]:
        """The prompts of `init`."""
        return prompts_of(self.init)


@dataclass(frozen=True)
class BfrStateModel(BfrState):
    """BFR-State whose requirements a model decomposes; where FCA-MS asked for them already, that is no further ask.

    `model` and the rest as in `BfrTextModel` and `BfrState`. Without a usable reply the requirements are those by
    rules, and the trace says so (`fallback`).
    """

    init: str = "fca_ms_model"
    model: str = ""

    title: ClassVar[str] = "FCA-MS by a model, then reads steered by its requirements still missing"

    @property
    def prompts(self) -> tuple[str, ...]:
        """Those of `init` and the decomposition."""
        return prompts_of(self.init, PROMPT)


@dataclass(frozen=True)
class BfrAdaptiveModel(BfrAdaptive):
    """BFR-Adaptive whose requirements a model decomposes. `model` and the rest as in `BfrStateModel`, `BfrAdaptive`."""

    init: str = "fca_ms_model"
    model: str = ""

    title: ClassVar[str] = "FCA-MS by a model, then reads chosen by the evidence until nothing seems missing"

    @property
    def prompts(self) -> tuple[str, ...]:
        """Those of `init` and the decomposition."""
        return prompts_of(self.init, PROMPT)


def prompts_of(init: str, *own: str) -> tuple[str, ...]:
    """What a reader and the one of its first set may ask."""
    from readers import READERS  # Not at the top: the table names the readers of this module too.

    reader: Any = READERS[init]
    return tuple(dict.fromkeys((*own, *getattr(reader, "prompts", ()))))

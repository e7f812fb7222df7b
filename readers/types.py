"""What a reader is given and what it returns."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.integer[Any]]
View = Literal["text", "entity", "session", "time"]
StopReason = Literal["budget", "pool_exhausted", "adaptive", "empty_pool", "over_budget"]


class OverBudget(RuntimeError):
    """A reader asked for more than its budget holds: `what` it asked for and the `limit` of it."""

    def __init__(self, what: str, limit: int) -> None:
        self.what = what
        self.limit = limit
        super().__init__(f"budget: at most {limit} {what}, one more was asked for")

    def __reduce__(self) -> tuple[type["OverBudget"], tuple[str, int]]:
        return OverBudget, (self.what, self.limit)


class ModelFailed(RuntimeError):
    """A model that a reader asked gave no reply. The question is not read then: a later run asks again."""


@dataclass(frozen=True)
class Query:
    """One question as a reader sees it.

    `vector`: (d,) float32, unit length (or zero). `asked_at`: seconds since the epoch, NaN if unknown.
    `seed`: the protocol's seed; a reader that draws at random derives its generator from (seed, id).
    """

    id: str
    text: str
    vector: Floats
    asked_at: float = float("nan")
    seed: int = 0

    def generator(self) -> np.random.Generator:
        """A generator that depends on the seed and the question's id alone."""
        return np.random.default_rng([self.seed, *self.id.encode("utf-8", errors="backslashreplace")])


@dataclass(frozen=True)
class Pool:
    """The P candidates of one question in native rank order, as a struct of arrays.

    `ids`: record ids. `native`, `dense`, `lexical`: (P,) float64; fused score, cosine in [-1, 1], BM25.
    `vectors`: (P, d) float32, unit rows (zero and non-finite rows are tolerated).
    `tokens`: (P,) int32, tokens of the rendered record. `positions`: (P,) int32, place in the conversation.
    `sessions`, `speakers`: (P,) int32 codes. `times`: (P,) float64, seconds since the epoch, NaN if unknown.
    Raises `ValueError` if the lengths differ.
    """

    ids: tuple[str, ...]
    native: Floats
    dense: Floats
    lexical: Floats
    vectors: Floats
    tokens: Ints
    positions: Ints
    sessions: Ints
    speakers: Ints
    times: Floats

    def __post_init__(self) -> None:
        size = len(self.ids)
        for name in (
            "native",
            "dense",
            "lexical",
            "vectors",
            "tokens",
            "positions",
            "sessions",
            "speakers",
            "times",
        ):
            length = len(getattr(self, name))
            if length != size:
                raise ValueError(f"{name} ({length}) must match ids ({size})")

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True)
class Budget:
    """What a reader may spend; None is unlimited.

    `records` and `tokens` bound the evidence; `calls`, `rounds` and `new_records` bound completion after it.
    Raises `ValueError` for a negative bound.
    """

    records: int | None = None
    tokens: int | None = None
    calls: int | None = None
    rounds: int | None = None
    new_records: int | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and value < 0:
                raise ValueError(f"budget: {name} of at least 0 expected, {value} found")

    def prefix(self, order: Ints, tokens: Ints) -> Ints:
        """The longest prefix of `order` (indices into `tokens`) that fits records and tokens.

        It ends at the first record that does not fit, so a larger budget never loses a record.
        """
        size = len(order) if self.records is None else min(self.records, len(order))
        if self.tokens is not None and size:
            size = int(np.searchsorted(np.cumsum(tokens[order[:size]]), self.tokens, side="right"))
        return order[:size]

    def most(self, pool: Pool) -> int:
        """An upper bound of how many records of `pool` can be selected."""
        return len(pool) if self.records is None else min(self.records, len(pool))


@dataclass(frozen=True)
class Step:
    """One step of a reader: what was asked, what came back, what was kept.

    The view `fallback` says that a model's reply could not be used, `cue` why, and `kept` what was taken instead.
    """

    view: str
    cue: str
    returned: tuple[str, ...]
    kept: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model was asked for one question. `seconds`: waited for its replies, however often they are read again.

    Tokens are None where the endpoint counts none.
    """

    asks: int
    prompt_tokens: int | None
    completion_tokens: int | None
    seconds: float


@dataclass(frozen=True)
class Evidence:
    """What a reader selected.

    `ids`: in selection order, no repeats. `gains`, `weights`: (len(ids),) or None where a reader has none.
    `calls`: retrieval calls beyond the pool. `stop_reason`: why the selection ended. `asked`: None without a model; it
    and `calls` are metered by whoever lends the access.
    """

    ids: tuple[str, ...]
    stop_reason: StopReason
    gains: Floats | None = None
    weights: Floats | None = None
    calls: int = 0
    trace: tuple[Step, ...] = field(default=())
    asked: Asked | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A record as a reader may read it. `session`: a code; `time`: seconds since the epoch, NaN if unknown."""

    id: str
    text: str
    speaker: str
    session: int
    position: int
    time: float
    tokens: int


class Access(Protocol):
    """Further reads of the question's conversation.

    Each view is one retrieval call, counted in `calls`; it returns at most `most` records, best first, none of
    them in `without`. A call beyond the budget raises `OverBudget` and returns nothing.
    """

    calls: int

    def everything(self) -> tuple[tuple[str, ...], Ints]:
        """All record ids of the conversation in time order, with their token counts; no call."""
        ...

    def notes(self, ids: Sequence[str]) -> tuple[Note, ...]:
        """The records behind ids that the reader holds already; no call."""
        ...

    def embed(self, texts: Sequence[str]) -> Floats:
        """(n, d) float32 unit vectors of `texts` by the store's encoder; no call."""
        ...

    def ranked(self, ids: Sequence[str], most: int, without: Collection[str]) -> tuple[Note, ...]:
        """The next records of a ranking that the reader holds: a page."""
        ...

    def text(self, cue: str, most: int, without: Collection[str]) -> tuple[Note, ...]:
        """Records that share words with `cue`."""
        ...

    def entity(self, name: str, most: int, without: Collection[str]) -> tuple[Note, ...]:
        """Records in which `name` occurs or who spoke by it."""
        ...

    def session(self, anchor: str, most: int, without: Collection[str]) -> tuple[Note, ...]:
        """Records of the session of the record `anchor`, in time order."""
        ...

    def time(self, anchor: float, days: float, most: int, without: Collection[str]) -> tuple[Note, ...]:
        """Records said within `days` of the time `anchor`, nearest first."""
        ...

    # Only for a reader with a parameter `model`, which names the model; its `prompts` are all that it may ask. These
    # raise `ModelFailed` where no reply can be had.

    def ask(self, prompt: str, **variables: str) -> str:
        """The model's reply to a prompt; empty where it refused. The same again is no further ask."""
        ...

    def first_tokens(self, prompt: str, each: Sequence[Mapping[str, str]]) -> list[dict[str, float]]:
        """For each filling of a prompt the likeliest first tokens of the reply, with their log-probabilities."""
        ...

    def rerank(self, question: str, texts: Sequence[str], dialect: str) -> Floats:
        """(n,) relevance of `texts` by a cross-encoder behind an endpoint of that dialect; higher is better."""
        ...


class Reader(Protocol):
    """A policy that composes evidence from a pool under a budget.

    `title`: one line for people. `source`: where the policy comes from.
    """

    title: ClassVar[str]
    source: ClassVar[str]

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        """Evidence for `query`: a subset of `pool` and of what `access` returned, within `budget`."""
        ...


def selected(
    pool: Pool,
    order: Ints,
    budget: Budget,
    *,
    gains: Floats | None = None,
    weights: Floats | None = None,
    stop_reason: StopReason | None = None,
) -> Evidence:
    """Evidence from the longest prefix of `order` (indices into `pool`, best first) that fits `budget`.

    `gains` and `weights` are aligned with `order`. Without a `stop_reason` it is `budget` where the budget
    cut or exactly met the order, `pool_exhausted` where all of the pool was taken.
    """
    kept = budget.prefix(order, pool.tokens)
    size = len(kept)
    if stop_reason is None or size < len(order):
        stop_reason = "empty_pool" if not len(pool) else "pool_exhausted" if size == len(pool) else "budget"
    return Evidence(
        ids=tuple(pool.ids[i] for i in kept),
        stop_reason=stop_reason,
        gains=None if gains is None else gains[:size],
        weights=None if weights is None else weights[:size],
    )


def asks_model(reader: Any) -> bool:
    """Whether a reader, or a class of readers, has a parameter `model`."""
    return hasattr(reader, "model")


def fallback(why: str, kept: Sequence[str] = ()) -> Step:
    """The step that says that a model's reply could not be used."""
    return Step("fallback", why, (), tuple(kept))

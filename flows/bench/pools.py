"""Which pools are readers timed on?"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.errors import InputError
from storage.lake import Lake
from storage.schemas import EMBEDDINGS
from tasks import specs
from tasks.encoders import ENCODERS
from tasks.index import text_address
from tasks.plan import StorePlan
from tasks.pool import Lexicon, MinMax, candidates
from tasks.sources import SOURCES
from tasks.writers import WRITERS

Floats = NDArray[np.float32]
Case = tuple[Floats, Floats]
"""A query (d,) and its pool (P, d) in native rank order, unit rows, each an array of its own."""

_STORE = StorePlan(name="turns", dataset="", writer="turns", encoder="minilm", fusion="minmax", size=0)
_CHUNK = 512


@dataclass(frozen=True)
class Shelf:
    """The records that some questions are asked of: `vectors` (n, e), and `ranks`, native rank order a question."""

    vectors: Floats
    queries: Floats
    ranks: tuple[NDArray[np.intp], ...]


def shelves(path: Path, lake: Path, deepest: int) -> list[Shelf]:
    """One a conversation: turns, vectors and hybrid ranking as a run makes them, without the adversarial questions.

    Vectors are kept in `lake`, by the address that a run keeps them by. Where no conversation has `deepest` records,
    all of them share one shelf. Raises what the source and the encoder raise.
    """
    read = SOURCES["locomo"].load(path)
    writer = specs.make(WRITERS, _STORE.writer, "writer")
    texts = {
        name: [record.text for record in writer.write(list(turns))]
        for name, turns in groupby(read.turns, lambda turn: turn.conversation_id)
    }
    asked: dict[str, list[str]] = {name: [] for name in texts}
    for question in read.questions:
        if question.kind != "adversarial":
            asked[question.conversation_id].append(question.text)
    if max(map(len, texts.values())) < deepest:
        texts, asked = {"": list(chain(*texts.values()))}, {"": list(chain(*asked.values()))}
    known = _vectors(lake, list(chain(*texts.values(), *asked.values())))
    return [_shelf(texts[name], asked[name], known) for name in texts if asked[name]]


def taken(full: Sequence[Shelf], size: int, dim: int, count: int) -> list[Case]:
    """`count` pools of the `size` best records, from questions spread evenly over the shelves that are deep enough.

    Vectors are lifted to `dim` by a seeded orthogonal map, which keeps every inner product. Where there are fewer
    questions than pools, questions come again, in memory of their own.
    Raises `InputError` where no shelf has `size` records.
    """
    places = [(shelf, i) for shelf in full if len(shelf.vectors) >= size for i in range(len(shelf.ranks))]
    if not places:
        raise InputError(f"bench: a pool of {size} records expected, {max(len(s.vectors) for s in full)} found at most")
    step = max(1.0, len(places) / count)
    lift = _lift(full[0].vectors.shape[1], dim)
    made = []
    for n in range(count):
        shelf, i = places[int(n * step) % len(places)]
        rows = shelf.vectors[shelf.ranks[i][:size]]
        made.append((_unit(shelf.queries[i] @ lift), _unit(rows @ lift)))
    return made


def unsaturated(size: int, dim: int, count: int, seed: int = 0) -> list[Case]:
    """Pools of which every memory belongs to the optimum, so that no budget under `size` and `dim` saturates.

    Memories lie on a cone, at cosine 1/2 to its axis. The query is a mixture of all of them plus what is missing to
    unit length, along the axis: that part scores the same for all, so the mixture is the optimum.
    """
    made = []
    for n in range(count):
        rng = np.random.default_rng((seed, n))
        axis = _unit(rng.standard_normal(dim))
        around = rng.standard_normal((size, dim))
        rows = 0.5 * axis + np.sqrt(0.75) * _unit(around - np.outer(around @ axis, axis))
        mixture = rng.uniform(0.5, 1.5, size) @ rows / size
        along = mixture @ axis
        rest = mixture - along * axis
        query = np.sqrt(1.0 - rest @ rest) * axis + rest
        made.append((np.asarray(query, np.float32), np.asarray(rows, np.float32)))
    return made


def _shelf(texts: list[str], asked: list[str], known: dict[str, Floats]) -> Shelf:
    vectors, queries = np.stack([known[text] for text in texts]), np.stack([known[text] for text in asked])
    lexicon, fusion = Lexicon(texts), MinMax()
    ranks = [
        candidates(vectors, query, lexicon.scores(text), len(texts), fusion).rows
        for query, text in zip(queries, asked, strict=True)
    ]
    return Shelf(vectors, queries, tuple(ranks))


def _vectors(lake: Path, texts: list[str]) -> dict[str, Floats]:
    """Every text's vector; those that the lake lacks are made, and kept there."""
    table = Lake.open(lake).table(EMBEDDINGS, _STORE.encoding)
    encoder = specs.make(ENCODERS, _STORE.encoder, "encoder")
    addresses = {text_address(text): text for text in texts}
    held = set(table.read(["text"])["text"])
    missing = sorted((a for a in addresses if a not in held), key=lambda a: len(addresses[a]))
    for start in range(0, len(missing), _CHUNK):
        chunk = missing[start : start + _CHUNK]
        made = encoder.encode([addresses[address] for address in chunk])
        table.append([{"text": address, "vector": vector} for address, vector in zip(chunk, made, strict=True)])
    rows = table.read()
    matrix = rows["vector"].explode().to_numpy().reshape(len(rows), -1)
    return {addresses[address]: matrix[i] for i, address in enumerate(rows["text"]) if address in addresses}


def _lift(width: int, dim: int) -> Floats:
    """(width, dim) float32 with orthonormal rows; the identity where nothing is lifted."""
    if dim == width:
        return np.eye(dim, dtype=np.float32)
    if dim < width:
        raise ValueError(f"dim is {dim}, it must be at least the encoder's {width}")
    return np.asarray(np.linalg.qr(np.random.default_rng(0).standard_normal((dim, width)))[0].T, np.float32)


def _unit(values: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(values / np.linalg.norm(values, axis=-1, keepdims=True))

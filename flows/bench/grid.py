"""How long does a selection take, by kind of pool, dimension, pool size and budget?

Run as a process: `python -m flows.bench.grid FILE LAKE NAME` prints one JSON object. Every contestant reads every pool
once a round, contestants taking turns, so that other load meets all of them; a pool's time is its median over the
rounds, and a cell's figures are over its pools. The pools of a sweep are larger than the last cache twice over, so each
is cold for everyone; the floor, one float32 matvec of the same pool, is measured in the same rounds.
"""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flows.bench.peers import PEERS
from flows.bench.pools import Case, Shelf, shelves, taken, unsaturated
from readers.mem_pursuit import mem_pursuit, mem_pursuit_batch

SIZES, BUDGETS, DIMS = (100, 200, 300, 500), (10, 20, 50, 100), (1536, 384)
HEADLINE = (200, 20, 1536)
UNSATURATED = "never saturating"
TAU = 1e-5

# Feng & Fan, arXiv 2610.15642v1, d = 1536, one thread of a Xeon Gold 5117 at 2.00 GHz, numba.
PUBLISHED_MEDIANS = {  # table 14, milliseconds by (P, K)
    (100, 10): 4.54, (100, 20): 6.30, (100, 50): 11.79, (100, 100): 22.75,
    (200, 10): 7.27, (200, 20): 8.40, (200, 50): 13.62, (200, 100): 23.99,
    (300, 10): 9.73, (300, 20): 12.16, (300, 50): 17.11, (300, 100): 26.49,
    (500, 10): 18.04, (500, 20): 22.47, (500, 50): 30.67, (500, 100): 38.58,
}  # fmt: skip
PUBLISHED = {"median ms": 8.67, "mean ms": 17.69, "p95 ms": 57.76}  # tables 12 and 13, P = 200, K = 20
PUBLISHED_ADAPTIVE = 15.65  # figure 4: memories, tau = 1e-5, patience 2

_ROUNDS, _HEADLINE_ROUNDS = 3, 7
_CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
_CACHE_KIB = 32 * 1024  # where the machine does not tell

Row = dict[str, Any]
Contestant = Callable[[int, NDArray[np.float32], NDArray[np.float32]], object]


def grid(path: Path, lake: Path, name: str) -> dict[str, Any]:
    """All figures: name → value, lists of rows being tables. `name`: what the pools of the file are called."""
    _say("embedding and ranking")
    full = shelves(path, lake, max(SIZES))
    cells: list[Row] = []
    for kind in (name, UNSATURATED):
        for dim in DIMS:
            for size in SIZES:
                _say(f"{kind} pools, d={dim}, P={size}")
                cells += _cells(kind, size, dim, _pools(full, kind, size, dim))
    headline: Row = {}
    peers: list[Row] = []
    for kind in (name, UNSATURATED):
        _say(f"peers, {kind} pools")
        found, rows = _headline(kind, _pools(full, kind, HEADLINE[0], HEADLINE[2]))
        headline |= found
        peers += rows
    absent = {peer.title for peer in PEERS.values() if not peer.installed()}
    size, budget, dim = HEADLINE
    return {
        "adaptive stop (tau=1e-5), mean memories": _adaptive(full),
        "  published": PUBLISHED_ADAPTIVE,
        "pools": f"cold: a sweep fills the last cache ({_cache_kib() // 1024} MiB) twice, contestants taking turns",
        "threads": "1, numpy's and the kernels'",
        **headline,
        **({"left out": f"{', '.join(sorted(absent))}: pip install 'suffice[bench]'"} if absent else {}),
        f"peers at P={size} K={budget} d={dim}, cold": peers,
        **{
            f"median ms by P and K, {kind} pools, d={dim}": _by_size_and_budget(cells, kind, dim)
            for kind in (name, UNSATURATED)
            for dim in DIMS
        },
        "cells": cells,
    }


def _cells(kind: str, size: int, dim: int, pools: Sequence[Case]) -> list[Row]:
    """One row a budget; the floor and the stored Gram are measured along with each."""
    grams = [_gram(memories) for _, memories in pools]
    rows = []
    for k in BUDGETS:
        times = _sweep(
            pools,
            {
                "floor": lambda i, q, m: m @ q,
                "ours": lambda i, q, m, k=k: mem_pursuit(q, m, k),  # type: ignore[misc]
                "gram": lambda i, q, m, k=k: mem_pursuit(q, m, k, gram=grams[i]),  # type: ignore[misc]
            },
            _ROUNDS,
        )
        floor, ours, gram = (float(np.median(times[name])) for name in ("floor", "ours", "gram"))
        rows.append(
            {
                "pools": kind,
                "d": dim,
                "P": size,
                "K": k,
                **_spread(times["ours"]),
                "floor ms": _ms(floor),
                "x floor": round(ours / floor, 2),
                "Gram kept, ms": _ms(gram),
                "Gram kept, x floor": round(gram / floor, 2),
                "published ms": PUBLISHED_MEDIANS[size, k] if dim == 1536 else None,
            }
        )
    return rows


def _headline(kind: str, pools: Sequence[Case]) -> tuple[dict[str, Any], list[Row]]:
    """(what is told of the headline cell alone, all contestants with their ratio to ours)."""
    k = HEADLINE[1]
    grams = [_gram(memories) for _, memories in pools]
    relevances = [memories @ query for query, memories in pools]
    ours: dict[str, Contestant] = {
        "one matvec (the floor)": lambda i, q, m: m @ q,
        "mem_pursuit": lambda i, q, m: mem_pursuit(q, m, k),
        "mem_pursuit, Gram kept": lambda i, q, m: mem_pursuit(q, m, k, gram=grams[i]),
    }
    peers = {
        peer.title: lambda i, q, m, run=peer.run: run(q, m, relevances[i], k)
        for peer in PEERS.values()
        if peer.installed()
    }
    times = _sweep(pools, ours | peers, _HEADLINE_ROUNDS)
    warm = _warm(pools, ours)
    floor, own = (float(np.median(times[name])) for name in list(ours)[:2])
    rows = [
        {
            "pools": kind,
            "contestant": name,
            **_spread(each),
            "x floor": round(float(np.median(each)) / floor, 2),
            "x mem_pursuit": round(float(np.median(each)) / own, 2),
        }
        for name, each in times.items()
    ]
    if kind != UNSATURATED:
        rows.append({"pools": kind, "contestant": "published (other machine)", **PUBLISHED})
    matvec, warm_own, warm_gram = (float(np.median(each)) for each in warm.values())
    return {
        f"warm, {kind} pools, floor ms": _ms(matvec),
        f"warm, {kind} pools, x floor": round(warm_own / matvec, 2),
        f"warm, {kind} pools, Gram kept, x floor": round(warm_gram / matvec, 2),
        **{f"questions/s in batch, {kind} pools, threads={t}": _batch(pools, k, t) for t in (1, 2)},
    }, rows


def _pools(full: Sequence[Shelf], kind: str, size: int, dim: int) -> list[Case]:
    """As many pools as fill the last cache twice, and at least 64."""
    count = max(64, -(-2 * _cache_kib() * 1024 // (size * dim * 4)))
    return unsaturated(size, dim, count) if kind == UNSATURATED else taken(full, size, dim, count)


def _sweep(pools: Sequence[Case], contestants: dict[str, Contestant], rounds: int) -> dict[str, NDArray[np.float64]]:
    """Name → (pools,) seconds, the median over the rounds."""
    spent = {name: np.empty((rounds, len(pools))) for name in contestants}
    for run in contestants.values():
        run(0, *pools[0])
    for turn in range(rounds):
        for name, run in contestants.items():
            for i, (query, memories) in enumerate(pools):
                start = perf_counter()
                run(i, query, memories)
                spent[name][turn, i] = perf_counter() - start
    return {name: np.median(each, axis=0) for name, each in spent.items()}


def _warm(pools: Sequence[Case], contestants: dict[str, Contestant]) -> dict[str, NDArray[np.float64]]:
    """The same with each pool in cache: a contestant reads it again and again, the first time not counted."""
    spent = {name: np.empty((_ROUNDS, len(pools))) for name in contestants}
    for i, (query, memories) in enumerate(pools):
        for name, run in contestants.items():
            for turn in range(-1, _ROUNDS):
                start = perf_counter()
                run(i, query, memories)
                spent[name][max(turn, 0), i] = perf_counter() - start
    return {name: np.median(each, axis=0) for name, each in spent.items()}


def _batch(pools: Sequence[Case], k: int, threads: int) -> int:
    """Questions per second, the median of the rounds."""
    queries, memories = np.stack([query for query, _ in pools]), [rows for _, rows in pools]
    rates = []
    for _ in range(_HEADLINE_ROUNDS):
        start = perf_counter()
        mem_pursuit_batch(queries, memories, k, threads=threads)
        rates.append(len(pools) / (perf_counter() - start))
    return round(float(np.median(rates)))


def _adaptive(full: Sequence[Shelf], size: int = 200, k: int = 50) -> float:
    """Mean length of the adaptive path over every question."""
    lengths = [
        len(mem_pursuit(query, shelf.vectors[ranks[:size]], k, tau=TAU).order)
        for shelf in full
        for query, ranks in zip(shelf.queries, shelf.ranks, strict=True)
    ]
    return round(float(np.mean(lengths)), 2)


def _by_size_and_budget(cells: Sequence[Row], kind: str, dim: int) -> list[Row]:
    """The layout of the paper's table 14: a row a pool size, a column a budget."""
    return [
        {
            "P": size,
            **{
                f"K={cell['K']}": cell["median ms"]
                for cell in cells
                if (cell["pools"], cell["d"], cell["P"]) == (kind, dim, size)
            },
        }
        for size in SIZES
    ]


def _gram(memories: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = memories.astype(np.float64)
    return np.asarray(wide @ wide.T)


def _spread(seconds: NDArray[np.float64]) -> dict[str, float]:
    return {
        "median ms": _ms(float(np.median(seconds))),
        "mean ms": _ms(float(np.mean(seconds))),
        "p95 ms": _ms(float(np.percentile(seconds, 95))),
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1e3, 4)


def _cache_kib() -> int:
    try:
        return int(_CACHE.read_text(encoding="ascii").strip().removesuffix("K"))
    except (OSError, ValueError):
        return _CACHE_KIB


def _say(what: str) -> None:
    print(f"bench readers: {what}", file=sys.stderr)


if __name__ == "__main__":
    print(json.dumps(grid(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])))

"""Do the benches time what they say they time?"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from flows.bench import BENCHES, grid, measure, peers
from flows.bench.peers import PEERS
from flows.bench.pools import Case, Shelf, taken, unsaturated
from flows.cli import app
from readers.mem_pursuit import mem_pursuit
from reports.results import EVIDENCE_METRICS
from storage.errors import InputError

EXACT = [name for name, peer in PEERS.items() if peer.same_path]


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The numba peer as plain Python: compiling it takes longer than all tests here."""
    monkeypatch.setattr(peers, "_full_gram", peers._full_gram.py_func)


def select(name: str, case: Case, k: int) -> list[int]:
    peer = PEERS[name]
    if not peer.installed():
        pytest.skip(f"needs {peer.package}: pip install 'suffice[bench]'")
    query, memories = case
    return [int(i) for i in peer.run(query, memories, memories @ query, k)]


def cone(seed: int, size: int = 40, dim: int = 64) -> Case:
    """A query and memories around a common direction, as an encoder's are."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal(dim) + rng.standard_normal((size + 1, dim))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return rows[0].copy(), rows[1:].copy()


def orthogonal() -> Case:
    """Orthogonal memories of distinct positive cosines: every definition takes the best cosine first."""
    cosines = np.array([0.3, 0.55, 0.15, 0.45, 0.25, 0.5, 0.05, 0.2, 0.1], np.float32)
    return cosines / np.linalg.norm(cosines), np.eye(9, dtype=np.float32)


def shelf(records: int, questions: int, dim: int = 8) -> Shelf:
    rng = np.random.default_rng(records)
    rows = rng.standard_normal((records + questions, dim)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    vectors, queries = rows[:records], rows[records:]
    return Shelf(vectors, queries, tuple(np.argsort(-vectors @ query, kind="stable") for query in queries))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", EXACT)
def test_an_exact_peer_gives_the_order_of_mem_pursuit(name: str, seed: int) -> None:
    for case in (cone(seed), *unsaturated(30, 48, 1, seed)):
        assert select(name, case, 12) == mem_pursuit(*case, 12).order.tolist()


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_agrees_where_memories_are_orthogonal(name: str) -> None:
    expected = mem_pursuit(*orthogonal(), 5).order.tolist()
    assert expected == [1, 5, 3, 0, 4]
    found = select(name, orthogonal(), 5)
    assert found == (sorted(expected) if name == "omp" else expected)


def test_pools_are_the_best_records_in_native_order_and_lifting_keeps_their_products() -> None:
    small, large = shelf(4, 3), shelf(12, 5)
    pools = taken([small, large], 6, 20, 5)
    for (query, memories), own, ranks in zip(pools, large.queries, large.ranks, strict=True):
        assert memories.shape == (6, 20) and memories.dtype == query.dtype == np.float32
        np.testing.assert_allclose(memories @ query, large.vectors[ranks[:6]] @ own, atol=1e-6)


def test_questions_come_again_in_other_memory_where_they_do_not_suffice() -> None:
    pools = taken([shelf(6, 2)], 6, 8, 5)
    np.testing.assert_array_equal(pools[0][1], pools[2][1])
    assert not np.shares_memory(pools[0][1], pools[2][1])
    with pytest.raises(InputError, match="a pool of 7 records expected, 6 found at most"):
        taken([shelf(6, 2)], 7, 8, 5)


@pytest.mark.parametrize(("size", "dim"), [(100, 384), (200, 1536), (500, 384)])
def test_unsaturated_pools_give_weight_to_every_pick(size: int, dim: int) -> None:
    for query, memories in unsaturated(size, dim, 2):
        path = mem_pursuit(query, memories, min(100, size - 1))
        assert path.certificate is not None and path.certificate > 0


def test_a_sweep_times_every_contestant_on_every_pool() -> None:
    seen: list[tuple[str, int]] = []

    def contestant(name: str) -> grid.Contestant:
        def run(i: int, query: NDArray[np.float32], memories: NDArray[np.float32]) -> None:
            seen.append((name, i))

        return run

    pools = unsaturated(4, 8, 3)
    times = grid._sweep(pools, {"a": contestant("a"), "b": contestant("b")}, 2)
    assert {name: each.shape for name, each in times.items()} == {"a": (3,), "b": (3,)}
    sweep = [("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2)]
    assert seen == [("a", 0), ("b", 0), *sweep, *sweep]


def test_a_cell_stands_beside_its_floor_and_the_published_figure() -> None:
    rows = grid._cells("LoCoMo", 100, 1536, unsaturated(100, 1536, 2))
    assert [(row["K"], row["published ms"]) for row in rows] == [(10, 4.54), (20, 6.30), (50, 11.79), (100, 22.75)]
    assert all(row["median ms"] > 0 and row["x floor"] > 0 for row in rows)


@pytest.mark.parametrize(("data", "name"), [(None, "bundled sample"), ("locomo10.json", "LoCoMo")])
def test_tables_are_called_after_the_pools_that_were_timed(
    data: str | None, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, ...]] = []

    def python(*arguments: str) -> str:
        started.append(arguments)
        return "0.1 0.2" if arguments[0] == "-c" else "{}"

    monkeypatch.setattr("flows.bench.readers._python", python)
    if data is not None:
        (tmp_path / data).write_text("[]")
    assert measure("readers", data and str(tmp_path / data))["data"] == (data or name)
    assert started[0][:2] == ("-m", "flows.bench.grid") and started[0][-1] == name


def test_an_unknown_bench_or_missing_data_is_refused() -> None:
    assert list(BENCHES) == ["pipeline", "readers", "calls", "statistics", "scale"]
    with pytest.raises(
        InputError, match="one of pipeline, readers, calls, statistics, scale expected, 'nothing' found"
    ):
        measure("nothing", None)
    with pytest.raises(InputError, match=r"nowhere\.json does not exist"):
        measure("readers", "nowhere.json")


def test_figure_draws_what_readers_measured_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    times = {"median ms": 0.4, "p95 ms": 0.5, "floor ms": 0.1, "x floor": 4.0, "published ms": 8.4}
    cells = [{"pools": "LoCoMo", "d": 1536, "P": p, "K": 20, **times} for p in (100, 200)]
    monkeypatch.setattr("flows.bench.readers.readers", lambda *_: {"cells": cells})
    ran = CliRunner().invoke(app, ["bench", "readers", "--figure", str(tmp_path / "new"), "--json"])
    paths = json.loads(ran.stdout)["paths"]
    assert {Path(path).name for path in paths.values()} == {f"latency_grid.{kind}" for kind in ("svg", "png", "csv")}
    assert all(Path(path).stat().st_size for path in paths.values())
    refused = CliRunner().invoke(app, ["bench", "calls", "--figure", str(tmp_path)])
    assert isinstance(refused.exception, InputError) and "--figure draws `bench readers`" in str(refused.exception)


def test_the_benches_are_imported_without_the_reader_or_prefect() -> None:
    """Else a first call, or an empty flow, would be timed with half of its start done."""
    code = "import sys, flows.bench; print({'numba', 'prefect', 'lancedb'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"


def test_the_statistics_bench_compares_every_arm_by_every_measure_and_subset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two arms besides each budget's hybrid, over all questions, 4 kinds and 2 subsets; two judges have two scores."""
    for name, value in (("ARMS", 6), ("QUESTIONS", 60), ("SAMPLES", 100)):
        monkeypatch.setattr(f"flows.bench.statistics.{name}", value)
    assert measure("statistics", None)["paired comparisons"] == 4 * (len(EVIDENCE_METRICS) + 4) * (1 + 4 + 2)

"""A disk that is full or closed, a broken index, runs at once on one lake: one clear line, or the right tables."""

import errno
import resource
import subprocess
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pyarrow as pa
import pytest

from flows import cli
from flows import protocol as protocols
from storage import vectors
from storage.errors import InputError
from storage.lake import Lake
from storage.tables import CorruptPart
from storage.upkeep import verify
from tasks.answer import answer
from tasks.candidates import build_pools
from tasks.compose import compose
from tasks.index import build_index
from tasks.ingest import ingest
from tasks.judge import judge, score
from tasks.oracle import compose_oracle
from tasks.plan import Plan
from tasks.ranked import rank
from tasks.store import write_store
from tests.conftest import conversation, write_locomo
from tests.soak import _compare, tables

Step = Callable[[Plan], int]
STEPS: dict[str, Step] = {
    "store": lambda plan: write_store(plan, plan.stores[0]),
    "index": lambda plan: build_index(plan, plan.stores[0]),
    "pool": lambda plan: build_pools(plan, plan.stores[0], plan.conversation_ids()),
    "compose": lambda plan: compose(plan, plan.stores[0], plan.conversation_ids()),
    "oracle": lambda plan: compose_oracle(plan, plan.stores[0], plan.conversation_ids()),
    "answer": lambda plan: answer(plan, plan.stores[0], plan.conversation_ids()),
    "judge": lambda plan: judge(plan, plan.conversation_ids()),
    "score": lambda plan: score(plan, plan.stores[0], plan.conversation_ids()),
    "rank": lambda plan: rank(plan, plan.stores[0], plan.conversation_ids()),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_locomo(tmp_path_factory.mktemp("data") / "data.json", conversation("c1"), conversation("c2"))


def planned(lake: Path, data: Path, arms: Sequence[str]) -> Plan:
    root = str(Lake.open(lake).root)
    found = ingest(root, "locomo", str(data))
    changes = {"data.path": str(data), "arms": list(arms), "budgets": ["k2"], "stores.0.encoder": "hashed"}
    return protocols.load("sample", changes).plan(root, found.dataset, found.gold)


def run(lake: Path, data: Path, arms: Sequence[str], before: Callable[[], object] = lambda: None) -> None:
    before()
    plan = planned(lake, data, arms)
    for step in STEPS.values():
        before()
        step(plan)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB in memory."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to mount a small file system")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_runs_at_once_on_one_lake_end_in_the_tables_of_runs_one_after_the_other(tmp_path: Path, data: Path) -> None:
    first, second = ("hybrid", "oracle"), ("hybrid", "dense", "bm25")
    for arms in (first, second):
        run(tmp_path / "alone", data, arms)
    together = Barrier(4)
    with ThreadPoolExecutor(4) as pool:
        started = [
            pool.submit(run, tmp_path / "shared", data, arms, lambda: together.wait(60))
            for arms in (first, second, first, second)
        ]
        for future in started:
            future.result()
    _compare(tables(tmp_path / "alone"), tables(tmp_path / "shared"))


def test_a_full_disk_is_one_clear_line_at_every_stage_and_the_run_goes_on_once_there_is_room(
    tmp_path: Path, small_disk: Path, data: Path
) -> None:
    lake, filler = small_disk / "lake", small_disk / "filler"
    Lake.open(lake)

    def fill() -> None:
        with filler.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
            while file.write(bytes(4096)):
                pass

    def told(work: Callable[[], object]) -> None:
        fill()
        with pytest.raises(InputError, match=r"room to write expected, the disk is full; free some and run again"):
            work()
        filler.unlink()

    arms = ("hybrid", "oracle")
    told(lambda: planned(lake, data, arms))
    plan = planned(lake, data, arms)
    for step in STEPS.values():
        told(lambda step=step: step(plan))  # type: ignore[misc]
        step(plan)
    run(tmp_path / "alone", data, arms)
    _compare(tables(tmp_path / "alone"), tables(lake))


def test_a_lake_that_may_not_be_written_is_one_clear_line(small_disk: Path, data: Path) -> None:
    lake = small_disk / "lake"
    plan = planned(lake, data, ("hybrid",))
    STEPS["store"](plan)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(InputError, match="not writable; name a writable folder with --lake"):
        Lake.open(lake)
    assert verify(Lake.open(lake, new=False)).findings == (), "one may still look"
    with pytest.raises(InputError, match="a place that can be written expected"):
        STEPS["index"](plan)


def test_an_index_of_which_the_disk_takes_a_part_is_one_clear_line(tmp_path: Path) -> None:
    """The system writes as much as fits under a limit; LanceDB sees that when it reads what it wrote."""
    records = pa.table({"unit": ["u"] * 20, "place": pa.array(range(20), pa.int32()), "text": ["t"] * 20})
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (21_400, before[1]))
    try:
        with pytest.raises(InputError, match=r"an index written whole expected, .* found; see that the disk has room"):
            vectors.build(tmp_path, "f" * 64, [(records, np.ones((20, 256), np.float32))], 256)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_part_that_cannot_be_read_while_an_index_is_built_is_named(tmp_path: Path) -> None:
    def parts() -> Iterator[tuple[pa.Table, np.ndarray]]:  # type: ignore[type-arg]
        yield pa.table({"unit": ["u"], "place": pa.array([0], pa.int32()), "text": ["t"]}), np.ones((1, 2), np.float32)
        raise CorruptPart(Path("part-1.parquet"), "half a file")

    with pytest.raises(CorruptPart, match=r"^part-1.parquet: a readable Parquet part expected, half a file found"):
        vectors.build(tmp_path, "f" * 64, parts(), 2)


@pytest.mark.parametrize("left", [0, 20])
def test_an_index_that_was_cut_off_is_named_with_what_to_delete(tmp_path: Path, data: Path, left: int) -> None:
    lake, arms = tmp_path / "lake", ("hybrid",)
    plan = planned(lake, data, arms)
    STEPS["store"](plan)
    STEPS["index"](plan)
    (index,) = (lake / "vectors").iterdir()
    for manifest in (index / "_versions").glob("*.manifest"):
        manifest.write_bytes(manifest.read_bytes()[:left])
    with pytest.raises(InputError, match="a readable index expected") as told:
        STEPS["pool"](plan)
    named = Path(str(told.value).partition("delete ")[2].removesuffix(" and run again"))
    assert str(told.value).startswith(f"{index}: ")
    for part in named.iterdir():
        part.unlink()
    run(lake, data, arms)
    run(tmp_path / "alone", data, arms)
    _compare(tables(tmp_path / "alone"), tables(lake))


def test_a_full_disk_ends_the_command_with_one_line_and_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(**options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "lake/calls/segments/1.jsonl")

    monkeypatch.setattr(cli, "app", full)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == (
        "suffice: lake/calls/segments/1.jsonl: room to write expected, the disk is full; free some and run again to "
        "go on\n"
    )


def test_a_failure_of_another_program_on_a_full_disk_is_told_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows import benchmark
    from flows.commands import run

    def failing(**options: object) -> Callable[..., None]:
        def flow(*given: object) -> None:
            raise RuntimeError("status 500, says the server whose database lies in the lake")

        return flow

    monkeypatch.setattr(benchmark.benchmark, "with_options", failing)
    monkeypatch.setattr(run, "configure", lambda *_, **options: None)
    lake = str(Lake.open(tmp_path / "lake").root)
    said = protocols.load("sample", {"data.path": "sample"})
    with pytest.raises(RuntimeError, match="status 500"):
        run.run_flow(said, lake, ("report",), quiet=True, verbose=False)
    monkeypatch.setattr(Lake, "is_full", lambda lake: True)
    with pytest.raises(InputError, match=r"lake: room to write expected, the disk is full"):
        run.run_flow(said, lake, ("report",), quiet=True, verbose=False)
    (tmp_path / "lake" / "lake.json").unlink()
    with pytest.raises(InputError, match=r"lake: a lake expected, none found"):
        run.run_flow(said, lake, ("report",), quiet=True, verbose=False)


def test_a_lake_is_full_where_its_disk_is(small_disk: Path) -> None:
    lake = Lake(small_disk)
    assert not lake.is_full()
    (small_disk / "filler").write_bytes(bytes(5 << 19))
    assert lake.is_full() and not Lake("s3://bucket/lake").is_full()

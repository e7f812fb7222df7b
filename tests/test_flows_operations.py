"""Runs that are resumed, scheduled, or spread over a cluster end in the same tables."""

import json
import logging
import os
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from flows import cli
from flows import protocol as protocols
from flows.runners import task_runner
from flows.runs import SCOPE, begun, ended, unfinished
from flows.stages import STAGES
from storage.errors import InputError
from storage.lake import Lake
from storage.schemas import STARTS
from storage.upkeep import clean, verify
from tests.conftest import conversation, write_locomo
from tests.soak import Endpoint, _compare, strays, tables, write_protocol

SMALL = {"stores.0.encoder": "hashed", "budgets": ["k2"]}
FEW, OTHERS = ["hybrid", "oracle"], ["hybrid", "mem_pursuit", "dense"]


def _small(data: Path, arms: list[str]) -> protocols.Protocol:
    return protocols.load("sample", {**SMALL, "data.path": str(data), "arms": arms})


def _command(data: Path, lake: Path, arms: list[str]) -> list[str]:
    said = {**SMALL, "arms": arms}
    changes = [part for key, value in said.items() for part in ("--set", f"{key}={json.dumps(value)}")]
    return ["run", "sample", "--data", str(data), "--lake", str(lake), *changes]


def test_processes_that_run_on_one_lake_at_once_end_in_the_tables_of_runs_one_after_the_other(
    tmp_path: Path, shared_server: dict[str, str]
) -> None:
    from flows.benchmark import benchmark

    data = write_locomo(tmp_path / "data.json", *map(conversation, ("c1", "c2", "c3")))
    shared, alone = (str(Lake.open(tmp_path / name).root) for name in ("shared", "alone"))
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "flows.cli", *_command(data, Path(shared), arms)],
            env=shared_server,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for arms in (FEW, OTHERS)
    ]
    for arms in (FEW, OTHERS):
        benchmark(_small(data, arms), alone, STAGES)
    for process in started:  # the first of the same protocol, the second of another one
        assert process.stderr is not None
        assert "ingest" in process.stderr.readline()
    benchmark(_small(data, FEW), shared, STAGES)
    ended = [(process.communicate(timeout=120)[1], process.returncode) for process in started]
    assert [code for _, code in ended] == [0, 0], ended
    _compare(tables(Path(alone)), tables(Path(shared)))
    clean(Lake(shared), 0)
    assert verify(Lake(shared)).findings == () and strays(Path(shared)) == []


@pytest.fixture
def unlogged() -> Iterator[None]:
    """Keeps Prefect's lines off standard error, as the command does unless Prefect has begun before it."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("server", "unlogged")
def test_a_whole_run_on_a_full_disk_is_one_line_and_goes_on_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file may be longer than a limit, which the system tells like a full disk; it rises until the run ends.

    The index alone has room at once: what LanceDB has written half it reads again, and tells that of its reading.
    """
    data = write_locomo(tmp_path / "data.json", *map(conversation, ("c1", "c2")))

    def run(lake: str, limit: int, *more: str) -> int | str | None:
        monkeypatch.setattr(sys, "argv", ["suffice", *_command(data, tmp_path / lake, FEW), *more])
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
        try:
            cli.main()
        except SystemExit as ended:
            return ended.code
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        raise AssertionError("the command ends with a code")

    stopped = []
    for limit in (2_000, 7_000, 30_000):
        assert run("small", limit) == 2
        *stages, last = capsys.readouterr().err.splitlines()
        assert re.fullmatch(r"suffice: \S+: room to write expected, the disk is full; free some and run .*", last)
        assert not any("Error" in line or "Traceback" in line for line in stages)
        stopped.append(len(stages))
        if len(stopped) == 1:
            assert run("small", resource.RLIM_INFINITY, "--until", "index") == 0
            capsys.readouterr()
    assert stopped == sorted(stopped) and stopped[0] < stopped[-1], "each run went on from where the last one was"
    assert run("small", resource.RLIM_INFINITY) == run("alone", resource.RLIM_INFINITY) == 0
    _compare(tables(tmp_path / "alone"), tables(tmp_path / "small"))


def test_a_run_whose_process_died_is_unfinished_until_it_is_gone_on_with(tmp_path: Path) -> None:
    lake = str(Lake.open(tmp_path).root)
    said = protocols.load("sample")
    code = (
        "import sys; from flows import protocol; from flows.runs import begun; "
        "begun(sys.argv[1], protocol.load('sample'), ('ingest', 'store'))"
    )
    subprocess.run([sys.executable, "-c", code, lake], check=True)
    (start,) = unfinished(lake)
    assert (start.protocol, start.stages, start.alive) == (said, ("ingest", "store"), False)
    run = begun(lake, said, STAGES)
    assert [start.alive for start in unfinished(lake)] == [True]
    ended(lake, run, said, {"new": {}, "seconds": {}})
    assert unfinished(lake) == []


def test_resume_with_nothing_cut_off_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from flows.commands.resume import resume

    with pytest.raises(InputError, match=r"a run of .* that was cut off expected, none found"):
        resume(str(tmp_path))


def test_a_resumed_run_ends_with_the_lines_of_any_run(
    server: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from flows import runs
    from flows.commands.resume import resume

    monkeypatch.setenv("OPENAI_API_KEY", "none")
    lake, endpoint = str(Lake.open(tmp_path / "lake").root), Endpoint()
    with endpoint.served() as url:
        begun(lake, protocols.load(str(write_protocol(tmp_path / "p.toml", url, write_locomo(tmp_path / "x")))), STAGES)
        monkeypatch.setattr(runs, "_alive", lambda process: False)
        resume(lake)
    said = capsys.readouterr().out
    told = [int(calls) for calls in re.findall(r"Calls for [^,]+, model small: (\d+); [\d,]+ prompt", said)]
    assert sum(told) == len(endpoint.paid) > 0
    assert all(head in said for head in ("Overall, %", "cells over", "New in this run: ", "Report: "))


@pytest.mark.parametrize("alive", [True, False])
def test_a_run_has_the_one_before_it_shown_as_crashed_if_that_was_killed(
    server: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alive: bool
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.states import Running

    from flows import runs
    from flows.benchmark import benchmark

    lake = str(Lake.open(tmp_path).root)
    said, other = protocols.load("sample"), protocols.load("sample", {"seed": 1})
    with get_client(sync_client=True) as client:
        made = []
        for each in (said, other):
            given = {"protocol": each.model_dump(), "lake": lake}
            made.append(client.create_flow_run(benchmark, parameters=given, state=Running()).id)
            monkeypatch.setenv("PREFECT__RUNTIME__FLOW_RUN__ID", str(made[-1]))
            begun(lake, each, STAGES)
        monkeypatch.setattr(runs, "_alive", lambda process: alive)
        monkeypatch.setenv("PREFECT__RUNTIME__FLOW_RUN__ID", str(uuid4()))
        begun(lake, said, STAGES)
        states = [client.read_flow_run(run).state for run in made]
    assert [state is not None and state.is_crashed() for state in states] == [not alive, False]
    begun(lake, said, STAGES)  # after one that this server does not know


def test_a_run_of_another_version_that_was_cut_off_is_one_clear_line(tmp_path: Path) -> None:
    lake = str(Lake.open(tmp_path).root)
    begun(lake, protocols.load("sample"), STAGES)
    table = Lake(lake).table(STARTS, SCOPE)
    (row,) = table.read().to_dicts()
    table.parts()[0].unlink()
    table.append([row | {"protocol": row["protocol"].replace('"seed"', '"sede"')}])
    with pytest.raises(InputError, match="a run of this version expected"):
        unfinished(lake)
    begun(lake, protocols.load("sample"), STAGES)


def test_a_run_ends_by_handlers_that_wait_for_no_shard(
    server: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import flows.benchmark as main
    from flows.ending import _end

    monkeypatch.setattr(main, "_run", lambda *_: {"seen": [signal.getsignal(signal.SIGTERM) is _end]})
    before = signal.getsignal(signal.SIGTERM)
    assert main.benchmark(protocols.load("sample"), str(tmp_path)) == {"seen": [True]}
    assert signal.getsignal(signal.SIGTERM) is before


def test_shards_of_any_flow_are_waited_for_by_handlers_that_end_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from flows import shards
    from flows.ending import _end

    class Shard:
        """A task and its future: its result says whether SIGTERM and SIGINT would end the process."""

        def submit(self) -> "Shard":
            return self

        def result(self) -> int:
            return sum(signal.getsignal(number) is _end for number in (signal.SIGTERM, signal.SIGINT))

    monkeypatch.setattr(shards, "as_completed", lambda futures: [])
    before = signal.getsignal(signal.SIGTERM)
    assert shards.Log().run("judge", [(Shard(), ())]) == 2  # type: ignore[list-item]
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.parametrize("where", ["nope", "dask://", "ray://x:1", "dasks"])
def test_an_unknown_runner_is_one_clear_line(where: str) -> None:
    with pytest.raises(InputError, match="--runner: threads, dask, or dask://host:port"):
        task_runner(where, 1)


@pytest.mark.parametrize("bound", ["--max-calls", "--max-cost"])
def test_a_bound_that_workers_of_a_cluster_would_not_keep_is_refused(
    tmp_path: Path, bound: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["suffice", "run", "sample", "--runner", "dask", bound, "1"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2 and not list(tmp_path.iterdir())
    assert "--max-calls and --max-cost: --runner threads expected" in capsys.readouterr().err


@pytest.mark.parametrize("by_all", [True, False])
def test_calls_that_may_be_another_run_s_are_said_to_be(by_all: bool, capsys: pytest.CaptureFixture[str]) -> None:
    from flows.commands.run import print_summary

    call = {"purpose": "judge", "model": "m", "calls": 2, "prompt_tokens": 1, "completion_tokens": 1, "cost": None}
    print_summary({"stores": [], "new": {}, "calls": [call], "calls by all runs": by_all})
    assert ("Calls of every run on this lake since this one began:" in capsys.readouterr().out) is by_all


def test_a_dask_cluster_gives_the_tables_of_threads(server: None, tmp_path: Path) -> None:
    from flows.benchmark import benchmark

    data = write_locomo(tmp_path / "data.json")
    said = protocols.load("sample", {"data.path": str(data), "arms": ["hybrid", "mmr", "oracle"], "budgets": ["k2"]})
    for name, where in (("threads", "threads"), ("dask", "dask")):
        main = benchmark.with_options(task_runner=task_runner(where, 2))
        main(said, str(Lake.open(tmp_path / name).root), STAGES)
    here, there = tables(tmp_path / "threads"), tables(tmp_path / "dask")
    assert set(here) == set(there)
    for name, table in here.items():
        assert table.equals(there[name]), name


def test_a_schedule_runs_by_plain_parameters(server: None, tmp_path: Path) -> None:
    from flows.scheduled import scheduled

    data = write_locomo(tmp_path / "data.json")
    made = scheduled("sample", data=str(data), lake=str(tmp_path / "lake"), settings={"arms": ["hybrid"]}, until="pool")
    assert made["new"]["pool"] == 3
    with pytest.raises(InputError, match="did you mean hybrid"):
        scheduled("sample", data=str(data), lake=str(tmp_path / "lake"), settings={"arms": ["hybird"]})


def test_the_shipped_deployments_name_flows_that_exist_and_parameters_that_fit() -> None:
    import yaml
    from prefect.flows import load_flow_from_entrypoint

    said = yaml.safe_load((Path(__file__).parents[1] / "prefect.yaml").read_text(encoding="utf-8"))
    for deployment in said["deployments"]:
        flow = load_flow_from_entrypoint(deployment["entrypoint"])
        shown = flow.parameters.properties
        assert set(deployment["parameters"]) <= set(shown)
        assert set(shown["until"]["enum"]) == {"", *STAGES}
        assert (shown["workers"]["minimum"], shown["split"]["enum"]) == (1, ["", "open", "sealed"])
        assert all(parameter["description"] for parameter in shown.values())
        assert deployment["parameters"]["protocol"] in protocols.shipped()


def test_a_server_ends_with_the_run_that_started_it_even_if_that_is_killed() -> None:
    code = (
        "import os, signal, subprocess, sys; from flows.server import ends_with_us; "
        "quiet = subprocess.DEVNULL; given = [sys.executable, '-c', 'import time; time.sleep(600)']; "
        "names = ('prefect.server', 'another'); "
        "started = [subprocess.Popen([*given, name], stdout=quiet, stderr=quiet) for name in names]; "
        "[ends_with_us(one.pid) for one in started]; "
        "print(*(one.pid for one in started), flush=True); "
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    server, another = map(int, told.stdout.split())
    try:
        for _ in range(200):
            if not _runs(server):
                break
            time.sleep(0.05)
        assert not _runs(server)
        assert _runs(another)
    finally:
        os.kill(another, signal.SIGKILL)


def _runs(process: int) -> bool:
    """Whether a process that is no child of ours is there, and not merely not waited for yet."""
    said = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return bool(said.stdout.strip()) and not said.stdout.startswith("Z")

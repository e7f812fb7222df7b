"""Kill a run of the sample at seeded moments, go on with it, and compare: `make soak`; the suite does five."""

import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import polars as pl

from storage.lake import Lake
from storage.schemas import TABLES
from storage.upkeep import clean, verify
from tests.conftest import SAMPLE

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
BEFORE = (None, "ingest", "store", "index", "pool", "compose", "answer", "judge")
PATIENCE = 10.0  # seconds that SIGTERM and SIGINT may take
_PASSING = ("latency_ms", "latency_s", "tag")
_OF_RUNS = ("starts", "runs", "calls")


class Broken(AssertionError):
    """What did not hold after a kill."""


def soak(
    folder: Path,
    moments: int,
    seed: int,
    environment: Mapping[str, str] = os.environ,
    *,
    options: Sequence[str] = (),
    finish: Callable[[Path], None] | None = None,
) -> None:
    """Kill a run at each of `moments`, resume it, and raise `Broken` unless its tables are those of a run left alone.

    A moment is a stage, a delay within it and a signal, drawn with `seed`. Two lakes in three begin with the vectors
    of the texts, which take longest to make. `options` are the command's; `finish` runs the same to its end without
    the start of a process.
    """
    whole, command = folder / "whole", functools.partial(_command, options)
    finish = finish or (lambda lake: _finish(command(lake), environment))
    finish(whole)
    expected, drawn = tables(whole), random.Random(seed)
    for moment in range(moments):
        lake = folder / f"killed-{moment}"
        stage, number, delay = BEFORE[moment % len(BEFORE)], SIGNALS[moment % 3], drawn.uniform(0.0, 0.4)
        if moment % 3:
            shutil.copytree(whole / "embeddings", lake / "embeddings")
        said = f"moment {moment}: {number.name} {delay:.2f} s after {stage or 'the start'}"
        try:
            _kill(command(lake), stage, delay, number, environment)
            finish(lake)
            _compare(expected, tables(lake))
            clean(Lake(lake), 0)
            if findings := verify(Lake(lake)).findings:
                raise Broken(f"{findings[0].path}: {findings[0].problem}")
        except Broken as error:
            raise Broken(f"{said}: {error}") from error
        print(said, flush=True)
        shutil.rmtree(lake)


def tables(lake: Path) -> dict[str, pl.DataFrame]:
    """Every table of a lake but those of its runs, in canonical order, without timings and the names of builds."""
    found = {}
    for name, spec in TABLES.items():
        for scope in sorted((lake / name).glob("*")) if name not in _OF_RUNS else ():
            frame = Lake(lake).table(spec, scope.name).read().sort(spec.key)
            found[f"{name}/{scope.name}"] = frame.drop(_PASSING, strict=False)
    return found


def _compare(expected: Mapping[str, pl.DataFrame], found: Mapping[str, pl.DataFrame]) -> None:
    if set(expected) != set(found):
        raise Broken(f"tables {sorted(set(expected) ^ set(found))} are in one lake only")
    for name, frame in expected.items():
        if not frame.equals(found[name]):
            raise Broken(f"{name} differs")
        spec = TABLES[name.partition("/")[0]]
        if found[name].select(spec.key).is_duplicated().any():
            raise Broken(f"{name} holds a key twice")


def _kill(
    command: list[str], stage: str | None, delay: float, number: signal.Signals, environment: Mapping[str, str]
) -> None:
    """Start a run and send it `number`, `delay` seconds after the line that says that `stage` has ended."""
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**environment}
    )
    if process.stderr is None:
        raise Broken("no standard error")
    for line in process.stderr if stage else ():
        if line.split()[:1] == [stage]:
            break
    time.sleep(delay if stage else 2.0 + 10 * delay)
    process.send_signal(number)
    sent = time.monotonic()
    process.stderr.close()
    process.wait(60)
    if number != signal.SIGKILL and time.monotonic() - sent > PATIENCE:
        raise Broken(f"{number.name} took {time.monotonic() - sent:.1f} s")


def _finish(command: list[str], environment: Mapping[str, str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env={**environment})
    if done.returncode:
        raise Broken(f"the resumed run ended with {done.returncode}: {done.stderr[-2000:]}")


ARMS = ("hybrid", "dense", "mem_pursuit", "oracle", "full_context@all")
BUDGETS = ("k1", "k5")


def _command(options: Sequence[str], lake: Path) -> list[str]:
    given = [part for arm in ARMS for part in ("--arms", arm)]
    run = [sys.executable, "-m", "flows.cli", "run", "sample", "--lake", str(lake), "--data", str(SAMPLE)]
    return [*run, *given, "--set", f"budgets={json.dumps(BUDGETS)}", *options]


if __name__ == "__main__":
    moments, seed = (int(argument) for argument in (sys.argv[1:] + ["100", "20261130"][len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        soak(Path(folder), moments, seed)
    print(f"{moments} moments: every resumed run gave the tables of a run left alone")

"""Kill runs of the sample at seeded moments, go on with them, and compare: `make soak`; the suite does five."""

import argparse
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from storage.lake import Lake
from storage.schemas import RUNS, TABLES
from storage.upkeep import clean, verify
from storage.vectors import folder_name
from tests.conftest import SAMPLE
from tests.fault_server import FaultServer

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
BEFORE = (None, "ingest", "store", "index", "pool", "compose", "answer", "judge", "sufficiency")
PATIENCE = 10.0  # seconds that SIGTERM and SIGINT may take
CONCURRENCY = 4
LONGEST = 4.0  # seconds into a stage
TENTH = 10
_PASSING = ("latency_ms", "latency_s", "tag")
_OF_RUNS = ("starts", "runs", "calls")

PROTOCOL = """
name = "soak"
arms = ["hybrid", "mem_pursuit", "oracle", "full_context@all", "setr(model=small)"]
budgets = ["k1", "k5"]
answerer = "prompted(model=small)"
judges = ["lenient(model=small)", "stem_f1"]

[data]
benchmark = "locomo"
path = "{data}"
conversations = {conversations}
apart = ["adversarial"]

[models.small]
model = "small"
base_url = "{url}"
temperature = 0.0
max_tokens = 16
concurrency = {concurrency}

[[stores]]
name = "turns"
writer = "turns"
encoder = "minilm"

[sufficiency]
judges = ["lexical_cover", "blinded(model=small, words=yes/no/unsure)"]
"""


class Broken(AssertionError):
    """What did not hold after a kill."""


@dataclass
class Endpoint:
    """A server on this machine that is paid for each reply. `paid`: the bodies of the requests replied to."""

    latency_s: float = 0.02
    paid: list[str] = field(default_factory=list)

    @contextmanager
    def served(self) -> Iterator[str]:
        """Its URL, within the block."""
        with FaultServer(self._reply, latency_s=self.latency_s) as server:
            yield server.url

    def _reply(self, body: dict[str, Any]) -> str:
        """One that every part of the protocol can read, and that depends on the request alone."""
        said = json.dumps(body, sort_keys=True)
        self.paid.append(said)
        if "unsure" in said:
            return ("yes", "no", "unsure")[len(said) % 3]
        if "CORRECT" in said:
            return ("CORRECT", "WRONG")[len(said) % 2]
        return "Selected: [1] [2]" if "Selected" in said else f"About {len(said)}."


@dataclass(frozen=True)
class Soak:
    """What a soak needs: `folder` for its lakes, the protocol's file, the endpoint, and the environment of runs.

    `apart`: the environment of every `TENTH` moment. `options` are the command's. `finish` runs a lake's protocol to
    its end where the start of a process is too dear.
    """

    folder: Path
    protocol: Path
    endpoint: Endpoint
    environment: Mapping[str, str]
    apart: Mapping[str, str] | None = None
    options: Sequence[str] = ()
    finish: Callable[[Path], None] | None = None

    @property
    def whole(self) -> Path:
        """The lake of a run left alone."""
        return self.folder / "whole"

    @functools.cached_property
    def alone(self) -> tuple[dict[str, pl.DataFrame], frozenset[str]]:
        """The tables of a run left alone and what it pays for; it is run for them."""
        self.endpoint.paid.clear()
        self.end(self.whole, None)
        return tables(self.whole), frozenset(self.endpoint.paid)

    def moment(self, number: int, seed: int) -> str:
        """Kill a run, go on with it, and say when it was killed. Raises `Broken`.

        A moment is a stage, a share of what that took in the run left alone, and a signal, drawn from its number and
        `seed` alone. Two lakes in three begin with the vectors of the texts, which take longest to make.
        """
        (_, bought), seconds = self.alone, self._seconds()
        lake, drawn = self.folder / f"killed-{number}", random.Random(f"{seed} {number}")
        stage, told = BEFORE[number % len(BEFORE)], drawn.choice(SIGNALS)
        delay = drawn.uniform(0.0, min(LONGEST, seconds.get(_after(stage), LONGEST)))
        said = f"moment {number}: {told.name} {delay:.2f} s after {stage or 'the start'}"
        if drawn.random() < 2 / 3:
            shutil.copytree(self.whole / "embeddings", lake / "embeddings")
        self.endpoint.paid.clear()
        try:
            took = _kill(self._run(lake), stage, delay, told, self._environment(number))
            before = len(self.endpoint.paid)
            self.end(lake, number)
            repeated = self._check(lake)
        except Broken as error:
            raise Broken(f"{said}: {error}") from error
        shutil.rmtree(lake)
        return f"{said}; ended in {took:.1f} s; {before} of {len(bought)} calls paid by then, {repeated} paid twice"

    def end(self, lake: Path, number: int | None) -> None:
        """Run to the end: every other time by `suffice resume`, unless the run was killed before it began."""
        if self.finish:
            self.finish(lake)
            return
        command = [sys.executable, "-m", "flows.cli", "resume", "--lake", str(lake)]
        environment = self._environment(number or 1)
        if number is None or number % 2 or _done(command, environment, (0, 2)):
            _done(self._run(lake), environment, (0,))

    def _environment(self, number: int) -> Mapping[str, str]:
        return self.apart if self.apart and number % TENTH == 0 else self.environment

    def _run(self, lake: Path) -> list[str]:
        return [sys.executable, "-m", "flows.cli", "run", str(self.protocol), "--lake", str(lake), *self.options]

    def _check(self, lake: Path) -> int:
        """How many calls were paid for twice. Raises `Broken` for whatever a kill has left or changed."""
        (expected, bought), paid = self.alone, self.endpoint.paid
        _compare(expected, tables(lake))
        if doubled := set(twice(lake)) - set(twice(self.whole)):  # arms of two shards may compose one state
            raise Broken(f"{min(doubled)} holds a key twice")
        if set(paid) != bought:
            raise Broken(f"{len(set(paid) ^ bought)} calls were made by one of the runs only")
        repeated = len(paid) - len(set(paid))
        if repeated > CONCURRENCY:
            raise Broken(f"{repeated} calls were paid for twice, {CONCURRENCY} were in flight at most")
        clean(Lake(lake), 0)
        if findings := verify(Lake(lake)).findings:
            raise Broken(f"{findings[0].path}: {findings[0].problem}")
        if left := strays(lake):
            raise Broken(f"{len(left)} files of nothing are left, {left[0]} for one")
        return repeated

    def _seconds(self) -> dict[str, float]:
        """What each stage of the run left alone took."""
        (told,) = pl.concat(
            Lake(self.whole).table(RUNS, scope.name).read(["summary"]) for scope in (self.whole / "runs").glob("*")
        )["summary"]
        seconds: dict[str, float] = json.loads(told)["seconds"]
        return seconds


def write_protocol(path: Path, url: str, data: Path = SAMPLE, conversations: Sequence[str] = ()) -> Path:
    """The file of the soak's protocol, whose parts ask the endpoint at `url`."""
    named = json.dumps(list(conversations))
    path.write_text(PROTOCOL.format(data=data, url=url, conversations=named, concurrency=CONCURRENCY), "utf-8")
    return path


def tables(lake: Path) -> dict[str, pl.DataFrame]:
    """Every table of a lake but those of its runs, in canonical order, without timings and the names of builds."""
    found = {}
    for name, scope in _scopes(lake):
        spec = TABLES[name]
        frame = Lake(lake).table(spec, scope).read().sort(spec.key)
        found[f"{name}/{scope}"] = frame.drop(_PASSING, strict=False)
    return found


def twice(lake: Path) -> list[str]:
    """The tables of which two parts hold one key: something was made by two shards, or again."""
    return [
        f"{name}/{scope}"
        for name, scope in _scopes(lake)
        if Lake(lake).table(TABLES[name], scope).read(TABLES[name].key, distinct=False).is_duplicated().any()
    ]


def _scopes(lake: Path) -> Iterator[tuple[str, str]]:
    for name in TABLES:
        for scope in sorted((lake / name).glob("*")) if name not in _OF_RUNS else ():
            yield name, scope.name


def strays(lake: Path) -> list[Path]:
    """Files of a lake that belong to nothing: no part of a table, index, segment of calls, or report's page."""
    built = pl.concat(Lake(lake).table(TABLES["indexes"], scope.name).read() for scope in (lake / "indexes").glob("*"))
    indexes = {folder_name(index, tag) for index, tag in built.select("index", "tag").iter_rows()}
    return [path for path in lake.rglob("*") if path.is_file() and not _belongs(path.relative_to(lake), indexes)]


def _belongs(path: Path, indexes: set[str]) -> bool:
    match path.parts:
        case ("lake.json",) | (".prefect" | "reports", *_):
            return not path.name.startswith(".part-")
        case ("vectors", index, *_):
            return index in indexes
        case ("calls", "segments", name):
            return name.endswith(".jsonl")
        case (table, _, name):
            return table in TABLES and name.startswith("part-") and name.endswith(".parquet")
    return False


def _compare(expected: Mapping[str, pl.DataFrame], found: Mapping[str, pl.DataFrame]) -> None:
    if set(expected) != set(found):
        raise Broken(f"tables {sorted(set(expected) ^ set(found))} are in one lake only")
    for name, frame in expected.items():
        if not frame.equals(found[name]):
            raise Broken(f"{name} differs")


def _after(stage: str | None) -> str:
    """The stage that follows a stage."""
    return (*BEFORE, "report")[BEFORE.index(stage) + 1] or ""


def _kill(
    command: list[str], stage: str | None, delay: float, number: signal.Signals, environment: Mapping[str, str]
) -> float:
    """Start a run, send it `number` `delay` seconds after the line that says that `stage` has ended; its last seconds.

    Without a stage the delay, which is longer then, counts from the start.
    """
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**environment}
    )
    if process.stderr is None:
        raise Broken("no standard error")
    try:
        for line in process.stderr if stage else ():
            if line.split()[:1] == [stage]:
                break
        time.sleep(delay if stage else 1.0 + 3 * delay)
        process.send_signal(number)
        sent = time.monotonic()
        process.stderr.close()
        process.wait(60)
    except subprocess.TimeoutExpired as error:
        raise Broken(f"{number.name} did not end it in 60 s") from error
    finally:
        process.kill()
    took = time.monotonic() - sent
    if number != signal.SIGKILL and took > PATIENCE:
        raise Broken(f"{number.name} took {took:.1f} s")
    return took


def _done(command: list[str], environment: Mapping[str, str], allowed: Sequence[int]) -> int:
    done = subprocess.run(command, capture_output=True, text=True, env={**environment})
    if done.returncode not in allowed:
        raise Broken(f"the resumed run ended with {done.returncode}: {done.stderr[-2000:]}")
    return done.returncode


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    """The API of a Prefect server that all runs of a soak share, within the block."""
    from flows.server import configure

    configure(folder)
    from prefect.settings import PREFECT_API_URL
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=300):
        yield str(PREFECT_API_URL.value())


def main() -> None:
    """Soak a range of moments; those that broke are named at the end, and their lakes are kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=main.__doc__)
    parser.add_argument("moments", nargs="?", type=int, default=100, help="how many; 100 if not given")
    parser.add_argument("seed", nargs="?", type=int, default=20261130)
    parser.add_argument("--first", type=int, default=0, help="the moment to begin with, to go on with a soak")
    given = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # nohup and & hand on that it is ignored
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder, broken = Path(tempfile.mkdtemp(prefix="soak-")), []
    try:
        for said, holds in _moments(folder, range(given.first, given.moments), given.seed):
            print(said, flush=True)
            broken += [] if holds else [said]
    finally:
        if not broken:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{given.moments - given.first} moments, {len(broken)} broken", *broken, sep="\n")
    sys.exit(bool(broken))


def _moments(folder: Path, numbers: Sequence[int], seed: int) -> Iterator[tuple[str, bool]]:
    """What is to be said of each moment, and whether all held."""
    endpoint, lone = Endpoint(), {**os.environ, "OPENAI_API_KEY": "none"}
    with endpoint.served() as url, _server(folder / "prefect") as api:
        protocol = write_protocol(folder / "soak.toml", url, conversations=["sample-1", "sample-2"])
        soak = Soak(folder, protocol, endpoint, {**lone, "PREFECT_API_URL": api}, lone)
        for number in numbers:
            started = time.monotonic()
            try:
                said, holds = soak.moment(number, seed), True
            except Broken as error:
                said, holds = f"BROKEN {error}", False
            yield f"{said} ({time.monotonic() - started:.0f} s)", holds


if __name__ == "__main__":
    main()

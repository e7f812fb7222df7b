"""A lake in an object store behaves like one in a folder: against a real S3 server on loopback."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import datetime
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from flows import protocol as protocols
from flows.freeze import differences, freeze, ledger_problems
from flows.stages import STAGES
from reports.explorer import explorer, write_explorer
from storage import tables, vectors
from storage.calls import Ledger
from storage.errors import InputError
from storage.lake import Lake
from storage.ledger import Ledger as Chain
from storage.places import read_whole
from storage.schemas import CALLS, SELECTIONS, SESSIONS, STATES, VERDICTS
from storage.seal import new_identity
from storage.submissions import Submission, Submissions
from storage.tables import CorruptPart
from storage.upkeep import clean, verify
from tasks.sealed import StillSealed, Unsealing
from tasks.sealing import seal_split
from tests.conftest import conversation, write_locomo
from tests.report_fixture import build_results, read_explorer
from tests.sealing_world import RULE, SECRET, World, plan_of, run, secret_conversation
from tests.test_storage_tables import SPEC

RECORDS = pa.table(
    {"unit": ["one", "one", "two"], "place": pa.array([1, 0, 0], pa.int32()), "text": ["red", "green", "blue"]}
)
SLOW_DOWN = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)
DENIED = b"<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"


class Flaky:
    """An S3 application that answers the next `failures` requests with 503 SlowDown and counts them.

    While it is `closed`, it takes nothing. `then` is called once, when the next request is answered. It writes one
    object at a time: `If-None-Match` is one step in S3, and two (look, then write) in the application beneath.
    """

    def __init__(self) -> None:
        self.app = DomainDispatcherApplication(create_backend_app)
        self.failures = 0
        self.refused = 0
        self.closed = False
        self.writing = Lock()
        self.then: Callable[[], object] | None = None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if self.failures > 0:
            self.failures -= 1
            self.refused += 1
            start_response("503 Slow Down", [("Content-Type", "application/xml")])
            return [SLOW_DOWN]
        if self.closed and environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            start_response("403 Forbidden", [("Content-Type", "application/xml")])
            return [DENIED]
        with self.writing if environ["REQUEST_METHOD"] == "PUT" else nullcontext():
            reply: Iterable[bytes] = self.app(environ, start_response)
        then, self.then = self.then, None
        if then:
            then()
        return reply


@pytest.fixture(scope="module")
def s3() -> Iterator[Flaky]:
    """An S3 server with the bucket `bucket`; the environment points at it."""
    import s3fs

    flaky = Flaky()
    served = make_server("127.0.0.1", 0, flaky, threaded=True)
    Thread(target=served.serve_forever, daemon=True).start()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "nobody")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{served.server_port}")
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().makedirs("bucket", exist_ok=True)
        yield flaky
    s3fs.S3FileSystem.clear_instance_cache()
    served.shutdown()


def _rows(*names: str) -> list[dict[str, Any]]:
    return [{"key": name, "value": len(name)} for name in names]


def test_rows_come_back_and_equal_keys_are_one_row(s3: Flaky) -> None:
    table = Lake.open("s3://bucket/rows").table(SPEC, "0" * 64)
    table.append(_rows("a", "bb"))
    table.append(_rows("bb", "ccc"))
    table.append(_rows("bb", "ccc"))
    assert len(table.parts()) == 2
    assert table.read().sort("key").rows() == [("a", 1), ("bb", 2), ("ccc", 3)]
    assert table.read(where=pl.col("key") == "a").rows() == [("a", 1)]
    assert table.missing(pl.DataFrame({"key": ["a", "d"]}))["key"].to_list() == ["d"]


def test_a_part_written_by_another_process_is_seen_at_once(s3: Flaky) -> None:
    reader, writer = (Lake.open("s3://bucket/seen").table(SPEC, "1" * 64) for _ in range(2))
    assert not reader.holds_any()
    writer.append(_rows("a"))
    assert reader.holds_any()


def test_writers_at_once_lose_and_double_nothing(s3: Flaky) -> None:
    def write(worker: int) -> None:
        table = Lake.open("s3://bucket/many").table(SPEC, "2" * 64)
        for i in range(10):
            table.append(_rows(f"k{(worker * 5 + i) % 25:02}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    found = Lake("s3://bucket/many").table(SPEC, "2" * 64).read()["key"].to_list()
    assert sorted(found) == sorted(set(found)) == [f"k{i:02}" for i in range(25)]


def test_calls_are_kept_and_shared_there(s3: Flaky) -> None:
    one, other = (Ledger(Lake.open("s3://bucket/calls")) for _ in range(2))
    row: dict[str, Any] = dict.fromkeys(CALLS.schema.names, "x") | {"repeat": 0, "characters": 1, "attempts": 1}
    row |= dict.fromkeys(("prompt_tokens", "completion_tokens", "cost", "latency_s", "top_logprobs"))
    for name in "ab":
        one.append([row | {"request": name, "answered_at": datetime(2026, 1, 1)}])
        assert name in other.find("ab")
    assert one.find("abc") == other.find("abc") and len(other.rows()) == 2
    out, item = Submissions(Lake("s3://bucket/calls")), Submission("n", "e", ({"request": "a"},))
    out.note(item)
    assert out.out("e", ["a"]) == [item] and out.out("e", ["b"]) == out.out("f", ["a"]) == []
    out.forget(item)
    out.forget(item)
    assert out.out("e", ["a"]) == []


def test_an_object_replaced_while_it_is_read_is_the_old_or_the_new_one(s3: Flaky) -> None:
    path = Lake.open("s3://bucket/replaced").root / "note.json"
    path.write_bytes(b"the old one")
    s3.then = lambda: path.write_bytes(b"the new and longer one")
    assert read_whole(path) in (b"the old one", b"the new and longer one")
    assert s3.then is None and read_whole(path) == b"the new and longer one"
    with pytest.raises(FileNotFoundError):
        read_whole(path.with_name("absent.json"))


def test_slow_down_is_tried_again(s3: Flaky) -> None:
    table = Lake.open("s3://bucket/slow").table(SPEC, "3" * 64)
    s3.refused = 0
    s3.failures = 2
    table.append(_rows("a"))
    s3.failures = 1
    assert table.read().rows() == [("a", 1)]
    assert s3.refused == 3


def test_a_truncated_object_is_named(s3: Flaky) -> None:
    table = Lake.open("s3://bucket/cut").table(SPEC, "4" * 64)
    table.append(_rows("a"))
    part = table.parts()[0]
    part.write_bytes(part.read_bytes()[:20])
    with pytest.raises(CorruptPart, match=r"s3://bucket/cut/.*part-.*delete this file"):
        table.read()


def test_a_store_that_does_not_answer_is_not_told_as_a_part_to_delete(s3: Flaky) -> None:
    table = Lake.open("s3://bucket/mute").table(SPEC, "4" * 64)
    table.append(_rows("a"))
    with pytest.MonkeyPatch.context() as patch:

        def mute(*_: object, **__: object) -> bytes:
            raise OSError("SlowDown")

        patch.setattr(tables, "read_whole", mute)
        patch.setattr(tables.pl, "scan_parquet", mute)
        with pytest.raises(OSError, match="SlowDown"):
            table.read()


def test_an_unknown_scheme_and_an_absent_bucket_are_one_clear_line(s3: Flaky) -> None:
    with pytest.raises(InputError, match="lake nowhere://x"):
        Lake.open("nowhere://x")
    with pytest.raises(InputError, match="lake s3://absent/x: cannot be opened"):
        Lake.open("s3://absent/x")


def test_a_bucket_that_may_not_be_written_is_one_clear_line(s3: Flaky) -> None:
    lake = Lake.open("s3://bucket/closed")
    s3.closed = True
    try:
        for write in (
            lambda: lake.table(SPEC, "5" * 64).append(_rows("a")),
            lambda: vectors.build(lake.vectors, "e" * 64, [(RECORDS, np.eye(3, dtype=np.float32))], 3),
            lambda: Chain(lake.ledger).append("note", {}),
            lambda: Lake.open("s3://bucket/new"),
        ):
            with pytest.raises(InputError, match=r"s3://bucket/\S+: a place that can be written expected"):
                write()
    finally:
        s3.closed = False


def test_an_endpoint_that_is_not_there_is_one_clear_line(s3: Flaky, monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.exceptions import EndpointConnectionError

    def nobody(*_: object) -> bool:
        raise EndpointConnectionError(endpoint_url="http://nowhere")

    monkeypatch.setattr(type(Lake("s3://bucket/nowhere").root), "exists", nobody)
    for new in (True, False):
        with pytest.raises(InputError, match=r"lake s3://bucket/nowhere: cannot be opened \(Could not connect"):
            Lake.open("s3://bucket/nowhere", new=new)


def test_what_a_killed_build_left_there_is_found_and_deleted(s3: Flaky) -> None:
    lake = Lake.open("s3://bucket/left")
    vectors.build(lake.vectors, "e" * 64, [(RECORDS, np.eye(3, dtype=np.float32))], 3)
    (finding,) = verify(lake).findings
    assert finding.path.endswith(vectors.folder_name("e" * 64)) and clean(lake, 3600) == []
    assert [str(path) for path in clean(lake, 0)] == [finding.path]
    assert verify(lake).findings == () and not list(lake.vectors.glob("*"))


def test_an_index_is_built_and_read_there(s3: Flaky) -> None:
    folder = Lake.open("s3://bucket/indexed").vectors
    assert vectors.build(folder, "f" * 64, [(RECORDS, np.eye(3, dtype=np.float32))], 3) == 3
    found = vectors.read(folder, "f" * 64, ["two", "one"])
    assert np.array_equal(found, np.eye(3, dtype=np.float32)[[2, 1, 0]])


def test_a_page_and_its_scripts_take_the_place_of_earlier_ones_there(s3: Flaky) -> None:
    reports = Lake.open("s3://bucket/pages").reports / "run"
    write_explorer(explorer(build_results(questions=3)), reports)
    written = write_explorer(explorer(build_results(questions=3, conversations=1)), reports)
    assert len(read_explorer(reports)[1]) == 3
    names = {path.name for path in reports.iterdir()}
    assert names == {"questions.html", written["details"].name}


def test_what_was_written_under_one_address_is_handed_over_to_another(s3: Flaky) -> None:
    lake = Lake.open("s3://bucket/handed")
    row = {"session": "s", "place": 0, "name": "1", "speaker": "Ada", "text": "hello", "caption": None}
    for _ in range(2):
        lake.table(SESSIONS, "a" * 64).append([row])
        lake.hand_over(SESSIONS, "a" * 64, "b" * 64)
        assert not lake.table(SESSIONS, "a" * 64).holds_any()
        assert lake.table(SESSIONS, "b" * 64).lookup(["s"])["text"].to_list() == ["hello"]


def test_a_run_there_gives_the_tables_of_a_run_in_a_folder(s3: Flaky, server: None, tmp_path: Path) -> None:
    from flows.benchmark import benchmark

    data = write_locomo(tmp_path / "data.json")
    said = protocols.load("sample", {"data.path": str(data), "arms": ["hybrid", "mem_pursuit"], "budgets": ["k2"]})
    lakes = [str(Lake.open(address).root) for address in (tmp_path / "lake", "s3://bucket/run")]
    summaries = [benchmark(said, lake, STAGES) for lake in lakes]
    assert summaries[0]["headline"] == summaries[1]["headline"]
    assert summaries[1]["paths"]["report"].startswith("s3://bucket/run/reports/")
    for spec in (SELECTIONS, STATES, VERDICTS):
        kept = [name for name in spec.schema.names if name != "latency_ms"]
        here, there = (
            pl.concat(
                Lake(lake).table(spec, scope.name).read(kept)
                for scope in sorted((Lake(lake).root / spec.name).iterdir())
            ).sort(spec.key)
            for lake in lakes
        )
        assert here.equals(there)
    again = benchmark(said, lakes[1], STAGES)
    assert not any(again["new"].values())


def test_lines_of_concurrent_writers_there_are_one_chain(s3: Flaky) -> None:
    path = Lake.open("s3://bucket/chained").ledger

    def write(worker: int) -> None:
        for place in range(2):
            Chain(path).append("note", {"by": worker, "place": place})

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, range(3)))
    lines = Chain(path).lines()
    assert [line.number for line in lines] == list(range(6))
    assert all([line.facts["place"] for line in lines if line.facts["by"] == w] == [0, 1] for w in range(3))
    objects = sorted(path.with_suffix("").iterdir())
    text = objects[3].read_bytes()
    objects[3].write_bytes(text.replace(b'"place":', b'"place":1'))
    assert Chain(path).problems() == ["line 3 edited: its hash is not that of its content"]
    objects[3].unlink()
    assert "line 3 deleted" in Chain(path).problems()
    objects[3].write_bytes(text)
    objects[5].unlink()
    assert Chain(path).problems() == ["lines 5 to 5 missing at the end"]


def test_of_two_seals_at_a_time_there_one_holds(s3: Flaky) -> None:
    path = Lake.open("s3://bucket/raced").ledger
    first, second = Chain(path), Chain(path)
    with second.locked() as seen:
        first.append("seal", {"benchmark": "locomo", "seal": "a"})
        with pytest.raises(InputError, match="seal: no other seal of locomo meanwhile expected, ledger line 0"):
            second.append_locked(seen, "seal", {"benchmark": "locomo", "seal": "b"}, once="benchmark")
    assert [line.facts["seal"] for line in first.lines()] == ["a"]


def test_a_split_is_sealed_frozen_and_opened_there(s3: Flaky, tmp_path: Path) -> None:
    lake, raw = "s3://bucket/sealed", tmp_path / "raw.json"
    world = World(tmp_path)
    write_locomo(raw, conversation("c1"), secret_conversation())
    seal_split(lake, "locomo", str(raw), RULE, new_identity(world.identity, Lake.open(lake)))
    run(world.protocol(), lake)  # type: ignore[arg-type]
    manifest = freeze(world.protocol(), lake, allow_dirty=True).path
    assert differences(manifest, lake) == [] and ledger_problems(Lake(lake)) == []
    leave = Unsealing.by(str(manifest), str(world.identity))
    with pytest.raises(StillSealed):
        plan_of(world.protocol("sealed"), lake)  # type: ignore[arg-type]
    plan = plan_of(world.protocol("sealed"), lake, leave)  # type: ignore[arg-type]
    assert all(SECRET in question.text for question in plan.questions())
    assert [line.kind for line in Chain(Lake(lake).ledger).lines()] == ["seal", "freeze", "unsealing"]

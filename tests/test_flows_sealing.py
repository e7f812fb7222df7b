"""Ways to peek at a sealed split, or to tune on it unseen: each is refused, or stands in the ledger."""

import json
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer.testing import CliRunner

from flows.calibrate import calibrate
from flows.cli import app
from flows.diagnose import diagnose
from flows.estimate import estimate
from flows.freeze import differences, freeze, ledger_problems
from flows.gate import sealing_of
from flows.rejudge import rejudge
from flows.report import report_stage
from flows.shards import Log
from flows.status import held
from flows.trace import trace
from flows.tune import Search, tune
from storage import environment, seal
from storage import manifest as manifests
from storage.environment import Tree
from storage.errors import InputError
from storage.lake import Lake
from storage.ledger import BrokenLedger, Ledger
from storage.manifest import FrozenDiffers
from storage.schemas import GOLD, QUESTIONS, SELECTIONS
from storage.seal import new_identity, seals
from tasks import sealed
from tasks.frozen import fields
from tasks.ingest import ingest
from tasks.plan import Plan
from tasks.sealed import StillSealed, Unsealing, opened
from tasks.sealing import seal_split
from tasks.sources import SOURCES
from tests.conftest import conversation, write_locomo
from tests.sealing_world import SECRET, World, plan_of, run


@pytest.fixture(scope="module", autouse=True)
def tree() -> Iterator[None]:
    """The tree as it is now, looked at once: what looks at it is tested beside `storage.environment`."""
    found = environment.tree()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(environment, "tree", lambda: found)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The split sealed, the open split run, nothing frozen."""
    world = World.make(tmp_path_factory.mktemp("made"))
    run(world.protocol(), world.lake)
    return world


@pytest.fixture
def world(made: World, tmp_path: Path) -> World:
    return made.copy(tmp_path / "world")


@pytest.fixture(scope="module")
def looked(made: World, tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Plan, dict[str, Any]]:
    """A world in which the split was frozen, unsealed, run and reported; not to be harmed."""
    world = made.copy(tmp_path_factory.mktemp("looked") / "world")
    frozen = world.freeze()
    protocol = world.protocol("sealed")
    plan = run(protocol, world.lake, world.leave(frozen.path))
    dataset = ingest(str(world.lake), "locomo", "")
    return world, plan, report_stage(protocol, plan, dataset, Log())


# Before a freeze


def test_nothing_in_the_lake_tells_a_sealed_question_or_answer(world: World) -> None:
    assert SECRET in world.raw.read_text(encoding="utf-8"), "else this test sees nothing"
    assert world.told() == []
    assert world.told("c2/q") == [], "not an id of a sealed question in pools, selections, answers or verdicts either"


def test_the_vector_store_has_records_alone(world: World) -> None:
    import lancedb

    base = lancedb.connect(Lake(world.lake).vectors)
    rows = [row for name in base.list_tables().tables for row in base.open_table(name).to_arrow().to_pylist()]
    plan = plan_of(world.protocol(), world.lake)
    assert {row["text"] for row in rows} == set(plan.record_frame(plan.stores[0], ["c1", "c2"])["text"])
    assert SECRET not in str(rows)


def test_a_plan_of_the_sealed_split_cannot_be_made(world: World) -> None:
    plan = plan_of(world.protocol(), world.lake)
    with pytest.raises(StillSealed, match=r"sealed split of locomo.*suffice freeze"):
        replace(plan, split="sealed")


def test_an_open_plan_that_is_bent_reads_nothing(world: World) -> None:
    plan = plan_of(world.protocol(), world.lake)
    object.__setattr__(plan, "split", "sealed")
    for peek in (plan.questions, plan.conversation_ids, plan.question_frame, plan.gold_frame):
        with pytest.raises(StillSealed):
            peek()
    with pytest.raises(StillSealed):
        plan.gold_of("c2")
    with pytest.raises(StillSealed):
        opened(plan)


def _ingested(world: World) -> None:
    from flows.ingest import ingest_stage

    ingest_stage(world.protocol("sealed"), str(world.lake), Log())


PEEKS: dict[str, Callable[[World], object]] = {
    "stages": _ingested,
    "status": lambda world: held(world.protocol("sealed"), str(world.lake)),
    "trace": lambda world: trace(world.protocol("sealed"), str(world.lake), "c2/q0"),
    "plan": lambda world: plan_of(world.protocol("sealed"), world.lake),
    "rejudge": lambda world: rejudge.fn(world.protocol("sealed"), str(world.lake)),
    "calibrate": lambda world: calibrate.fn(world.protocol("sealed"), str(world.lake), "lexical_match"),
    "diagnose": lambda world: diagnose(world.protocol("sealed"), str(world.lake), None),
    "estimate": lambda world: estimate(world.protocol("sealed"), str(world.lake)),
    "tune": lambda world: tune.fn(world.protocol("sealed"), str(world.lake), Search(("mmr", "hybrid"))),
}
COMMANDS: dict[str, list[str]] = {
    "run": ["run", "sample"],
    "analyse": ["analyse", "pursuit", "sample"],
    "rejudge": ["rejudge", "sample"],
    "calibrate": ["calibrate", "lexical_match"],
    "diagnose": ["diagnose", "sample"],
    "estimate": ["estimate", "sample"],
    "tune": ["tune", "sample", "mmr", "--grid", "trade=0.5,0.7"],
    "serve": ["serve", "sample", "--cron", "0 3 * * *"],
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_every_command_refuses_the_split_before_it_starts_a_server(
    words: list[str], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: object, **__: object) -> None:
        raise AssertionError("a server would have been started")

    for command in ("run", "analyse", "rejudge", "calibrate", "tune", "serve"):
        monkeypatch.setattr(f"flows.commands.{command}.configure", started)
    found = CliRunner().invoke(app, [*words, "--split", "sealed", "--lake", str(world.lake), "--set", 'data.path=""'])
    assert isinstance(found.exception, StillSealed), found.output
    assert world.ledger() == ["seal"]


def test_open_and_sealed_plans_of_learning_arms_freeze_the_same(world: World) -> None:
    said = {"arms": ["hybrid", "rsc@C1"], "comparisons": [{"arm": "rsc@C1", "against": "hybrid@k2"}]}
    shown = plan_of(world.protocol(**said), world.lake)
    hidden = world.protocol("sealed", **said).plan(
        str(world.lake), shown.dataset, shown.seal, seal=shown.seal, unsealing=Unsealing("m", "i")
    )
    assert shown.stores[0].learned_from != hidden.stores[0].learned_from, "else this test sees nothing"
    assert fields(shown) == fields(hidden)


@pytest.mark.parametrize("name", ["gpt-4o-mini", "gpt-4o-latest"])
def test_a_freeze_refuses_a_model_of_the_protocol_without_a_version(name: str, world: World) -> None:
    with pytest.raises(InputError, match=f"a model named with its version expected, '{name}' found"):
        world.freeze(**{"models.small.model": name})
    with pytest.raises(InputError, match="the open split run"):
        world.freeze(**{"models.small.model": "gpt-4o-mini-2024-07-18", "judges": ["lenient(model=small)"]})


def test_what_a_freeze_fixes_of_models_tells_replies_apart_and_not_how_they_are_reached(world: World) -> None:
    def frozen(**changes: Any) -> dict[str, Any]:
        said = {
            "models.small.model": "m-2026-01-01",
            "answerer": "prompted(model=small)",
            "judges": ["lenient(model=small)"],
            "sufficiency.judges": ["blinded(model=small)"],
        }
        return fields(plan_of(world.protocol(**{**said, **changes}), world.lake))

    one = frozen()
    assert frozen(**{"models.small.base_url": "http://127.0.0.1:9/v1"}) == one
    other = frozen(**{"models.small.temperature": 0.5})
    for field in ("models", "answerer", "judges", "sufficiency"):
        assert one[field] != other[field], field
    assert {*one} == {*manifests.FIELDS}


def test_going_on_with_a_sealed_run_that_was_cut_off_needs_its_freeze_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows import runs
    from flows.commands.resume import resume

    runs.begun(str(world.lake), world.protocol("sealed"), ("ingest",))
    monkeypatch.setattr(runs, "_alive", lambda _: False)
    with pytest.raises(StillSealed):
        resume(str(world.lake), quiet=True)
    assert world.ledger() == ["seal"]


@pytest.mark.parametrize("peek", PEEKS.values(), ids=PEEKS)
def test_every_way_in_refuses_the_split_by_name_and_says_how_to_freeze(
    peek: Callable[[World], object], world: World
) -> None:
    with pytest.raises(StillSealed, match=r"sealed split of locomo: a freeze and an identity expected.*suffice freeze"):
        peek(world)
    assert world.ledger() == ["seal"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "P", "--split", "sealed"],
        ["run", "P", "--split", "sealed", "--only", "pool"],
        ["report", "P", "--split", "sealed"],
        ["status", "P", "--split", "sealed"],
        ["trace", "c2/q0", "--protocol", "P", "--split", "sealed"],
        ["run", "P", "--set", "data.split=sealed"],
        ["run", "P", "--split", "sealed", "--freeze", "M"],
    ],
    ids=" ".join,
)
def test_every_command_refuses_the_split(arguments: list[str], world: World) -> None:
    from typer.testing import CliRunner

    from flows.cli import app

    said = world.folder / "P.toml"
    said.write_text('name = "p"\narms = ["hybrid@k2"]\n[data]\nbenchmark = "locomo"\n', encoding="utf-8")
    given = [str(said) if each == "P" else each for each in arguments]
    result = CliRunner().invoke(app, [*given, "--lake", str(world.lake)])
    assert isinstance(result.exception, InputError)
    assert "sealed split" in str(result.exception) and SECRET not in str(result.exception)
    assert world.ledger() == ["seal"]


def test_the_raw_file_read_again_gives_the_open_questions_alone(world: World) -> None:
    found = ingest(str(world.lake), "locomo", str(world.raw))
    lake = Lake(world.lake)
    assert set(lake.table(QUESTIONS, found.dataset).read()["conversation_id"]) == {"c1"}
    assert set(lake.table(GOLD, found.gold).read()["question_id"]) == {"c1/q0", "c1/q1", "c1/q2"}
    assert SECRET not in json.dumps(found.facts) and "c2/q" not in json.dumps(found.facts)
    assert world.told() == []


def test_the_raw_file_under_another_digest_is_refused(world: World) -> None:
    world.raw.write_text(world.raw.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="sealed in this lake from a file of SHA-256"):
        ingest(str(world.lake), "locomo", str(world.raw))


def test_the_same_conversations_under_another_benchmarks_name_are_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SOURCES, "renamed", SOURCES["locomo"])
    with pytest.raises(InputError, match="conversations that are not sealed in this lake expected"):
        ingest(str(world.lake), "renamed", str(world.raw))
    assert world.told() == []


def test_a_seal_that_is_taken_away_does_not_open_the_raw_file(world: World) -> None:
    for path in sorted((world.lake / "sealed").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    with pytest.raises(InputError, match="of ledger line 0 expected, none found"):
        ingest(str(world.lake), "locomo", str(world.raw))


def test_a_split_is_sealed_once(world: World) -> None:
    with pytest.raises(InputError, match=r"sealed by conversations\(ids=c2\) found"):
        seal_split(str(world.lake), "locomo", str(world.raw), "whole", seals(Lake(world.lake), "locomo")[0].recipient)


def test_what_a_lake_has_seen_in_the_clear_cannot_be_sealed_there(tmp_path: Path) -> None:
    raw = write_locomo(tmp_path / "raw.json")
    lake = Lake.open(tmp_path / "lake")
    ingest(str(lake.root), "locomo", str(raw))
    other = write_locomo(tmp_path / "edited.json", conversation(qa=conversation()["qa"][:2]))
    for path in (raw, other):
        with pytest.raises(InputError, match="holds its questions in the clear"):
            seal_split(str(lake.root), "locomo", str(path), "whole", new_identity(tmp_path / path.stem, lake))


def test_a_protocol_that_is_sealed_by_default_reads_no_unsealed_file(tmp_path: Path) -> None:
    raw = write_locomo(tmp_path / "raw.json")
    with pytest.raises(InputError, match=r"a sealed split of locomo expected.*nothing was read"):
        ingest(str(Lake.open(tmp_path / "lake").root), "locomo", str(raw), None, "sealed")
    assert not (tmp_path / "lake" / "questions").exists()


def test_an_identity_is_not_written_where_it_would_open_its_lake(world: World) -> None:
    with pytest.raises(InputError, match="a place outside the lake expected"):
        new_identity(world.lake / "key.txt", Lake(world.lake))
    assert world.identity.stat().st_mode & 0o077 == 0


# The freeze


def test_a_freeze_needs_a_clean_tree_or_keeps_the_digest_of_its_changes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = environment.tree().files
    monkeypatch.setattr(environment, "tree", lambda: Tree(files, "c0ffee", "d1ff", ("flows/cli.py",)))
    with pytest.raises(InputError, match=r"a clean source tree expected, changes of flows/cli\.py found"):
        freeze(world.protocol(), str(world.lake))
    plan = world.open(freeze(world.protocol(), str(world.lake), allow_dirty=True).path)
    assert any("uncommitted changes, digest d1ff" in line for line in sealing_of(plan, []).lines())


def test_a_freeze_needs_the_open_split_run_under_the_same_digests(world: World, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run under these digests expected, compose .* 6 of 9 found"):
        world.freeze(arms=["hybrid", "mmr", "dense"])
    with pytest.raises(InputError, match="a run of this very protocol over the open split expected"):
        world.freeze(**{"statistics.samples": 200})
    never_run = World.make(tmp_path / "new")
    with pytest.raises(InputError, match="store turns: conversations: 0 of 2 found"):
        never_run.freeze()


def test_a_whole_sealed_benchmark_has_no_open_split_to_run(tmp_path: Path) -> None:
    world = World.make(tmp_path, "whole")
    assert world.freeze().manifest.fields["splits"]["rule"] == "whole"


def test_a_freeze_needs_a_primary_comparison_and_versioned_models(world: World) -> None:
    with pytest.raises(InputError, match="a primary comparison expected"):
        world.freeze(comparisons=[])
    with pytest.raises(InputError, match="a model named with its version expected, 'text-embedding-3-small' found"):
        world.freeze(stores=[{"name": "turns", "encoder": "endpoint(model=text-embedding-3-small)"}])


def test_a_freeze_needs_a_sealed_split(tmp_path: Path) -> None:
    raw = write_locomo(tmp_path / "raw.json", conversation("c1"))
    lake = Lake.open(tmp_path / "lake")
    with pytest.raises(InputError, match=r"a sealed split of locomo expected.*suffice seal"):
        freeze(World(tmp_path).protocol(**{"data.path": str(raw)}), str(lake.root), allow_dirty=True)


def test_two_freezes_racing_both_stand_in_the_ledger(world: World) -> None:
    with ThreadPoolExecutor(2) as pool:
        made = [future.result() for future in [pool.submit(world.freeze), pool.submit(world.freeze)]]
    assert world.ledger() == ["seal", "freeze", "freeze"]
    known = [line.facts["manifest"] for line in Ledger(Lake(world.lake).ledger).lines("freeze")]
    assert sorted(known) == sorted(each.manifest.digest for each in made) and len(set(known)) == 2
    assert not ledger_problems(Lake(world.lake))


# What is about to run is not what was frozen

OTHER_ARM: dict[str, Any] = {
    "arms": ["hybrid", "mmr(trade=0.6)", "oracle"],
    "comparisons": [{"arm": "mmr(trade=0.6)@k2", "against": "hybrid@k2"}],
}
CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "an arm's parameter": (OTHER_ARM, r"arms\.mmr\(trade=0\.6\)@k2: nothing frozen"),
    "an arm more": ({"arms": ["hybrid", "mmr", "oracle", "dense"]}, r"arms\.dense@k2: nothing frozen"),
    "a budget": ({"budgets": ["k3"], "comparisons": []}, r"arms\.hybrid@k2"),
    "a judge": ({"judges": ["stem_f1"]}, r"judges\.lexical_match"),
    "resamples": ({"statistics.samples": 500}, r"statistics\.samples: 100 frozen, 500 present"),
    "the seed": ({"seed": 1}, r"statistics\.seed: 20261129 frozen, 1 present"),
    "a denominator": ({"data.apart": []}, r"denominators\.apart"),
    "fewer questions": ({"data.limit": 1}, r"splits\.limit: nothing frozen, 1 present"),
    "some kinds": ({"data.kinds": ["temporal"]}, r"splits\.kinds"),
    "the primary comparison": (
        {"comparisons": [{"arm": "oracle@k2", "against": "hybrid@k2"}]},
        r"primary comparison\.arm: mmr@k2 frozen, oracle@k2 present",
    ),
    "the pool": ({"stores.0.pool.size": 3}, r"protocol: "),
    "the answerer": ({"answerer": "extractive(joined=1)"}, r"answerer: "),
}


@pytest.mark.parametrize(("changes", "field"), CHANGES.values(), ids=CHANGES)
def test_a_changed_protocol_is_refused_by_its_field(changes: dict[str, Any], field: str, world: World) -> None:
    frozen = world.freeze()
    with pytest.raises(FrozenDiffers, match=rf"freeze: {field}.*freeze anew"):
        world.open(frozen.path, **changes)
    assert world.ledger() == ["seal", "freeze"], "a refused look is none"


def test_changed_code_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = world.freeze()
    monkeypatch.setattr(environment, "tree", lambda: Tree("0" * 64, None, None))
    with pytest.raises(FrozenDiffers, match=r"source tree: .* frozen, 0000000000000000 present"):
        world.open(frozen.path)


def test_another_version_of_a_package_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = world.freeze()
    monkeypatch.setattr(environment, "versions", lambda: {**frozen.manifest.fields["versions"], "polars": "9.9"})
    with pytest.raises(FrozenDiffers, match=r"versions\.polars: .* frozen, 9\.9 present"):
        world.open(frozen.path)


def test_a_plan_rebuilt_by_hand_is_compared_too(world: World) -> None:
    plan = world.open(world.freeze().path)
    for changes, field in (
        ({"arm_forms": ("dense",)}, "arms"),
        ({"conversations": ("c2",)}, "splits.conversations"),
        ({"dataset": "0" * 64}, "data.dataset"),
        ({"declared": plan.declared.replace("100", "101")}, "statistics.samples"),
        ({"declared": ""}, "statistics"),
    ):
        with pytest.raises(FrozenDiffers) as refused:
            replace(plan, **changes).questions()
        assert refused.value.difference.field.startswith(field)


def test_a_report_by_other_statistics_than_the_plans_is_refused(world: World) -> None:
    plan = world.open(world.freeze().path)
    other = world.protocol("sealed", **{"statistics.samples": 101})
    with pytest.raises(FrozenDiffers, match=r"statistics\.samples: 100 frozen, 101 present"):
        report_stage(other, plan, ingest(str(world.lake), "locomo", ""), Log())


def test_an_edited_manifest_is_refused(world: World) -> None:
    frozen = world.freeze()
    frozen.path.write_text(frozen.path.read_text(encoding="utf-8").replace('"trade": 0.5', '"trade": 0.6'))
    with pytest.raises(InputError, match="was edited: digest"):
        world.open(frozen.path, **OTHER_ARM)


def test_a_signed_manifest_opens_by_its_signers_signature_alone(world: World, tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    ours, other = (Ed25519PrivateKey.generate() for _ in range(2))
    key = tmp_path / "key.pem"
    key.write_bytes(ours.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    frozen = freeze(world.protocol(), str(world.lake), allow_dirty=True, key=key)
    written, before = frozen.path.read_text(encoding="utf-8"), world.ledger()
    said = json.loads(written)
    for signature in (None, other.sign(frozen.manifest.digest.encode()).hex(), "no hex"):
        frozen.path.write_text(json.dumps({**said, "signature": signature}), encoding="utf-8")
        with pytest.raises(InputError, match=r"a signature by the key .* expected"):
            world.open(frozen.path)
    assert world.ledger() == before
    frozen.path.write_text(written, encoding="utf-8")
    public = ours.public_key().public_bytes_raw().hex()
    shown = sealing_of(world.open(frozen.path), [])
    assert shown.signer == public and any(public in line for line in shown.lines())
    unsigned = world.freeze()
    said = json.loads(unsigned.path.read_text(encoding="utf-8"))
    said["signature"] = ours.sign(unsigned.manifest.digest.encode()).hex()
    unsigned.path.write_text(json.dumps(said), encoding="utf-8")
    with pytest.raises(InputError, match="no signature, since the manifest names no signer"):
        world.open(unsigned.path)


def test_a_manifest_written_by_hand_is_refused(world: World, tmp_path: Path) -> None:
    frozen = world.freeze()
    fields = json.loads(json.dumps(frozen.manifest.fields).replace('"trade": 0.5', '"trade": 0.6'))
    forged = manifests.Manifest(fields, frozen.manifest.notes)
    manifests.write(tmp_path / "forged.json", forged)
    with pytest.raises(InputError, match="a manifest of this lake's ledger expected"):
        world.open(tmp_path / "forged.json", **OTHER_ARM)


def test_a_manifest_is_written_once(world: World) -> None:
    frozen = world.freeze()
    with pytest.raises(InputError, match="manifests are written once"):
        manifests.write(frozen.path, frozen.manifest)


def test_verify_names_every_difference(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = world.freeze()
    assert differences(frozen.path, str(world.lake)) == []
    versions = {**frozen.manifest.fields["versions"], "polars": "9.9", "numpy": "9.9"}
    monkeypatch.setattr(environment, "versions", lambda: versions)
    found = [each.field for each in differences(frozen.path, str(world.lake))]
    assert found == ["versions.numpy", "versions.polars"]


# The key and the files


def test_a_wrong_identity_opens_nothing_and_writes_nothing(world: World, tmp_path: Path) -> None:
    frozen, other = world.freeze(), tmp_path / "other.txt"
    new_identity(other, Lake(world.lake))
    nonsense, nothing = tmp_path / "nonsense.txt", tmp_path / "nothing.txt"
    nonsense.write_text(f"AGE-SECRET-KEY-{SECRET}")
    nothing.write_text("# no key")
    for identity, said in (
        (other, "another found; name the file of the right one"),
        (nonsense, "lines AGE-SECRET-KEY-1… expected"),
        (nothing, "none found"),
        (tmp_path / "absent", "none found"),
    ):
        with pytest.raises(InputError, match=said) as refused:
            world.open(frozen.path, identity)
        assert SECRET not in str(refused.value), "a key is never quoted"
    assert world.ledger() == ["seal", "freeze"] and world.told() == []


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


HARMS: dict[str, Callable[[bytes], bytes]] = {
    "one bit": _flipped,
    "cut short": lambda data: data[:-100],
    "empty": lambda _: b"",
}


@pytest.mark.parametrize("table", ["questions", "gold"])
@pytest.mark.parametrize("harm", HARMS.values(), ids=HARMS)
def test_a_harmed_file_is_refused(harm: Callable[[bytes], bytes], table: str, world: World) -> None:
    frozen = world.freeze()
    path = next((world.lake / "sealed").rglob(f"{table}.parquet.encrypted"))
    path.write_bytes(harm(path.read_bytes()))
    with pytest.raises(InputError, match=f"sealed {table} of locomo: the file as it was sealed expected"):
        world.open(frozen.path)
    assert world.ledger() == ["seal", "freeze"]


def test_a_file_or_a_seal_of_another_split_is_refused(world: World, tmp_path: Path) -> None:
    frozen, other = world.freeze(), World.make(tmp_path / "other")
    ours, theirs = (next((each.lake / "sealed").iterdir()) for each in (world, other))
    kept = {path.name: path.read_bytes() for path in ours.iterdir()}
    (ours / "gold.parquet.encrypted").write_bytes((theirs / "gold.parquet.encrypted").read_bytes())
    with pytest.raises(InputError, match="the file as it was sealed expected"):
        world.open(frozen.path)
    for path in theirs.iterdir():
        (ours / path.name).write_bytes(path.read_bytes())
    with pytest.raises(InputError, match="a seal that the ledger names expected"):
        world.open(frozen.path, other.identity)
    for name, data in kept.items():
        (ours / name).write_bytes(data)
    assert world.open(frozen.path).questions()


def test_an_edited_seal_is_refused(world: World) -> None:
    path = next((world.lake / "sealed").rglob("seal.json"))
    path.write_text(path.read_text(encoding="utf-8").replace("conversations(ids=c2)", "conversations(ids=c1)"))
    with pytest.raises(InputError, match="a seal that the ledger names expected"):
        world.freeze()


# The ledger


def _edit(lines: list[str]) -> list[str]:
    return [lines[0], lines[1].replace('"protocol":"world"', '"protocol":"other"'), *lines[2:]]


BREAKS: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "edited": (_edit, "line 1 edited"),
    "deleted": (lambda lines: [lines[0], *lines[2:]], "line 1 deleted"),
    "reordered": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "line 2 reordered"),
    "cut": (lambda lines: lines[:-1], "lines 3 to 3 missing at the end"),
    "emptied": (lambda _: [], "lines 0 to 3 missing at the end"),
}


@pytest.mark.parametrize(("harm", "said"), BREAKS.values(), ids=BREAKS)
def test_a_harmed_ledger_is_named_and_opens_nothing(
    harm: Callable[[list[str]], list[str]], said: str, world: World
) -> None:
    frozen = world.freeze()
    world.freeze()
    world.open(frozen.path)
    path = Lake(world.lake).ledger
    path.write_text("".join(f"{line}\n" for line in harm(path.read_text(encoding="utf-8").splitlines())))
    assert any(said in problem for problem in ledger_problems(Lake(world.lake)))
    with pytest.raises(BrokenLedger, match=said):
        world.open(frozen.path)


def test_a_ledger_rewritten_whole_contradicts_the_manifest(world: World) -> None:
    """A freeze that was taken back: the chain is made anew without it, and the later manifest remembers."""
    first, second = world.freeze(), world.freeze()
    ledger = Ledger(Lake(world.lake).ledger)
    facts = [(line.kind, line.facts) for line in ledger.lines() if line.facts.get("manifest") != first.manifest.digest]
    for path in world.lake.glob("ledger*"):
        path.unlink()
    for kind, fact in facts:
        ledger.append(kind, fact)
    assert ledger.problems() == []
    with pytest.raises(InputError, match="the ledger was rewritten"):
        world.open(second.path)
    assert any("has no line" in problem for problem in ledger_problems(Lake(world.lake)))


def test_every_look_is_a_line_and_the_second_is_not_the_first(world: World) -> None:
    frozen = world.freeze()
    first, second = world.open(frozen.path), world.open(frozen.path)
    assert world.ledger() == ["seal", "freeze", "unsealing", "unsealing"]
    assert "the first look at it" in sealing_of(first, []).lines()[0]
    assert "not the first look at it: 1 unsealing" in sealing_of(second, []).lines()[0]


def test_looking_freezing_anew_and_looking_again_is_counted(world: World) -> None:
    world.open(world.freeze().path)
    again = sealing_of(world.open(world.freeze().path), [])
    assert (again.freezes_before, again.unsealings_before) == (1, 1)


def test_a_worker_opens_by_the_look_of_its_run_and_is_noted(world: World) -> None:
    plan = world.open(world.freeze().path)
    sent = pickle.dumps(plan)
    assert SECRET.encode() not in sent and b"AGE-SECRET" not in sent
    seal._KEPT.clear()  # another process has opened nothing
    sealed._opened_before.cache_clear()
    arrived: Plan = pickle.loads(sent)
    assert len(arrived.questions()) == 3 and arrived.unsealing is not None
    lines = Ledger(Lake(world.lake).ledger).lines("unsealing")
    assert [line.facts["look"] for line in lines] == [None, arrived.unsealing.look]
    assert sealing_of(world.open(Path(arrived.unsealing.manifest)), []).unsealings_before == 1


def test_a_look_that_the_ledger_does_not_have_opens_nothing(world: World) -> None:
    frozen = world.freeze()
    leave = replace(world.leave(frozen.path), look="0" * 64)
    with pytest.raises(InputError, match="a line of the ledger expected"):
        plan_of(world.protocol("sealed"), world.lake, leave)


def test_a_report_from_a_copied_lake_is_known_by_its_unsealing(
    world: World, looked: tuple[World, Plan, dict[str, Any]], tmp_path: Path
) -> None:
    theirs, _, summary = looked
    assert ledger_problems(Lake(theirs.lake)) == [], "the copy's own ledger has it"
    folder = Path(summary["paths"]["report"]).parent
    target = world.lake / "reports" / folder.name
    target.mkdir(parents=True)
    (target / "summary.json").write_bytes((folder / "summary.json").read_bytes())
    assert any("an unsealing without a line" in problem for problem in ledger_problems(Lake(world.lake)))


def test_a_clock_set_back_is_recorded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import datetime, tzinfo

    from storage import ledger

    class Yesterday(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> "Yesterday":
            return cls(2020, 1, 1, tzinfo=tz)

    frozen = world.freeze()
    monkeypatch.setattr(ledger, "datetime", Yesterday)
    plan = world.open(frozen.path)
    assert Ledger(Lake(world.lake).ledger).lines()[-1].clock_behind
    assert any("clock was set back" in line for line in sealing_of(plan, []).lines())


# After an unsealing


def test_a_sealed_run_leaves_no_question_and_no_gold_in_the_clear(looked: tuple[World, Plan, dict[str, Any]]) -> None:
    world, plan, _ = looked
    assert world.told() == []
    assert world.told("c2/q0") != [], "answers and selections are kept by the ids of their questions"
    assert plan.questions()[0].text == f"What about {SECRET}0, the canoe?"
    rows = Lake(world.lake).table(SELECTIONS, plan.stores[0].selections(plan.seed)).read()
    cues = rows["trace"].explode().drop_nulls().struct.field("cue").to_list()
    assert set(cues) <= {""}


def test_the_report_says_under_what_it_was_made(looked: tuple[World, Plan, dict[str, Any]]) -> None:
    world, plan, summary = looked
    assert "questions" not in summary["paths"], "the page that shows questions is not written"
    for name in ("report", "markdown"):
        text = Path(summary["paths"][name]).read_text(encoding="utf-8")
        assert "the first look at it" in text and "exploratory" in text and "optimism" in text
        assert manifests.read(Path(plan.unsealing.manifest if plan.unsealing else "")).digest[:16] in text
    assert world.ledger() == ["seal", "freeze", "unsealing", "report"]


def test_sealed_answers_are_judged_and_scored_as_open_ones(looked: tuple[World, Plan, dict[str, Any]]) -> None:
    main = pl.read_csv(looked[2]["paths"]["main"], schema_overrides={"k": pl.String})
    rows = main.filter((pl.col("kind") == "all") & (pl.col("metric") == "complete_evidence"))
    assert dict(rows.select("arm", "value").iter_rows())["oracle@k2"] == 1.0
    assert set(main["split"]) == {"sealed"}


def test_a_comparison_that_was_declared_is_not_marked(looked: tuple[World, Plan, dict[str, Any]]) -> None:
    from reports.sealing import Sealing

    _, plan, _ = looked
    sealing: Sealing = sealing_of(plan, [])
    assert sealing.is_declared("mmr@k2", "hybrid@k2") and sealing.is_declared("hybrid@k2", "mmr@k2")
    assert not sealing.is_declared("oracle@k2", "hybrid@k2")


@pytest.fixture
def flow(server: None) -> Iterator[Callable[..., dict[str, Any]]]:
    from flows.benchmark import benchmark

    yield benchmark


def test_a_scheduled_run_under_a_freeze_stops_when_the_tree_changed_and_prefect_learns_no_secret(
    made: World, tmp_path: Path, flow: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    import anyio
    from prefect.client.orchestration import get_client

    world = made.copy(tmp_path / "world")
    frozen = world.freeze()
    files = {"freeze": str(frozen.path), "identity": str(world.identity)}
    summary = flow(world.protocol("sealed"), str(world.lake), **files)
    assert summary["sealing"] and world.told() == []
    with monkeypatch.context() as patched:
        patched.setattr(environment, "tree", lambda: Tree("0" * 64, None, None))
        with pytest.raises(FrozenDiffers, match="source tree"):
            flow(world.protocol("sealed"), str(world.lake), **files)

    async def known() -> str:
        async with get_client() as client:
            runs = [await client.read_flow_runs(), await client.read_task_runs(), await client.read_logs()]
            return str([[each.model_dump(mode="json") for each in kind] for kind in runs])

    seen = anyio.run(known)
    assert "freeze: source tree" in seen and SECRET not in seen and "AGE-SECRET" not in seen

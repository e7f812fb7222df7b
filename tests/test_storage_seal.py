"""A sealed file tells its size and nothing else, and opens as itself alone."""

import base64
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyrage
import pytest
from pyarrow.parquet.encryption import create_decryption_properties

from storage import seal as sealing
from storage.errors import InputError
from storage.lake import Lake
from storage.schemas import GOLD, QUESTIONS
from storage.seal import BLOCK, Seal, seal


def _tables(count: int) -> dict[str, pa.Table]:
    questions = [
        {"id": f"q{n}", "conversation_id": "c", "kind": "k", "asked_at": None, "text": f"why {n}?", "place": n}
        for n in range(count)
    ]
    gold: list[dict[str, Any]] = [
        {"question_id": f"q{n}", "answer": f"since {n}", "turn_ids": ["t"], "session_ids": [], "rubric": []}
        for n in range(count)
    ]
    gold = [{name: row.get(name, False) for name in GOLD.schema.names} for row in gold]
    return {
        "questions": pa.Table.from_pylist(questions, schema=QUESTIONS.schema),
        "gold": pa.Table.from_pylist(gold, schema=GOLD.schema),
    }


PUBLIC = {"version": "v", "rule": "whole", "dataset": "d", "gold": "g", "conversations": (), "facts": {}}


def _seal(
    folder: Path, count: int = 3, benchmark: str = "b", identity: pyrage.x25519.Identity | None = None
) -> tuple[Lake, Seal, pyrage.x25519.Identity]:
    lake, holder = Lake.open(folder), identity or pyrage.x25519.Identity.generate()
    return lake, seal(lake, {"benchmark": benchmark, **PUBLIC}, _tables(count), str(holder.to_public())), holder


def _files(lake: Lake) -> dict[str, Path]:
    return {path.name.partition(".")[0]: path for path in lake.sealed.rglob("*.encrypted")}


def test_what_was_sealed_comes_back(tmp_path: Path) -> None:
    lake, sealed, identity = _seal(tmp_path, 5)
    for name, table in _tables(5).items():
        found = sealing._decrypted(lake, sealed, name, [identity])
        assert found.to_arrow().cast(table.schema).equals(table)


def test_the_file_is_parquet_that_nothing_reads_without_its_key(tmp_path: Path) -> None:
    lake, sealed, identity = _seal(tmp_path)
    for name, path in _files(lake).items():
        data = path.read_bytes()
        assert data[:4] == data[-4:] == b"PARE", "Parquet with an encrypted footer"
        for words in (b"why", b"since", b"question", b"conversation_id", b"payload"):
            assert (words in data) == (words == b"payload" and words in data[-200:])
        with pytest.raises((pa.ArrowException, OSError)):
            pq.read_table(path)
        key = pyrage.decrypt(base64.b64decode(sealed.keys[name]), [identity])
        with pytest.raises((pa.ArrowException, OSError)):
            pq.read_table(path, decryption_properties=create_decryption_properties(key))
        with pytest.raises((pa.ArrowException, OSError)):
            wrong = create_decryption_properties(bytes(32), aad_prefix=sealing._bound("b", "v", name))
            pq.read_table(path, decryption_properties=wrong)


def test_the_size_does_not_tell_how_many_rows_there_are(tmp_path: Path) -> None:
    sizes = {
        count: {name: path.stat().st_size for name, path in _files(_seal(tmp_path / str(count), count)[0]).items()}
        for count in (1, 2, 50, 400)
    }
    assert len({frozenset(size.items()) for size in sizes.values()}) == 1
    assert set(sizes[1]) == {"questions", "gold"} and all(BLOCK < size < 2 * BLOCK for size in sizes[1].values())


def test_every_file_has_a_key_of_its_own(tmp_path: Path) -> None:
    identity = pyrage.x25519.Identity.generate()
    made = [_seal(tmp_path / name, identity=identity)[1] for name in "ab"]
    keys = {pyrage.decrypt(base64.b64decode(wrapped), [identity]) for each in made for wrapped in each.keys.values()}
    assert len(keys) == 4
    assert len({digest for each in made for digest in each.files.values()}) == 4


@pytest.mark.parametrize("change", [{"benchmark": "other"}, {"version": "w"}], ids=str)
def test_a_file_opens_as_its_own_benchmark_and_version_alone(change: dict[str, Any], tmp_path: Path) -> None:
    lake, sealed, identity = _seal(tmp_path)
    other = replace(sealed, **change)
    other.folder(lake).mkdir(parents=True, exist_ok=True)
    for path in _files(lake).values():
        (other.folder(lake) / path.name).write_bytes(path.read_bytes())
    with pytest.raises(InputError, match="of another split or version"):
        sealing._decrypted(lake, other, "gold", [identity])


def test_gold_does_not_open_as_questions_though_key_and_digest_are_changed_too(tmp_path: Path) -> None:
    lake, sealed, identity = _seal(tmp_path)
    files = _files(lake)
    files["questions"].write_bytes(files["gold"].read_bytes())
    forged = replace(
        sealed,
        keys={**sealed.keys, "questions": sealed.keys["gold"]},
        files={**sealed.files, "questions": sealed.files["gold"]},
    )
    target = forged.folder(lake)
    target.mkdir(parents=True, exist_ok=True)
    (target / files["questions"].name).write_bytes(files["gold"].read_bytes())
    with pytest.raises(InputError, match="of another split or version"):
        sealing._decrypted(lake, forged, "questions", [identity])


def test_another_identity_is_refused_and_names_whose_is_wanted(tmp_path: Path) -> None:
    lake, sealed, _ = _seal(tmp_path)
    with pytest.raises(InputError, match=f"the identity of {sealed.recipient[:12]}"):
        sealing._decrypted(lake, sealed, "gold", [pyrage.x25519.Identity.generate()])


def test_a_recipient_that_is_none_seals_nothing(tmp_path: Path) -> None:
    lake = Lake.open(tmp_path)
    with pytest.raises(InputError, match="an age public key age1… expected, 'me' found"):
        seal(lake, {"benchmark": "b", **PUBLIC}, _tables(1), "me")
    assert not lake.sealed.exists() and not lake.ledger.exists()

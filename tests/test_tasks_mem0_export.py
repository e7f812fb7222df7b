"""What mem0 finds is exported without a network, and its keyword search is known to have run."""

import socket
from importlib.util import find_spec
from pathlib import Path

import pytest

from flows import protocol as protocols
from flows.pools import export_pool
from storage.errors import InputError
from storage.pool_files import POOL, read
from tasks.imported.mem0 import Bm25, place_of
from tests.conftest import write_locomo


def test_weights_of_bm25_by_hand() -> None:
    two, none = Bm25().embed(["The parrots saw a parrot sing", "the of and"])
    weights = dict(zip(two.indices.tolist(), two.values.tolist(), strict=True))
    length = 1.2 * (1 - 0.75 + 0.75 * 4 / 256)
    assert weights == pytest.approx(
        {
            place_of("parrot"): 2 * 2.2 / (2 + length),
            place_of("saw"): 2.2 / (1 + length),
            place_of("sing"): 2.2 / (1 + length),
        }
    )
    assert len(none.indices) == len(none.values) == 0


def test_only_a_system_that_can_be_run_here_is_exported(tmp_path: Path) -> None:
    protocol = protocols.load("sample")
    with pytest.raises(InputError, match="mem0 expected, 'other' found"):
        export_pool(protocol, str(tmp_path), "other", str(tmp_path / "to"), 5, "")
    with pytest.raises(InputError, match="name it with --to"):
        export_pool(protocol, str(tmp_path), "mem0", "", 5, "")


def test_mem0_searches_the_records_and_connects_to_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if find_spec("mem0") is None:
        pytest.skip("needs the extra mem0")
    asked: list[object] = []

    def refuse(*where: object, **more: object) -> None:
        asked.append(where)
        raise OSError("no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    protocol = protocols.load("sample", {"data.path": str(write_locomo(tmp_path / "x.json"))})
    told = export_pool(protocol, str(tmp_path / "lake"), "mem0", str(tmp_path / "to"), 3, "")
    pool = read(tmp_path / "to", POOL)
    assert not asked, "neither a connection nor a name was asked for"
    assert pool is not None
    assert told["scored by"].startswith("dense and BM25")
    assert told["questions"] == 3 and told["largest pool"] == 3
    assert pool["candidate_id"].n_unique() == pool["text"].n_unique()
    kiwi = pool.filter(question_id="c1/q1").sort("native_rank")
    assert kiwi["candidate_id"][0] == "D2:2" and "keyword" in kiwi["channels"][0]
    assert kiwi["source_turn_ids"][0].to_list() == ["c1/D2:2"]

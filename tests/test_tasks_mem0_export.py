"""What mem0 finds is exported without a network, and its keyword search is known to have run."""

import json
import re
import socket
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from flows import protocol as protocols
from flows.pools import export_pool
from storage.errors import InputError
from storage.pool_files import POOL, read
from tasks.imported.mem0 import Bm25, place_of
from tasks.llm import EndpointError
from tests.conftest import write_locomo
from tests.fault_server import FaultServer, error


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
    _needs_mem0()
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


def _needs_mem0() -> None:
    if find_spec("mem0") is None:
        pytest.skip("needs the extra mem0")


def _extracted(body: dict[str, Any]) -> str:
    """Two facts of the message that is new, one of them a fact that was told before."""
    (new,) = re.findall(r"## New Messages\n(.*?)\n\n## Observation", body["messages"][-1]["content"], re.DOTALL)
    said = new.strip().partition(": ")[2]
    if "Lovely" in said:
        return "I see no facts here."
    facts = [f"It was said that {said}", "Ada and Bo talk of parrots."]
    return json.dumps({"memory": [{"id": str(n), "text": text} for n, text in enumerate(facts)]})


def test_mem0_extracts_facts_with_a_model_of_the_protocol_whose_replies_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _needs_mem0()
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with FaultServer(_extracted) as endpoint:
        small = {"model": "m", "base_url": endpoint.url, "max_tokens": 200}
        said = {"data.path": str(write_locomo(tmp_path / "x.json")), "models": {"small": small}}
        protocol, lake = protocols.load("sample", said), str(tmp_path / "lake")
        told = export_pool(protocol, lake, "mem0", str(tmp_path / "to"), 5, "", model="small")
        bodies = [seen.body for seen in endpoint.asked()]
        export_pool(protocol, lake, "mem0", str(tmp_path / "again"), 5, "", model="small")
        assert len(endpoint.asked()) == len(bodies) == 4, "a message once, and none of them again"
        with pytest.raises(InputError, match="model: one of small expected, 'large' found"):
            export_pool(protocol, lake, "mem0", str(tmp_path / "other"), 5, "", model="large")
        endpoint.rule = lambda body: error(401)
        with pytest.raises(EndpointError, match="mem0: a reply of model small expected, status 401"):
            export_pool(protocol, str(tmp_path / "new"), "mem0", str(tmp_path / "other"), 5, "", model="small")
    assert told["extracted by"] == "small: 3 replies, 1 unreadable"
    assert all(body["response_format"] == {"type": "json_object"} for body in bodies)
    dates = [re.findall(r"## \w+ Date\n(.*)", body["messages"][-1]["content"]) for body in bodies]
    assert dates == [["2023-05-08"] * 2] * 2 + [["2023-06-01"] * 2] * 2, "those of the messages, and never today"
    first, again = (read(tmp_path / name, POOL) for name in ("to", "again"))
    assert first is not None and again is not None and first.equals(again)
    held = dict(first.select("candidate_id", "source_turn_ids").unique(["candidate_id"]).iter_rows())
    assert held == {
        "D1:1/0": ["c1/D1:1"],
        "D1:1/1": ["c1/D1:1"],
        "D2:1/0": ["c1/D2:1"],
        "D2:2/0": ["c1/D2:2"],
    }, "a fact that is there already is not kept twice"
    assert set(first["kind"]) == {"fact"} and "facts by m)" in first["system_version"][0]

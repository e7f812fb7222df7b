"""A small lake with a sealed split, whose stages run without a Prefect server."""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from flows import protocol as protocols
from flows.freeze import Frozen, freeze
from flows.gate import planned
from flows.protocol import Protocol
from flows.runs import ended
from storage.digests import digest
from storage.lake import Lake
from storage.seal import new_identity
from tasks.adjudicate import adjudicate
from tasks.answer import answer
from tasks.candidates import build_pools
from tasks.compose import compose
from tasks.index import build_index, chunks_to_embed, embed_chunk
from tasks.ingest import ingest
from tasks.judge import judge, score
from tasks.oracle import compose_oracle
from tasks.plan import Plan
from tasks.ranked import rank
from tasks.sealed import Unsealing
from tasks.sealing import seal_split
from tasks.store import write_store
from tests.conftest import conversation, write_locomo

SECRET = "XQSECRET"
"""In every sealed question, answer and in no conversation."""
RULE = 'conversations(ids="c2")'


@dataclass(frozen=True)
class World:
    """`lake` has the split sealed and the open split run; `raw` is the file, `identity` opens the split."""

    folder: Path

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    @property
    def raw(self) -> Path:
        return self.folder / "raw.json"

    @property
    def identity(self) -> Path:
        return self.folder / "identity.txt"

    @classmethod
    def make(cls, folder: Path, rule: str = RULE) -> "World":
        """Seal a benchmark of two conversations; nothing is run."""
        made = cls(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_locomo(made.raw, conversation("c1"), secret_conversation())
        place = Lake.open(made.lake)
        seal_split(str(place.root), "locomo", str(made.raw), rule, new_identity(made.identity, place))
        return made

    def copy(self, folder: Path) -> "World":
        """The same, elsewhere, to be harmed."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return World(folder)

    def protocol(self, split: str = "open", **changes: Any) -> Protocol:
        """A protocol over the sealed benchmark, without the raw file."""
        said = {
            "name": "world",
            "data.path": "",
            "data.split": split,
            "arms": ["hybrid", "mmr", "oracle"],
            "budgets": ["k2"],
            "judges": ["lexical_match"],
            "statistics.samples": 100,
            "comparisons": [{"arm": "mmr@k2", "against": "hybrid@k2"}],
        }
        return protocols.load("sample", {**said, **changes})

    def freeze(self, **changes: Any) -> Frozen:
        """A freeze of the protocol; the tree may be dirty while this is tested."""
        return freeze(self.protocol(**changes), str(self.lake), allow_dirty=True)

    def leave(self, manifest: Path, identity: Path | None = None) -> Unsealing:
        """The two files that open the split."""
        return Unsealing(str(manifest), str(identity or self.identity))

    def open(self, manifest: Path, identity: Path | None = None, **changes: Any) -> Plan:
        """The plan of the sealed split, opened."""
        return plan_of(self.protocol("sealed", **changes), self.lake, self.leave(manifest, identity))

    def ledger(self) -> list[str]:
        """The kinds of the ledger's lines."""
        from storage.ledger import Ledger

        return [line.kind for line in Ledger(Lake(self.lake).ledger).lines()]

    def told(self, words: str = SECRET) -> list[Path]:
        """The files of the lake in which some words stand, Parquet and LanceDB read as what they hold."""
        return [path for path in sorted(self.lake.rglob("*")) if path.is_file() and words in _shown(path)]


def secret_conversation() -> dict[str, Any]:
    """A conversation whose questions and answers hold `SECRET`."""
    made = conversation("c2")
    made["conversation"]["session_1"][0]["text"] = "I bought a red canoe yesterday."
    for place, row in enumerate(made["qa"]):
        row["question"] = f"What about {SECRET}{place}, the canoe?"
        row["answer" if "answer" in row else "adversarial_answer"] = f"{SECRET}GOLD{place}"
    return made


def plan_of(protocol: Protocol, lake: Path, leave: Unsealing | None = None) -> Plan:
    """Ingest, and pass the gate."""
    data = protocol.data
    return planned(protocol, str(lake), ingest(str(lake), data.benchmark, data.path, None, data.split), leave)


def run(protocol: Protocol, lake: Path, leave: Unsealing | None = None) -> Plan:
    """Every stage but the report, as the flow runs them."""
    plan = plan_of(protocol, lake, leave)
    for store in plan.stores:
        write_store(plan, store)
        for chunk in chunks_to_embed(plan, store):
            embed_chunk(plan, store, chunk)
        build_index(plan, store)
        for name in plan.conversation_ids():
            for stage in (build_pools, compose, compose_oracle, answer, score, rank, adjudicate):
                stage(plan, store, [name])
    for name in plan.conversation_ids():
        judge(plan, name)
    ended(str(lake), digest([protocol.digest]), protocol, {"new": {}, "seconds": {}})
    return plan


def _shown(path: Path) -> str:
    return str(pl.read_parquet(path).to_dicts()) if path.suffix == ".parquet" else path.read_bytes().decode("latin-1")

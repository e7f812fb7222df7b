"""What a protocol is at a moment, written once: the manifest that opens a sealed split."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from flows.gate import open_split, planned
from flows.protocol import Protocol
from flows.runs import ran
from flows.status import held
from storage import environment
from storage import manifest as manifests
from storage.digests import short
from storage.errors import InputError
from storage.lake import Lake
from storage.ledger import Ledger
from storage.manifest import Difference, Manifest
from storage.places import read_whole
from storage.signature import check, check_signer, sign, signer
from tasks import specs
from tasks.encoders import ENCODERS
from tasks.frozen import fields, sealed_split
from tasks.ingest import ingest
from tasks.plan import Plan

_VERSIONED = re.compile(r"\d{4}-\d{2}-\d{2}|(?<!\d)\d{8}(?!\d)|-\d{4}$|@[\w.]+|[0-9a-f]{12,}")


class Frozen(NamedTuple):
    """A manifest and the file that it is in."""

    manifest: Manifest
    path: Path


def freeze(
    protocol: Protocol, lake: str, *, allow_dirty: bool = False, vouched: Sequence[str] = (), key: Path | None = None
) -> Frozen:
    """Write the manifest of a protocol over a lake's sealed split, and note it in the ledger.

    `vouched`: model names that are taken as versioned on the caller's word, which every report repeats. `key`: sign.
    Raises `InputError` if the tree is dirty (unless allowed: then the digest of the changes is kept), if the open split
    was not run under these digests, for a model without a version, and without a primary comparison.
    """
    sealed_split(lake, protocol.data.benchmark)
    if not protocol.comparisons:
        raise InputError(
            "freeze: a primary comparison expected, none found; declare it in the protocol: "
            '[[comparisons]] with arm = "…", against = "…", metric = "complete_evidence"'
        )
    plan = _open_plan(protocol, lake)
    _refuse_unversioned(plan, vouched)
    tree = environment.tree()
    if tree.diff and not allow_dirty:
        raise InputError(
            f"freeze: a clean source tree expected, changes of {', '.join(tree.changed[:3])} found; "
            "commit them, or record their digest with --allow-dirty"
        )
    _refuse_not_run(open_split(protocol), plan, lake)
    notes = {
        "name": protocol.name,
        "frozen_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": tree.commit,
        "diff": tree.diff,
        "vouched": sorted(vouched),
        "protocol": protocol.model_dump(mode="json", exclude={"data": {"path", "split"}}),
    }
    return _write(Lake(lake), fields(plan), notes, key)


def differences(manifest: Path, lake: str, public_key: Path | None = None) -> list[Difference]:
    """Every field of a manifest that is not what the lake, this code and this installation give now.

    Raises `InputError` for a manifest that was edited, that the ledger does not name, or that the holder of
    `public_key` did not sign.
    """
    frozen = manifests.read(manifest)
    check_signer(frozen.digest, frozen.signature, frozen.notes.get("signer"))
    if public_key is not None:
        check(frozen.digest, frozen.signature, public_key)
    lines = Ledger(Lake(lake).ledger).lines("freeze")
    if frozen.digest not in {line.facts["manifest"] for line in lines}:
        raise InputError(f"verify: a manifest that the ledger of {lake} names expected, {short(frozen.digest)} found")
    protocol = Protocol.model_validate(frozen.notes["protocol"])
    return list(manifests.all_differences(frozen.fields, fields(_open_plan(protocol, lake))))


def ledger_problems(lake: Lake) -> list[str]:
    """What is wrong with a ledger: its chain, and manifests and reports that it ought to name and does not."""
    ledger = Ledger(lake.ledger)
    problems = ledger.problems()
    return problems or list(_unnamed(lake, ledger))


def _unnamed(lake: Lake, ledger: Ledger) -> Iterator[str]:
    lines = ledger.lines()
    frozen = {line.facts["manifest"] for line in lines if line.kind == "freeze"}
    seen = {line.hash for line in lines if line.kind == "unsealing"}
    for path in sorted(lake.freezes.glob("*.json")):
        if manifests.read(path).digest not in frozen:
            yield f"manifest {path.name} has no line: it was brought in, or its line taken away"
    for path in sorted(lake.reports.glob("*/summary.json")):
        look = json.loads(read_whole(path)).get("look")
        if look and look not in seen:
            yield f"report {path.parent.name} has an unsealing without a line: it was brought in from a copy"


def _write(lake: Lake, values: dict[str, Any], notes: dict[str, Any], key: Path | None) -> Frozen:
    """Under the ledger's lock, so that of two freezes at a time each has its own line and knows the lines before."""
    ledger = Ledger(lake.ledger)
    with ledger.locked() as lines:
        past = {"lines": len(lines), "hash": lines[-1].hash if lines else ""}
        manifest = Manifest(values, {**notes, "ledger": past, "signer": signer(key) if key else None})
        if key is not None:
            manifest = replace(manifest, signature=sign(manifest.digest, key))
        path = lake.freezes / f"{notes['name']}-{short(manifest.digest)}.json"
        manifests.write(path, manifest)
        facts = {"manifest": manifest.digest, "seal": values["splits"]["seal"], "protocol": notes["name"]}
        ledger.append_locked(lines, "freeze", {**facts, "changes": notes["diff"]})
    return Frozen(manifest, path)


def _open_plan(protocol: Protocol, lake: str) -> Plan:
    said = open_split(protocol)
    dataset = ingest(lake, said.data.benchmark, said.data.path, said.data.sha256 or None)
    return planned(said, lake, dataset, None)


def _refuse_not_run(protocol: Protocol, plan: Plan, lake: str) -> None:
    """The open split is complete at the very addresses that are frozen; one without questions has nothing to run."""
    if not plan.questions():
        return
    for row in held(protocol, lake):
        if row.held < row.expected:
            raise InputError(
                f"freeze: the open split run under these digests expected, {row.stage} {row.what}: {row.held} of "
                f"{row.expected} found; `suffice run` it first"
            )
    if not ran(lake, protocol):
        raise InputError("freeze: a run of this very protocol over the open split expected, none found; run it first")


def _refuse_unversioned(plan: Plan, vouched: Sequence[str]) -> None:
    for name in _models(plan):
        if name not in vouched and ("latest" in name or not _VERSIONED.search(name)):
            raise InputError(
                f"freeze: a model named with its version expected, {name!r} found; name a dated one such as "
                f"gpt-4o-mini-2024-07-18, or answer for it with --vouch {name}"
            )


def _models(plan: Plan) -> list[str]:
    """The names that endpoints are sent."""
    encoders = [specs.make(ENCODERS, store.encoder, "encoder") for store in plan.stores]
    named = [model.model for model in plan.models]
    return [*named, *(encoder.model for encoder in encoders if hasattr(encoder, "model"))]

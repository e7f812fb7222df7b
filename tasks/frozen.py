"""What a freeze fixes of a plan and of the code that carries it out."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage import environment, seal
from storage.digests import file_digest
from storage.errors import InputError
from storage.lake import Lake
from tasks import specs
from tasks.provenance import code

if TYPE_CHECKING:
    from tasks.arms import Arm
    from tasks.plan import Plan

PROMPTS = Path(__file__).parent / "prompts"


def fields(plan: "Plan") -> dict[str, Any]:
    """The values of `storage.manifest.FIELDS`, derived from the plan, the lake's seal, and the code on this disk.

    The open and the sealed plan of one protocol have the same. `plan.declared` holds what only the protocol knows.
    Raises `InputError` where the lake has no sealed split of the benchmark.
    """
    sealed = sealed_split(plan.lake, plan.benchmark)
    return {
        **json.loads(plan.declared or "{}"),
        "data": {
            "benchmark": plan.benchmark,
            "version": sealed.version,
            "dataset": plan.dataset,
            "gold of the open split": sealed.gold,
        },
        "splits": {
            "rule": sealed.rule,
            "seal": sealed.id,
            "kinds": list(plan.kinds),
            "conversations": list(plan.conversations),
            "questions": list(plan.named),
            "limit": plan.limit,
        },
        "arms": {
            str(arm): {
                "reader": arm.name,
                "parameters": specs.parameters(arm.reader),
                "budget": asdict(arm.limits),
                "store": arm.store,
            }
            for arm in plan.arms
        },
        "models": {model.name: model.identity() for model in plan.models},
        "prompts": {path.relative_to(PROMPTS).as_posix(): file_digest(path) for path in sorted(PROMPTS.rglob("*.md"))},
        **plan.parts(),
        "versions": dict(environment.versions()),
        "source tree": environment.tree().files,
        "metrics": code("tasks.metrics"),
        "stores": {store.name: {"writer": store.writer, "address": store.store} for store in plan.stores},
        "indexes": {store.name: {"encoder": store.encoder, "address": store.index} for store in plan.stores},
        "pools": {
            store.name: {"fusion": store.fusion, "size": store.size, "address": store.pool} for store in plan.stores
        },
        "selections": {str(arm): _selections(plan, arm) for arm in plan.arms},
    }


def _selections(plan: "Plan", arm: "Arm") -> str:
    """The address of what an arm selects, but for the gold that learning arms are fitted on: each split has its own."""
    store = next(store for store in plan.stores if store.name == arm.store)
    return plan.selections(replace(store, learned_from=""), arm)


def sealed_split(lake: str, benchmark: str) -> seal.Seal:
    """The seal of a benchmark in a lake. Raises `InputError` where there is none."""
    found = seal.seals(Lake(lake), benchmark)
    if not found:
        raise InputError(
            f"data.split: a sealed split of {benchmark} expected in {lake}, none found; "
            f"make one with `suffice seal {benchmark} --data PATH --lake {lake}`"
        )
    return found[0]

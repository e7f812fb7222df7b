"""Whether a split may be read: the check that every stage, report and trace stands behind."""

import json
from dataclasses import replace

from flows.protocol import Protocol
from reports.sealing import Optimism, Sealing
from storage import manifest as manifests
from storage.lake import Lake
from storage.ledger import Ledger, freezes_before, looks
from storage.places import place
from tasks.frozen import sealed_split
from tasks.ingest import Dataset
from tasks.plan import Plan
from tasks.sealed import OPEN, StillSealed, Unsealing, opened


def planned(protocol: Protocol, lake: str, dataset: Dataset, unsealing: Unsealing | None) -> Plan:
    """The plan of a protocol's split; a sealed one is opened now, so that nothing is written where that is refused.

    Raises `StillSealed` without an unsealing, `FrozenDiffers` at the first field that is not as frozen, and
    `InputError` for a wrong identity, a broken ledger, or files that are not as they were sealed.
    """
    if protocol.data.split == OPEN:
        return protocol.plan(lake, dataset.dataset, dataset.gold, seal=dataset.seal)
    if unsealing is None:
        raise StillSealed(protocol.data.benchmark)
    plan = protocol.plan(lake, dataset.dataset, dataset.seal, seal=dataset.seal, unsealing=unsealing)
    return replace(plan, unsealing=replace(unsealing, look=opened(plan).look))


def refuse_closed(protocol: Protocol, unsealing: Unsealing | None) -> None:
    """Raises `StillSealed` for the sealed split without an unsealing, before anything is read or started."""
    if protocol.data.split != OPEN and unsealing is None:
        raise StillSealed(protocol.data.benchmark)


def open_split(protocol: Protocol) -> Protocol:
    """The same protocol over its open split."""
    return protocol.model_copy(update={"data": protocol.data.model_copy(update={"split": OPEN})})


def check_declared(protocol: Protocol, plan: Plan) -> None:
    """A report shows what was frozen: statistics, denominators and comparisons. Raises `FrozenDiffers`."""
    difference = manifests.first_difference(json.loads(plan.declared), protocol.declared)
    if difference:
        raise manifests.FrozenDiffers(difference)


def sealing_of(plan: Plan, optimism: list[Optimism]) -> Sealing:
    """What a report on the sealed split says of its freeze and of the ledger."""
    if plan.unsealing is None:
        raise StillSealed(plan.benchmark)
    frozen = manifests.read(place(plan.unsealing.manifest))
    lines = Ledger(Lake(plan.lake).ledger).lines()
    before = looks(lines, plan.seal)
    return Sealing(
        rule=sealed_split(plan.lake, plan.benchmark).rule,
        freeze=frozen.digest,
        frozen_at=frozen.notes["frozen_at"],
        signer=frozen.notes.get("signer") or "",
        changes=frozen.notes["diff"],
        vouched=tuple(frozen.notes["vouched"]),
        freezes_before=freezes_before(lines, frozen.digest),
        unsealings_before=before.index(plan.unsealing.look),
        clock_behind=any(line.clock_behind for line in lines),
        ledger_lines=len(lines),
        ledger_head=lines[-1].hash,
        declared=[(each["arm"], each["against"], each["metric"]) for each in frozen.fields["comparisons"]],
        optimism=optimism,
    )


def note_report(plan: Plan, report: str) -> None:
    """Add the report's line to the ledger; `report` is its address."""
    if plan.unsealing is not None:
        facts = {
            "manifest": manifests.read(place(plan.unsealing.manifest)).digest,
            "seal": plan.seal,
            "look": plan.unsealing.look,
            "report": report,
        }
        Ledger(Lake(plan.lake).ledger).append("report", facts)

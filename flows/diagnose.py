"""Where every arm's answers fail: in the evidence or in its use."""

from typing import Any

from flows.gate import planned, refuse_closed
from flows.protocol import Protocol
from flows.rejudge import report_arms
from flows.report import frames_of
from reports.diagnosis import diagnosis_table, scored_by, sufficiency_table
from storage.errors import InputError
from tasks.ingest import ingest
from tasks.sealed import Unsealing


def diagnose(protocol: Protocol, lake: str, judge: str | None, unsealing: Unsealing | None = None) -> dict[str, Any]:
    """`sufficiency` and `diagnosis`, a row an arm each, of what the lake holds; `judge` is the first if None.

    Raises `InputError` for a protocol without a panel, a judge that it lacks, and a lake without verdicts on
    sufficiency, and as `flows.gate` does.
    """
    data = protocol.data
    refuse_closed(protocol, unsealing)
    dataset = ingest(lake, data.benchmark, data.path, data.sha256 or None, data.split)
    plan = planned(protocol, lake, dataset, unsealing)
    judge = judge or next(iter(plan.judges), "")
    if judge not in plan.judges:
        raise InputError(f"--judge: one of {', '.join(plan.judges) or 'no judges'} expected, {judge!r} found")
    frames = frames_of(plan, report_arms(plan))
    cells = scored_by(judge, frames.cells, frames.verdicts)
    if not plan.panel or cells["sufficiency"].is_null().all():
        raise InputError(
            f"diagnose: sufficiency of protocol {protocol.name} expected, none found; "
            "name [sufficiency] judges and `suffice run` it"
        )
    return {
        "judge": judge,
        "panel": list(plan.panel),
        "adjudicator": plan.adjudicator,
        "sufficiency": sufficiency_table(cells, data.apart).to_dicts(),
        "diagnosis": diagnosis_table(cells, data.apart).to_dicts(),
    }

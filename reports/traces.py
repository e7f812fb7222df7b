"""How did a selection grow, step by step?"""

from collections.abc import Mapping, Sequence
from typing import Any

REST = "rest"


def steps_of(trace: Sequence[Mapping[str, Any]] | None, record_ids: Sequence[str]) -> list[dict[str, Any]]:
    """The steps `view, cue, returned, kept` of one selection; `kept` holds records of the evidence alone.

    What no step accounts for is one more step, `rest`: a ranking that filled the budget. Without a trace all of it is,
    and that step is called `select`.
    """
    held = set(record_ids)
    steps = [{**step, "kept": [id for id in step["kept"] if id in held]} for step in trace or ()]
    told = {id for step in steps for id in step["kept"]}
    rest = [id for id in record_ids if id not in told]
    if rest or not steps:
        steps.append({"view": REST if steps else "select", "cue": "", "returned": rest, "kept": rest})
    return steps

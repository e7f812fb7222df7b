"""How much of the gold an evidence state holds."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from storage.records import Gold


def evidence_metrics(
    gold: Gold,
    record_ids: Iterable[str],
    sources: Mapping[str, Sequence[str]],
    sessions: Mapping[str, str],
    named: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, float | None]:
    """Metrics of one evidence state, each in [0, 1].

    `sources`: record id → ids of its source turns; `sessions`: turn id → session id. With src(E) the source
    turns of the evidence and G the gold turns: Gold Hit 1[src ∩ G ≠ ∅], Evidence Recall |src ∩ G| / |G|,
    Complete Evidence Recall 1[G ⊆ src]; session recall and completeness are the same over the sessions of the
    gold turns, where a record covers the sessions of all its source turns and those that its system names as its
    sources (`named`). All are None where G is empty; those of turns where the evidence holds a record of unknown
    source turns, those of sessions where it holds one of which neither is known. Empty evidence gives 0.
    """
    ids = list(record_ids)
    covered = {id: {sessions[turn] for turn in sources[id]} | set((named or {}).get(id, ())) for id in ids}
    turns = _share(gold.turn_ids, [sources[id] for id in ids])
    whole = _share(gold.session_ids if gold.turn_ids else (), [covered[id] for id in ids])
    return {
        "gold_hit": None if turns is None else float(turns > 0),
        "evidence_recall": turns,
        "complete_evidence": None if turns is None else float(turns == 1),
        "session_recall": whole,
        "complete_sessions": None if whole is None else float(whole == 1),
    }


def _share(wanted: Sequence[str], held: Sequence[Collection[str]]) -> float | None:
    """The share of `wanted` that the records hold; None where nothing is wanted or a record's holdings are unknown."""
    if not wanted or not all(held):
        return None
    found = set().union(*held)
    return sum(item in found for item in wanted) / len(wanted)

"""How much of the gold an evidence state holds."""

from collections.abc import Iterable, Mapping, Sequence

from storage.records import Gold


def evidence_metrics(
    gold: Gold, record_ids: Iterable[str], sources: Mapping[str, Sequence[str]], sessions: Mapping[str, str]
) -> dict[str, float | None]:
    """Metrics of one evidence state, each in [0, 1].

    `sources`: record id → ids of its source turns; `sessions`: turn id → session id. With src(E) the source
    turns of the evidence and G the gold turns: Gold Hit 1[src ∩ G ≠ ∅], Evidence Recall |src ∩ G| / |G|,
    Complete Evidence Recall 1[G ⊆ src]; session recall and completeness are the same over the sessions of the
    gold turns, where a record covers the sessions of all its source turns. All are None where G is empty, or
    where the evidence holds a record of unknown sources. Empty evidence gives 0.
    """
    held = [sources[id] for id in record_ids]
    if not gold.turn_ids or any(not turns for turns in held):
        return dict.fromkeys(
            ("gold_hit", "evidence_recall", "complete_evidence", "session_recall", "complete_sessions"), None
        )
    found = {turn for turns in held for turn in turns}
    found_sessions = {sessions[turn] for turn in found}
    turn_share = _share(gold.turn_ids, found)
    session_share = _share(gold.session_ids, found_sessions)
    return {
        "gold_hit": float(turn_share > 0),
        "evidence_recall": turn_share,
        "complete_evidence": float(turn_share == 1),
        "session_recall": session_share,
        "complete_sessions": float(session_share == 1),
    }


def _share(wanted: Sequence[str], found: set[str]) -> float:
    return sum(item in found for item in wanted) / len(wanted)

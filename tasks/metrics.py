"""How much of the gold an evidence state holds."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from storage.records import Gold

USER = "user"
RANK_METRICS = ("ndcg", "user_ndcg_any")


def evidence_metrics(
    gold: Gold,
    record_ids: Iterable[str],
    sources: Mapping[str, Sequence[str]],
    sessions: Mapping[str, str],
    speakers: Mapping[str, str],
    named: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, float | None]:
    """Metrics of one evidence state, each in [0, 1].

    `sources`: record id → ids of its source turns; `sessions`, `speakers`: turn id → session id, speaker. With src(E)
    the source turns of the evidence and G the gold turns: Gold Hit 1[src ∩ G ≠ ∅], Evidence Recall |src ∩ G| / |G|,
    Complete Evidence Recall 1[G ⊆ src]; session recall and completeness are the same over the gold sessions, where a
    record covers the sessions of all its source turns and those that its system names as its sources (`named`: record
    id → session ids). `turn_hit` is Gold Hit, and 0 where the benchmark names
    evidence sessions but no turn in them, so that its mean is over the questions without an annotated turn too.
    `user_recall_any` and `user_recall_all` are LongMemEval's, over the gold turns that the user said; their
    counterparts over all turns are Gold Hit and Complete Evidence Recall. The official script calls `recall_all` of
    a question without such a turn 1; here it is undefined, as is every metric without its gold, or where the
    evidence holds a record of unknown sources: those of turns where its turns are unknown, those of sessions where
    neither turns nor sessions are known. Empty evidence gives 0.
    """
    ids = list(record_ids)
    held = [sources[id] for id in ids]
    places = [{sessions[turn] for turn in sources[id]} | set((named or {}).get(id, ())) for id in ids]
    turns = _share(gold.turn_ids, held)
    covered = _share(gold.session_ids, places)
    said = _share([turn for turn in gold.turn_ids if speakers.get(turn) == USER], held)
    unnamed = covered is not None and not gold.turn_ids and all(held)
    return {
        "gold_hit": _any(turns),
        "evidence_recall": turns,
        "complete_evidence": _all(turns),
        "session_recall": covered,
        "complete_sessions": _all(covered),
        "turn_hit": 0.0 if unnamed else _any(turns),
        "user_recall_any": _any(said),
        "user_recall_all": _all(said),
    }


def rank_metrics(
    gold: Gold, ranking: Sequence[Sequence[str]], speakers: Mapping[str, str], size: int
) -> dict[str, float | None]:
    """How early a selection has its gold, each in [0, 1]; `ranking`: the source turns of each record, best first.

    `ndcg`: binary gain over all turns, 1 / log2(1 + rank), against the best ranking of `size` records. A record has
    gain where a source turn of it is gold and none before it has supplied that turn. `user_ndcg_any` is LongMemEval's:
    over the records that the user said alone, its gain at rank r is 1 for r = 1 and 1 / log2(r) after, so that the
    second rank is worth as much as the first; `size` is its k. Source: `eval_utils.py` of the LongMemEval release.
    """
    known = (bool(ranking) and all(ranking)) or not ranking
    said = [turns for turns in ranking if all(speakers.get(turn) == USER for turn in turns)]
    own = [turn for turn in gold.turn_ids if speakers.get(turn) == USER]
    places = np.arange(1, max(size, len(ranking), len(gold.turn_ids)) + 1)
    plain, official = 1 / np.log2(1 + places), 1 / np.log2(np.maximum(places, 2))
    return {
        "ndcg": _ndcg(gold.turn_ids, ranking, plain, size) if known else None,
        "user_ndcg_any": _ndcg(own, said, official, size) if known else None,
    }


def _ndcg(wanted: Sequence[str], ranking: Sequence[Sequence[str]], gains: np.ndarray, size: int) -> float | None:
    if not wanted or not size:
        return None
    missing, total = set(wanted), 0.0
    for gain, turns in zip(gains, ranking[:size], strict=False):
        if missing.intersection(turns):
            total += float(gain)
            missing.difference_update(turns)
    return total / float(gains[: min(len(set(wanted)), size)].sum())


def _share(wanted: Sequence[str], held: Sequence[Collection[str]]) -> float | None:
    """The share of `wanted` that the records hold; None where nothing is wanted or a record's holdings are unknown."""
    if not wanted or not all(held):
        return None
    found = set[str]().union(*held)
    return sum(item in found for item in wanted) / len(wanted)


def _any(share: float | None) -> float | None:
    return None if share is None else float(share > 0)


def _all(share: float | None) -> float | None:
    return None if share is None else float(share == 1)

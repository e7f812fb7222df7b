"""Does the residual score prefer evidence that is still missing?

Source: Feng & Fan, arXiv 2610.15642v1, appendix C.3, Eq. 4 and 29, |S| = 1. It sees gold and is no reader.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from readers.reconstruction import residual
from readers.types import Floats, Ints


@dataclass(frozen=True)
class Preference:
    """One question's mean over its selected memories s of [remaining evidence - comparator].

    `residual`: by the residual score, Eq. 29. `cosine`: the same pairs by query cosine alone, so that the difference
    between the two is what the residual added. `comparisons`: D_q, over how many s.
    """

    residual: float
    cosine: float
    comparisons: int


def missing_preference(
    query: Floats, candidates: Floats, facts: Sequence[frozenset[str]], sessions: Ints, rng: np.random.Generator
) -> Preference | None:
    """Eq. 29 of one question; None where no s leaves both evidence and a comparator.

    `query`: (d,); `candidates`: (P, d) in native rank order; `facts`: the gold turns that each candidate supplies, none
    for a candidate that is no evidence; `sessions`: (P,) codes.

    Every evidence memory is s once. The remaining evidence shares no fact with s; of memories that share a fact with
    each other one is drawn. Their scores are averaged within each session, then over sessions. The comparator has the
    highest query cosine (ties: the better rank) among the candidates without s and without every memory that supplies
    a fact s lacks, so it may repeat s or be no evidence. Candidates with NaN or infinity are passed over.

    Deviations: the paper lets a model say which memories of an annotated session hold an answer fact and which of them
    repeat one, by quoted words and similarity. Here an annotated gold turn is a fact, so no judge is asked, and two
    gold turns that say the same count as two facts.
    """
    usable = [place for place, row in enumerate(candidates) if np.isfinite(row).all()]
    vectors = np.nan_to_num(candidates.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    cosines = vectors @ query.astype(np.float64)
    evidence = [place for place in usable if facts[place]]
    found = []
    for held in evidence:
        missing = _one_a_fact([place for place in evidence if not facts[place] & facts[held]], facts, rng)
        others = [place for place in usable if place != held and facts[place] <= facts[held]]
        if missing and others:
            rival = others[int(np.argmax(cosines[others]))]
            scores = vectors @ residual(query, candidates[[held]])
            found.append([_by_session(each, missing, sessions) - each[rival] for each in (scores, cosines)])
    if not found:
        return None
    by_residual, by_cosine = np.mean(found, axis=0)
    return Preference(float(by_residual), float(by_cosine), len(found))


def _one_a_fact(places: Sequence[int], facts: Sequence[frozenset[str]], rng: np.random.Generator) -> list[int]:
    """Places of which no two share a fact, drawn in random order until none can be added."""
    kept: list[int] = []
    seen: set[str] = set()
    for place in rng.permutation(np.asarray(places, np.intp)).tolist():
        if not facts[place] & seen:
            kept.append(place)
            seen |= facts[place]
    return kept


def _by_session(scores: NDArray[np.float64], places: Sequence[int], sessions: Ints) -> float:
    """The mean over sessions of the mean score of the places in each."""
    own = sessions[list(places)]
    return float(np.mean([scores[list(places)][own == session].mean() for session in np.unique(own)]))

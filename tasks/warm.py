"""Readers' kernels compiled before they are timed or waited for."""

import numpy as np

from readers.types import Budget, Note, Pool, Query
from tasks.access import Library, QuestionAccess
from tasks.plan import Plan
from tasks.shard import shard

_SIZE = 8


def warm(plan: Plan) -> int:
    """Let every reader of the plan read one made-up pool of the types that composing uses; returns 0: nothing is new.

    A reader that asks a model is left out: nothing is asked without need. Compiled kernels are cached on
    disk, so this costs time once an installation.
    """
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((_SIZE, _SIZE)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    codes, scores = np.zeros(_SIZE, np.int32), np.sort(rng.random(_SIZE))[::-1]
    pool = Pool(
        ids=tuple(map(str, range(_SIZE))),
        native=scores,
        dense=scores,
        lexical=scores,
        vectors=vectors,
        tokens=codes + 1,
        positions=codes,
        sessions=codes,
        speakers=codes,
        times=scores,
    )
    notes = [Note(id, "warm", "someone", 0, place, 0.0, 1) for place, id in enumerate(pool.ids)]
    library = Library(notes, lambda texts: vectors[:1].repeat(len(texts), axis=0))
    budget = Budget(records=_SIZE // 2, calls=3, rounds=3, new_records=1)
    for reader in {arm.reader for arm in plan.arms if not arm.uses_gold and arm.model is None}:
        reader.read(Query("warm", "warm", vectors[0]), pool, budget, QuestionAccess(library, budget))
    return 0


warm_task = shard("warm", warm)

"""Readers' kernels compiled before they are timed or waited for."""

import numpy as np

from readers.types import Budget, Pool, Query
from tasks.access import ConversationAccess
from tasks.plan import Plan
from tasks.shard import shard

_SIZE = 8


def warm(plan: Plan) -> int:
    """Let every reader of the plan read one made-up pool of the types that composing uses; returns 0: nothing is new.

    Compiled kernels are cached on disk, so this costs time once an installation.
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
    access = ConversationAccess(pool.ids, [1] * _SIZE)
    for reader in {arm.reader for arm in plan.arms if not arm.uses_gold}:
        reader.read(Query("warm", "", vectors[0]), pool, Budget(records=_SIZE // 2), access)
    return 0


warm_task = shard("warm", warm)

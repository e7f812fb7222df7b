"""What would a learning reader have learned, had it never seen the conversation it reads?

It sees gold and belongs to no reader: out of it come weights, one row a conversation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from readers.rsc import Rsc, features, head
from readers.types import Pool, Query
from storage.digests import digest
from storage.errors import InputError
from storage.lake import Lake
from storage.schemas import FITS
from tasks.arms import Arm
from tasks.conversation import Conversation
from tasks.plan import Plan, StorePlan
from tasks.provenance import code
from tasks.shard import shard

FOLDS = 5
_DRAWS = 3
_RIDGE = 1e-3
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Example:
    """One choice: `rows` (m, 8) features of candidates, of which the first `positives` are the missing gold."""

    rows: Matrix
    positives: int


def fit(plan: Plan, store: StorePlan) -> int:
    """Fit every learning arm of a store for every conversation that has no fit; returns 0: no selection is made.

    The folds are the protocol's, with the rest as one more. Where it names none the conversations are dealt in
    benchmark order into five folds (as many as there are conversations if fewer). Each fold is read with weights fitted
    on the other folds' gold alone. Raises `InputError` for fewer than two folds.
    Deviation from scikit-learn's GroupKFold, which evens the folds' sizes: dealing depends on the order alone.
    """
    table = Lake(plan.lake).table(FITS, address(plan, store))
    done = set(table.read(["reader"])["reader"])
    folds = dealt(plan.conversation_ids(), plan.folds)
    for reader in {arm.name: arm.reader for arm in plan.arms_of(store) if arm.learns and arm.name not in done}.items():
        if len(folds) < 2:
            raise InputError(
                f"{reader[0]} learns on other conversations: at least two folds of them expected, one found"
            )
        table.append(list(_rows(plan, store, *reader, folds)))
    return 0


def dealt(conversations: Sequence[str], folds: Sequence[Sequence[str]]) -> list[list[str]]:
    """The conversations in folds, as `fit` says; none is empty."""
    if not folds:
        count = min(FOLDS, len(conversations))
        return [list(conversations[fold::count]) for fold in range(count)]
    named = {id for fold in folds for id in fold}
    rest = [id for id in conversations if id not in named]
    return [fold for fold in ([id for id in conversations if id in own] for own in (*folds, rest)) if fold]


def fit_whole(plan: Plan, store: StorePlan, reader: Rsc) -> list[float]:
    """(8,) weights fitted on the gold of all conversations of a plan, for reading another benchmark with them."""
    held = [example for id in plan.conversation_ids() for example in _examples(plan, store, reader, id)]
    return [float(weight) for weight in learned(held)]


def address(plan: Plan, store: StorePlan) -> str:
    """The address of one store's fits: pools, gold and seed, and which questions are run."""
    made = code("readers", "tasks.fit")
    return digest({"pool": store.pool, "learned from": store.learned_from, "seed": plan.seed, "code": made})


def fitted(plan: Plan, store: StorePlan, arm: Arm, conversation_id: str) -> Arm:
    """The arm as it reads one conversation: a learning reader with the weights that never saw it, others as they are.

    Raises `InputError` where there is no fit.
    """
    if not arm.learns:
        return arm
    rows = Lake(plan.lake).table(FITS, address(plan, store)).read()
    for row in rows.iter_rows(named=True):
        if (row["reader"], row["conversation_id"]) == (arm.name, conversation_id):
            return replace(arm, reader=arm.reader.fitted(row["weights"]))
    raise InputError(f"arm {arm}: a fit for {conversation_id} expected, none found; run stage compose as a whole")


def _rows(
    plan: Plan, store: StorePlan, name: str, reader: Rsc, folds: Sequence[Sequence[str]]
) -> Iterator[dict[str, object]]:
    conversations = plan.conversation_ids()
    examples = {id: list(_examples(plan, store, reader, id)) for id in conversations}
    for fold in folds:
        others = [id for id in conversations if id not in fold]
        weights = learned([example for id in others for example in examples[id]])
        for id in fold:
            yield {"reader": name, "conversation_id": id, "weights": weights.tolist(), "trained_on": others}


def _examples(plan: Plan, store: StorePlan, reader: Rsc, conversation_id: str) -> Iterator[Example]:
    """What one conversation teaches; its own gold and pools decide, nothing of another conversation."""
    conversation = Conversation.load(plan, store, conversation_id)
    turns = {record.id: set(record.source_turn_ids) for record in conversation.records}
    gold = plan.gold_of(conversation_id)
    for query, pool in conversation.queries({id for id, row in gold.items() if row.turn_ids}):
        wanted = set(gold[query.id].turn_ids)
        own = np.array([bool(turns[id] & wanted) for id in pool.ids])
        yield from examples(query, pool, own, reader)


def examples(query: Query, pool: Pool, gold: NDArray[np.bool_], reader: Rsc) -> Iterator[Example]:
    """The sets from which gold is missing: those that the pool's order passes through, and drawn ones.

    `gold`: (n,) which candidates are gold. The sets: the first `init_records`, with one and with two pages more; and
    three of `init_records`, a random part of the gold with distractors. Positives are the gold that a set lacks,
    negatives the other candidates outside it. All are of the pool's first hundred, as in reading: were gold from
    further down among the positives alone, a low rank would seem to speak for a record.
    """
    rng = query.generator()
    pool, first = head(pool), reader.init_records
    gold = gold[: len(pool)]
    sets = [np.arange(min(first + rounds * reader.page, len(pool))) for rounds in range(_DRAWS)]
    places, others = np.flatnonzero(gold), np.flatnonzero(~gold)
    for _ in range(_DRAWS if len(places) else 0):
        part = rng.permutation(places)[: rng.integers(len(places))]
        sets.append(np.concatenate([part, rng.permutation(others)[: max(first - len(part), 0)]]))
    for held in sets:
        missing = np.setdiff1d(places, held)
        if len(missing) and len(held):
            rows = features(query, pool, held)
            yield Example(rows[np.concatenate([missing, np.setdiff1d(others, held)])], len(missing))


def learned(examples: Sequence[Example]) -> Matrix:
    """(8,) the weights that minimise the mean over examples of -log softmax(w · x) of the positives, averaged, plus a
    ridge of 0.001 |w|² on features in their pooled standard deviations: a conditional logit (InfoNCE with a linear
    score), by Newton's method with halved steps. Raises `InputError` for no example.
    """
    if not examples:
        raise InputError("rsc: gold within the pools of the conversations expected, none found")
    rows = np.concatenate([example.rows for example in examples])
    scale = np.maximum(rows.std(axis=0), 1e-9)
    rows = rows / scale
    starts = np.cumsum([0, *[len(example.rows) for example in examples]])[:-1]
    sizes = np.diff([*starts, len(rows)])
    target = np.concatenate([_target(example) for example in examples])
    weights = np.zeros(rows.shape[1])
    loss, gradient, curvature = _step(rows, target, starts, sizes, weights)
    for _ in range(50):
        move, before = np.linalg.solve(curvature, gradient), loss
        moved = _step(rows, target, starts, sizes, weights - move)
        while moved[0] > before and np.abs(move).max() > 1e-9:
            move = move / 2
            moved = _step(rows, target, starts, sizes, weights - move)
        weights, (loss, gradient, curvature) = weights - move, moved
        if before - loss < 1e-10:
            break
    return np.asarray(weights / scale, np.float64)


def _target(example: Example) -> Matrix:
    share = np.zeros(len(example.rows))
    share[: example.positives] = 1 / example.positives
    return share


def _step(
    rows: Matrix, target: Matrix, starts: NDArray[np.intp], sizes: NDArray[np.intp], weights: Matrix
) -> tuple[float, Matrix, Matrix]:
    """Loss, gradient and curvature at `weights`."""
    scores = rows @ weights
    scores = scores - np.repeat(np.maximum.reduceat(scores, starts), sizes)
    raised = np.exp(scores)
    totals = np.add.reduceat(raised, starts)
    share = raised / np.repeat(totals, sizes)
    count = len(starts)
    loss = (np.log(totals).sum() - target @ scores) / count + _RIDGE * weights @ weights
    gradient = rows.T @ (share - target) / count + 2 * _RIDGE * weights
    means = np.add.reduceat(rows * share[:, None], starts)
    curvature = (rows.T @ (rows * share[:, None]) - means.T @ means) / count + 2 * _RIDGE * np.eye(len(weights))
    return float(loss), gradient, curvature


fit_task = shard("fit", fit)
fit_whole_task = shard("fit-whole", fit_whole)

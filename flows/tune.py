"""Which setting of a reader would have been chosen without looking at the conversations it is read on?"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prefect import flow
from prefect.futures import as_completed

from flows.evidence import index_stage, pool_stage, store_stage
from flows.ingest import ingest_stage
from flows.progress import WATCHER
from flows.protocol import Protocol
from flows.shards import Log
from reports.intervals import bootstrap_means
from storage.errors import InputError
from tasks.arms import arms
from tasks.plan import Plan, StorePlan
from tasks.tune import METRICS, tune_task

STAGE = "tune"
Floats = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Interval:
    """A mean with its 95 % interval over conversations; NaN ends where fewer than two conversations say anything."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Fold:
    """Conversations that are read together with the setting `chosen` on all others.

    `value`, `baseline`: means over the fold's `questions`. `lead`: by how much the choice beat the next best setting
    on the other folds.
    """

    conversations: tuple[str, ...]
    questions: int
    chosen: str
    lead: float
    value: float
    baseline: float


@dataclass(frozen=True)
class Tuned:
    """Held-out figures alone: what any setting scores on folds that helped to choose it is nowhere in here."""

    metric: str
    budget: str
    store: str
    baseline_form: str
    settings: int
    folds: tuple[Fold, ...]
    value: Interval
    baseline: Interval
    difference: Interval
    kinds: dict[str, tuple[int, float, float]]

    @property
    def times_chosen(self) -> dict[str, int]:
        """Setting → in how many folds it was chosen, most often first."""
        return dict(Counter(fold.chosen for fold in self.folds).most_common())


@dataclass(frozen=True)
class Search:
    """What is searched: the `forms` of one reader, against `baseline`, all at `budget`, by `metric`.

    `folds`: into how many folds the conversations are dealt, each a fold of its own if None.
    """

    forms: tuple[str, ...]
    baseline: str = "hybrid"
    budget: str = "k10"
    metric: str = METRICS[0]
    store: str | None = None
    folds: int | None = None


@flow(name="tune", flow_run_name="tune: {protocol.name} ({protocol.data.split})", persist_result=False)
def tune(protocol: Protocol, lake: str, search: Search) -> Tuned:
    """Measure every setting on every conversation, then choose for each fold on the others.

    Records, index and pools are made where the lake lacks them. Kinds that the protocol sets apart are left out.
    Raises `InputError` for an unknown store, metric, arm, a budget that does not fit, and fewer than two folds.
    """
    log = Log()
    plan, _ = ingest_stage(protocol, lake, log)
    store = _store(plan, search.store)
    if search.metric not in METRICS:
        raise InputError(f"tune: one of {', '.join(METRICS)} expected, {search.metric!r} found")
    forms = tuple(f"{form}@{search.budget}" for form in (*search.forms, search.baseline))
    for arm in arms(forms, (), [store.name]):
        if arm.learns or arm.uses_gold:
            raise InputError(f"tune: a reader that sees no gold expected, {arm.name} found")
    for stage in (store_stage, index_stage, pool_stage):
        stage(plan, log)
    rows = _measured(plan, store, forms, search.metric, log)
    kept = {name: [row for row in own if row["kind"] not in protocol.data.apart] for name, own in rows.items()}
    return _tuned(protocol, search, store.name, {name: own for name, own in kept.items() if own})


def _store(plan: Plan, name: str | None) -> StorePlan:
    stores = {store.name: store for store in plan.stores}
    if name is not None and name not in stores:
        raise InputError(f"tune: one of the stores {', '.join(stores)} expected, {name!r} found")
    return plan.stores[0] if name is None else stores[name]


def _measured(
    plan: Plan, store: StorePlan, forms: Sequence[str], metric: str, log: Log
) -> dict[str, list[dict[str, Any]]]:
    """Conversation → its rows, in benchmark order."""
    start, conversations, watcher = perf_counter(), plan.conversation_ids(), WATCHER.get()
    watcher.begin(STAGE, len(conversations))
    futures = [tune_task.submit(plan, store, name, forms, metric) for name in conversations]
    for _ in as_completed(futures):
        watcher.advance(STAGE)
    rows = {name: future.result() for name, future in zip(conversations, futures, strict=True)}
    log.end(STAGE, sum(map(len, rows.values())) * len(forms), perf_counter() - start)
    return rows


def _tuned(protocol: Protocol, search: Search, store: str, rows: dict[str, list[dict[str, Any]]]) -> Tuned:
    names = list(rows)
    count = len(names) if search.folds is None else min(search.folds, len(names))
    if count < 2:
        raise InputError(f"tune: at least two conversations with gold, in two folds, expected, {count} found")
    own = [row for name in names for row in rows[name]]
    values = np.array([row["values"] for row in own], np.float64)
    clusters = np.repeat(np.arange(len(names)), [len(rows[name]) for name in names])
    folds = clusters % count
    chosen, lead = choices(values[:, :-1], folds)
    held, base = values[np.arange(len(values)), chosen[folds]], values[:, -1]
    return Tuned(
        metric=search.metric,
        budget=search.budget,
        store=store,
        baseline_form=search.baseline,
        settings=len(search.forms),
        folds=tuple(
            Fold(
                conversations=tuple(names[fold::count]),
                questions=int((folds == fold).sum()),
                chosen=search.forms[chosen[fold]],
                lead=float(lead[fold]),
                value=float(held[folds == fold].mean()),
                baseline=float(base[folds == fold].mean()),
            )
            for fold in range(count)
        ),
        **_intervals(held, base, clusters, protocol),
        kinds=dict(_by_kind([row["kind"] for row in own], held, base)),
    )


def choices(values: Floats, folds: Codes) -> tuple[Codes, Floats]:
    """(f,) for each fold the column with the best mean over the rows of all other folds, and its lead there.

    `values`: (n, m), a row a question, a column a setting; `folds`: (n,) codes from 0, each of which occurs. Ties go
    to the earlier column. The lead is the distance to the next best column, NaN where there is one column.
    """
    count = int(folds.max()) + 1
    sums = np.zeros((count, values.shape[1]))
    np.add.at(sums, folds, values)
    sizes = np.bincount(folds, minlength=count)
    others = (sums.sum(axis=0) - sums) / (sizes.sum() - sizes)[:, None]
    # Sums of the same numbers in another order differ in their last digits: that must not decide a tie.
    others = others.round(12)
    ranked = np.sort(others, axis=1)[:, ::-1]
    lead = ranked[:, 0] - ranked[:, 1] if values.shape[1] > 1 else np.full(count, np.nan)
    return others.argmax(axis=1), lead


def _intervals(held: Floats, base: Floats, clusters: Codes, protocol: Protocol) -> dict[str, Interval]:
    rng = np.random.default_rng(protocol.seed)
    columns = np.column_stack([held, base, held - base])
    found = bootstrap_means(columns, clusters, samples=protocol.statistics.samples, rng=rng)
    names = ("value", "baseline", "difference")
    ends = zip(found.mean.tolist(), found.cluster_low.tolist(), found.cluster_high.tolist(), strict=True)
    return {name: Interval(*row) for name, row in zip(names, ends, strict=True)}


def _by_kind(kinds: list[str], held: Floats, base: Floats) -> Iterator[tuple[str, tuple[int, float, float]]]:
    """Kind → questions, held-out mean, baseline mean."""
    codes = np.array(kinds)
    for kind in dict.fromkeys(kinds):
        own = codes == kind
        yield kind, (int(own.sum()), float(held[own].mean()), float(base[own].mean()))

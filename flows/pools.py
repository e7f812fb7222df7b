"""How a pool of another system is checked against a protocol's data and put where the protocol can name it."""

from pathlib import Path
from typing import Any

import polars as pl

from flows.gate import planned, refuse_closed
from flows.protocol import Protocol
from storage import pool_files
from storage.errors import InputError
from storage.lake import Lake
from storage.pool_files import POOL, QUERIES, RESIDENT
from tasks.imported.bringing import facts, known
from tasks.imported.checks import checked
from tasks.imported.dumps import Files, convert
from tasks.ingest import ingest
from tasks.plan import Plan
from tasks.sealed import Unsealing


def import_pool(
    protocol: Protocol, lake: str, source: str, form: str, to: str, run: str, unsealing: Unsealing | None = None
) -> dict[str, Any]:
    """Check the pool at `source` and say what it holds; `form` names the system of a dump, `to` the folder to write.

    Raises `InputError` where the pool does not hold; then nothing stays in `to` that a protocol would run on.
    """
    plan = plan_of(protocol, lake, unsealing)
    place = source
    if form or run or to:
        if not to:
            raise InputError("pool: a folder to write the pool to expected, none given; name it with --to")
        _write(plan, source, form, to, run)
        place = to
    try:
        return facts(place, checked(place, known(plan)), plan)
    except InputError:
        if to:
            for name in (POOL, QUERIES, RESIDENT):
                (Path(to) / name).unlink(missing_ok=True)
        raise


def export_pool(
    protocol: Protocol,
    lake: str,
    system: str,
    to: str,
    size: int,
    run: str,
    unsealing: Unsealing | None = None,
    model: str = "",
) -> dict[str, Any]:
    """Let a system that is installed search the protocol's questions in its first store's records; write the pool.

    `model`: a model of the protocol with which the system extracts facts from the records first.
    """
    if system != "mem0":
        raise InputError(
            f"pool export: mem0 expected, {system!r} found; other systems' dumps come in with import --from"
        )
    if not to:
        raise InputError("pool: a folder to write the pool to expected, none given; name it with --to")
    _refuse_held(to)
    from tasks.imported.mem0 import export

    plan = plan_of(protocol, lake, unsealing)
    if model:
        plan.model(model)
    files, told = export(plan, plan.stores[0], size, run or "mem0", model)
    _put(files, to)
    return {**facts(to, checked(to, known(plan)), plan), **told}


def plan_of(protocol: Protocol, lake: str, unsealing: Unsealing | None = None) -> Plan:
    """The plan of a protocol whose own imported stores need not be there yet.

    Raises `StillSealed` for a sealed split without an unsealing.
    """
    refuse_closed(protocol, unsealing)
    data, place = protocol.data, str(Lake.open(lake).root)
    dataset = ingest(place, data.benchmark, data.path, data.sha256 or None, data.split)
    stores = tuple(store.model_copy(update={"pools": ""}) for store in protocol.stores)
    return planned(protocol.model_copy(update={"stores": stores}), place, dataset, unsealing)


def _write(plan: Plan, source: str, form: str, to: str, run: str) -> None:
    """The pool's files in `to`: of a dump, or of one run of a pool."""
    _refuse_held(to)
    if form:
        _put(convert(Path(source), form, plan.benchmark, run or Path(source).stem), to)
        return
    for name in (POOL, QUERIES, RESIDENT):
        frame = pool_files.read(source, name)
        if frame is not None:
            kept = frame.filter(pl.col("run_id") == run) if name == POOL and run else frame
            if kept.is_empty() and name == POOL:
                runs = ", ".join(sorted(set(frame["run_id"])))
                raise InputError(f"--run: one of {runs} expected, {run!r} found")
            pool_files.write(to, name, kept)


def _refuse_held(to: str) -> None:
    if any((Path(to) / name).exists() for name in (POOL, QUERIES, RESIDENT)):
        raise InputError(f"--to: a folder without a pool expected, one found in {to}")


def _put(files: Files, to: str) -> None:
    for name, rows in ((POOL, files.pool), (QUERIES, files.queries), (RESIDENT, files.resident)):
        if rows or name == POOL:
            pool_files.write(to, name, rows)

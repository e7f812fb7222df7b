"""Where a run's shards are worked on: in threads of this process, or on a Dask cluster."""

from typing import Any

from storage.errors import InputError

THREADS = "threads"
_EXPECTED = "threads, dask, or dask://host:port of a scheduler"


def task_runner(where: str, workers: int) -> Any:
    """Prefect's task runner for `where`, with `workers` shards at a time where this process decides.

    `dask` starts a cluster of `workers` single-threaded processes for the run; `dask://host:port` uses a scheduler
    that is there. Workers need this package and a lake that they reach under the same address. Raises `InputError`
    for another name or where Prefect's Dask package is not installed.
    """
    if where == THREADS:
        from prefect.task_runners import ThreadPoolTaskRunner

        return ThreadPoolTaskRunner(max_workers=workers)
    scheme, _, address = where.partition("://")
    if scheme != "dask" or (where != "dask" and not address):
        raise InputError(f"--runner: {_EXPECTED} expected, {where!r} found")
    try:
        from prefect_dask.task_runners import DaskTaskRunner
    except ImportError as error:
        raise InputError(
            "--runner: Prefect's Dask package expected, none found; pip install 'suffice[dask]'"
        ) from error
    if address:
        return DaskTaskRunner(address=f"tcp://{address}")
    return DaskTaskRunner(cluster_kwargs={"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None})

"""The main job with plain parameters: what deployments and schedules run."""

from typing import Annotated, Any, Literal

from prefect import flow, tags
from pydantic import Field

from flows import protocol as protocols
from flows.benchmark import benchmark
from flows.runners import THREADS, task_runner
from flows.stages import STAGES, chosen
from storage.lake import Lake

Until = Annotated[str, Field(json_schema_extra={"enum": ["", *STAGES]})]
Runner = Annotated[str, Field(pattern="^(threads|dask|dask://.+)$")]
Workers = Annotated[int, Field(ge=1)]


@flow(name="suffice", flow_run_name="{protocol}", persist_result=False, log_prints=False)
def scheduled(
    protocol: str,
    data: str = "",
    lake: str = "lake",
    until: Until = "",
    settings: dict[str, Any] | None = None,
    runner: Runner = THREADS,
    workers: Workers = 2,
    split: Literal["", "open", "sealed"] = "",
    freeze: str = "",
    identity: str = "",
) -> dict[str, Any]:
    """Run a protocol from its data to a report, going on from what the lake holds.

    Args:
        protocol: A protocol's TOML file, or the bare name of a shipped one.
        data: The benchmark's file or folder; empty where the protocol names it.
        lake: The folder, or s3:// place, of all tables and reports.
        until: Run the stages up to and with this one; empty runs all.
        settings: Changes of the protocol's keys, such as {"stores.0.pool.size": 100}.
        runner: threads, dask, or dask://host:port.
        workers: Shards that are worked on at the same time.
        split: open or sealed; empty for the protocol's own.
        freeze: The file of the manifest under which a sealed split is opened.
        identity: The file of the age identity that opens a sealed split: its path, never its content.
    """
    given = {"data.path": data, "data.split": split}
    changes = dict(settings or {}) | {key: value for key, value in given.items() if value}
    said = protocols.load(protocol, changes)
    root = str(Lake.open(lake).root)
    main = benchmark.with_options(task_runner=task_runner(runner, workers))
    with tags("suffice", said.name, said.data.split):
        summary: dict[str, Any] = main(said, root, chosen(None, until or None), freeze or None, identity or None)
    return {key: summary[key] for key in ("protocol", "digest", "paths", "new") if key in summary}

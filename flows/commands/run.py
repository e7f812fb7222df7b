"""`suffice run`, and `suffice report`: its last stage alone."""

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from flows.commands.options import (
    ArmsOption,
    ConversationsOption,
    DataOption,
    FreezeOption,
    IdentityOption,
    JsonOption,
    LakeOption,
    LimitOption,
    MaxCallsOption,
    MaxCostOption,
    OnlyOption,
    ProtocolName,
    QuietOption,
    SetOption,
    SplitOption,
    UntilOption,
    VerboseOption,
    chosen_protocol,
    refuse_closed,
)
from flows.commands.screen import console, print_json
from flows.ending import ends_at_once
from flows.progress import shown
from flows.protocol import Protocol
from flows.runners import THREADS, task_runner
from flows.server import configure
from flows.stages import chosen
from storage.errors import InputError, full
from storage.lake import Lake
from tasks.llm.budget import BudgetStop, budget
from tasks.llm.spent import spent


def run(
    protocol: ProtocolName,
    data: DataOption = None,
    lake: LakeOption = "lake",
    only: OnlyOption = None,
    until: UntilOption = None,
    arms: ArmsOption = None,
    limit: LimitOption = None,
    conversations: ConversationsOption = None,
    workers: Annotated[int, typer.Option(min=1, help="Shards that are worked on at the same time.")] = 2,
    split: SplitOption = None,
    freeze: FreezeOption = None,
    identity: IdentityOption = None,
    runner: Annotated[
        str, typer.Option("--runner", help="Where: threads, dask (a local cluster), or dask://host:port.")
    ] = THREADS,
    max_calls: MaxCallsOption = None,
    max_cost: MaxCostOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Run a protocol from its data to a report. What the lake holds already is not computed again."""
    said = chosen_protocol(protocol, data, arms, limit, conversations, set_, sealed=split, lake=lake)
    stages = chosen(only, until)
    if runner != THREADS and (max_calls, max_cost) != (None, None):
        raise InputError(
            f"--max-calls and --max-cost: --runner {THREADS} expected beside them, {runner} found; workers of a "
            "cluster do not know what the others spend"
        )
    root = str(Lake.open(lake).root)
    with budget(root, max_calls=max_calls, max_cost=max_cost):
        run_and_tell(
            said,
            root,
            stages,
            freeze,
            identity,
            runner=runner,
            workers=workers,
            as_json=as_json,
            quiet=quiet,
            verbose=verbose,
        )


def report(
    protocol: ProtocolName,
    data: DataOption = None,
    lake: LakeOption = "lake",
    arms: ArmsOption = None,
    limit: LimitOption = None,
    conversations: ConversationsOption = None,
    split: SplitOption = None,
    freeze: FreezeOption = None,
    identity: IdentityOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    mix_budgets: Annotated[
        bool, typer.Option("--mix-budgets", help="Also rank arms of all budgets in one table; report.mix_budgets.")
    ] = False,
) -> None:
    """Write the report of what the lake holds for a protocol, and compute nothing else."""
    changes = [*(set_ or []), *(["report.mix_budgets=true"] if mix_budgets else [])]
    said = chosen_protocol(protocol, data, arms, limit, conversations, changes, sealed=split, lake=lake)
    root = str(Lake.open(lake).root)
    run_and_tell(said, root, ("report",), freeze, identity, as_json=as_json, quiet=quiet, verbose=verbose)


def run_and_tell(
    said: Protocol,
    root: str,
    stages: tuple[str, ...],
    freeze: str | None,
    identity: str | None,
    *,
    runner: str = THREADS,
    workers: int = 1,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Run the benchmark flow in this process and print what it made and what its own calls were.

    Where it has a cluster, the calls are those of every run on the lake at that time, and are said to be.
    """
    since = datetime.now(UTC)
    summary = run_flow(
        said, root, stages, freeze, identity, runner=runner, workers=workers, quiet=quiet or as_json, verbose=verbose
    )
    if said.models and stages != ("report",):
        by_all = runner != THREADS
        summary |= {"calls": [row._asdict() for row in spent(root, since, by_all=by_all)], "calls by all runs": by_all}
    if as_json:
        print_json(summary)
    else:
        print_summary(summary)


def run_flow(
    said: Protocol,
    root: str,
    stages: tuple[str, ...],
    freeze: str | None = None,
    identity: str | None = None,
    *,
    runner: str = THREADS,
    workers: int = 1,
    quiet: bool,
    verbose: bool,
) -> dict[str, Any]:
    """The summary of the benchmark flow, run in this process.

    Raises `StillSealed` before any server is started for a sealed split without a freeze, and `InputError` where the
    disk is full or the lake cannot be opened any more, whichever of a run's parts met that first.
    """
    refuse_closed(said, freeze, identity)
    configure(Lake(root).prefect, verbose=verbose)
    if not quiet and sys.stderr.isatty():
        Console(stderr=True).print("starting Prefect (10 to 30 s where it runs its own server)", style="dim")
    from prefect import tags

    from flows.benchmark import benchmark

    where = task_runner(runner, workers)

    told = tags("suffice", said.name, said.data.split)
    main = benchmark.with_options(task_runner=where)
    try:
        with ends_at_once(), shown(Console(stderr=True), quiet=quiet), told:
            summary: dict[str, Any] = main(said, root, stages, freeze, identity)
    except (InputError, BudgetStop):
        raise
    except Exception as error:
        Lake.open(root, new=False)  # a lake that is gone, or whose store does not answer, says so itself
        if Lake(root).is_full():
            raise full(root) from error
        raise
    return summary


def print_summary(summary: Mapping[str, Any]) -> None:
    """What a run made, for people."""
    out = console()
    if "headline" in summary:
        _print_headline(out, summary["headline"], summary["offline"])
        reuse = summary["reuse"]
        out.print(
            f"{reuse['cells with evidence']:,} cells over {reuse['distinct evidence states']:,} distinct "
            f"evidence states: {reuse['cells that share a state']:,} cells shared one, "
            f"which saved {reuse['answers saved']:,} answers and {reuse['verdicts saved']:,} verdicts.",
            highlight=False,
        )
        missing = reuse["cells"] - reuse["cells with evidence"]
        if missing:
            out.print(
                f"{missing:,} of {reuse['cells']:,} cells have no evidence in this lake: `suffice run` computes them.",
                highlight=False,
            )
    for told in summary["stores"]:
        out.print(_of_store(told), highlight=False)
    new = ", ".join(f"{count:,} {stage}" for stage, count in summary["new"].items() if count)
    out.print(f"New in this run: {new or 'nothing, all was in the lake'}.", highlight=False)
    if "calls" in summary:
        if summary["calls by all runs"] and summary["calls"]:
            out.print("Calls of every run on this lake since this one began:", highlight=False)
        _print_calls(out, summary["calls"])
    for line in summary.get("sealing", []):
        out.print(f"- {line}", highlight=False, markup=False, soft_wrap=True)
    if "paths" in summary:
        out.print(f"Report: {summary['paths']['report']}", highlight=False, soft_wrap=True)


def _print_calls(out: Console, calls: Sequence[Mapping[str, Any]]) -> None:
    """A line a purpose and model of what was asked; nothing is said to be free where its price is unknown."""
    if not calls:
        out.print("Calls: none.", highlight=False)
    for row in calls:
        prompt, reply, cost = (row[name] for name in ("prompt_tokens", "completion_tokens", "cost"))
        tokens = "tokens unknown" if None in (prompt, reply) else f"{prompt:,} prompt and {reply:,} reply tokens"
        price = "cost unknown" if cost is None else f"{cost:.4f} US dollars"
        said = f"Calls for {row['purpose']}, model {row['model']}: {row['calls']:,}; {tokens}; {price}."
        out.print(said, highlight=False, markup=False, soft_wrap=True)


def _of_store(told: Mapping[str, Any]) -> str:
    """A line on a store that a model wrote or a hybrid with entities ranks."""
    read = [
        f"{row['batches']:,} {row['status']}"
        + f" ({row['facts']:,} facts, {row['repeated']:,} repeated, {row['unplaced']:,} without a message)"
        * (row["status"] == "ok")
        for row in told.get("batches", ())
    ]
    said = [f"batches of messages: {', '.join(read)}"] if read else []
    if pools := told.get("pools"):
        said.append(
            f"BM25 took part in {pools['bm25']:,} and entities in {pools['entities']:,} of {pools['pools']:,} pools"
        )
    return f"Store {told['store']}: {'; '.join(said)}."


def _print_headline(out: Console, headline: list[dict[str, Any]], offline: bool) -> None:
    title = "Overall, %" + ("; answers and verdicts are the offline programs'" if offline else "")
    table = Table(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    for name in headline[0]:
        table.add_column(name, justify="left" if name == "arm" else "right", no_wrap=name == "arm", overflow="fold")
    for row in headline:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    out.print(table)

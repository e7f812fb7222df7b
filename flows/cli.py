"""The command: arguments and environment to flow arguments, results to the screen, mistakes to exit codes."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows import protocol as protocols
from flows.progress import shown
from flows.protocol import Protocol
from flows.server import configure
from flows.stages import STAGES, chosen
from storage.errors import InputError
from storage.lake import Lake

app = typer.Typer(
    name="suffice",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Does the reader hand the agent enough evidence to answer? Benchmarks readers of long-term agent memory.",
)

ProtocolName = Annotated[str, typer.Argument(help="A protocol's TOML file, or the bare name of a shipped one.")]
DataOption = Annotated[str | None, typer.Option("--data", help="The benchmark's file or its folder.")]
LakeOption = Annotated[
    Path, typer.Option("--lake", envvar="SUFFICE_LAKE", help="The folder of all tables and reports.")
]
OnlyOption = Annotated[str | None, typer.Option("--only", help=f"Run this stage alone: {', '.join(STAGES)}.")]
UntilOption = Annotated[str | None, typer.Option("--until", help="Run the stages up to and with this one.")]
ArmsOption = Annotated[
    list[str] | None,
    typer.Option("--arms", help="Run these arms instead of the protocol's: hybrid@k10,'mmr(trade=0.7)'."),
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", help="Run this many questions, taken from all conversations in turn.")
]
ConversationsOption = Annotated[
    list[str] | None, typer.Option("--conversations", help="Run these conversations: conv-26,conv-30.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a key of the protocol: stores.0.pool.size=100, seed=7."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Show Prefect's log.")]


@app.command()
def run(
    protocol: ProtocolName,
    data: DataOption = None,
    lake: LakeOption = Path("lake"),
    only: OnlyOption = None,
    until: UntilOption = None,
    arms: ArmsOption = None,
    limit: LimitOption = None,
    conversations: ConversationsOption = None,
    workers: Annotated[int, typer.Option(min=1, help="Shards that are worked on at the same time.")] = 2,
    set_: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Run a protocol from its data to a report. What the lake holds already is not computed again."""
    said = _protocol(protocol, data, arms, limit, conversations, set_)
    stages = chosen(only, until)
    _check_data(said)
    root = Lake.open(lake).root
    summary = _run_flow(said, root, stages, workers, quiet=quiet or as_json, verbose=verbose)
    if as_json:
        print(json.dumps(summary, ensure_ascii=False))
    else:
        _print_summary(summary)


@app.command()
def report(
    protocol: ProtocolName,
    data: DataOption = None,
    lake: LakeOption = Path("lake"),
    arms: ArmsOption = None,
    limit: LimitOption = None,
    conversations: ConversationsOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Write the report of what the lake holds for a protocol, and compute nothing else."""
    said = _protocol(protocol, data, arms, limit, conversations, set_)
    _check_data(said)
    root = Lake.open(lake).root
    summary = _run_flow(said, root, ("report",), 1, quiet=quiet or as_json, verbose=verbose)
    if as_json:
        print(json.dumps(summary, ensure_ascii=False))
    else:
        _print_summary(summary)


@app.command()
def status(
    protocol: ProtocolName,
    data: DataOption = None,
    lake: LakeOption = Path("lake"),
    arms: ArmsOption = None,
    limit: LimitOption = None,
    conversations: ConversationsOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what the lake holds for a protocol and what is missing. Starts no server and computes nothing."""
    from flows.status import held

    said = _protocol(protocol, data, arms, limit, conversations, set_)
    _check_data(said)
    if not (lake / "lake.json").is_file():
        raise InputError(f"lake {lake}: a lake expected, none found; `suffice run {protocol}` makes one")
    rows = held(said, str(Lake.open(lake).root))
    if as_json:
        print(json.dumps([row._asdict() for row in rows], ensure_ascii=False))
        return
    table = Table("stage", "what", "held", "expected", "missing", title=f"{said.name} in {lake}")
    for row in rows:
        table.add_row(row.stage, row.what, f"{row.held:,}", f"{row.expected:,}", f"{row.expected - row.held:,}")
    Console().print(table)


@app.command()
def analyse(
    what: Annotated[str, typer.Argument(help="What to analyse: pursuit.")],
    protocol: ProtocolName,
    data: DataOption = None,
    lake: LakeOption = Path("lake"),
    store: Annotated[str | None, typer.Option("--store", help="The store to analyse; the first if none.")] = None,
    conversations: ConversationsOption = None,
    limit: LimitOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Analyse why a reader selects as it does, over pools that the lake holds.

    `pursuit`: what MemPursuit replaces and covers, its nested budget curve with the adaptive point, whether gold
    reconstructs the question better than the ranking does, and whether the residual prefers missing evidence.
    """
    if what != "pursuit":
        raise InputError(f"analyse: pursuit expected, {what!r} found")
    said = _protocol(protocol, data, None, limit, conversations, set_)
    _check_data(said)
    root = Lake.open(lake).root
    configure(Lake(root).prefect, verbose=verbose)
    from flows.analyse import analyse as flow

    with shown(Console(stderr=True), quiet=quiet or as_json):
        paths: dict[str, str] = flow(said, str(root), store)
    readings = json.loads(Path(paths["summary"]).read_text(encoding="utf-8"))["readings"]
    if as_json:
        print(json.dumps({"paths": paths, "readings": readings}, ensure_ascii=False))
        return
    console = Console() if sys.stdout.isatty() else Console(width=120)
    for reading in readings.values() if isinstance(readings, dict) else readings:
        console.print(f"- {reading}", highlight=False)
    console.print(f"Analysis: {paths['analysis']}", highlight=False, soft_wrap=True)


@app.command()
def trace(
    question: Annotated[str, typer.Argument(help="A question's id, as the report shows it: conv-26/q0.")],
    protocol: Annotated[str, typer.Option("--protocol", help="The protocol that was run.")] = "sample",
    data: DataOption = None,
    lake: LakeOption = Path("lake"),
    arms: ArmsOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show step by step how every arm came by its evidence for one question, and which gold turn entered when."""
    from flows.trace import trace as traced

    said = _protocol(protocol, data, arms, None, None, set_)
    _check_data(said)
    found = traced(said, str(Lake.open(lake).root), question)
    if as_json:
        print(json.dumps(found, ensure_ascii=False))
        return
    console = Console() if sys.stdout.isatty() else Console(width=120)
    console.print(f"{found['question']} ({found['kind']}): {found['text']}", highlight=False, markup=False)
    console.print(
        f"gold: {found['answer']} from {', '.join(found['gold']) or 'no turn'}", highlight=False, markup=False
    )
    table = Table("arm", "step", "cue", "came back", "kept", "gold that entered", box=SIMPLE)
    for arm in found["arms"]:
        for step in arm["steps"]:
            cells = (arm["arm"], step["view"], step["cue"], str(step["returned"]), str(len(step["kept"])))
            table.add_row(*map(escape, cells), escape(", ".join(step["gold"])))
    console.print(table)


@app.command("arms")
def list_arms(as_json: JsonOption = False) -> None:
    """List every reader with its parameters, their defaults and its source."""
    from flows.catalogue import readers

    rows = readers()
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
        return
    table = Table("reader", "what it does", "parameters", "source", title="Readers", show_lines=True)
    for row in rows:
        table.add_row(row["name"], row["title"], row["parameters"], row["source"])
    console = Console()
    console.print(table)
    console.print(
        "An arm is reader(parameter=value)@budget:store. Budgets: k10 (ten records), t2000 (2,000 tokens), all.",
        highlight=False,
    )


@app.command()
def doctor(
    endpoint: Annotated[
        list[str] | None,
        typer.Option("--endpoint", help="Also ask this OpenAI-compatible base URL for its models."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check what is installed, which models and endpoints answer, and say how to get what is missing."""
    from flows.doctor import checks

    rows = checks(endpoint or [])
    if as_json:
        print(json.dumps([row._asdict() for row in rows], ensure_ascii=False))
    else:
        table = Table("", "check", "found", "what to do")
        for row in rows:
            table.add_row("[green]ok[/]" if row.ok else "[red]missing[/]", row.name, row.found, row.remedy)
        Console().print(table)
    raise typer.Exit(0 if all(row.ok for row in rows) else 1)


@app.command()
def fetch(
    benchmark: Annotated[str, typer.Argument(help="The benchmark to download: locomo.")],
    to: Annotated[Path, typer.Option("--to", help="The folder to put it in.")] = Path("data"),
    url: Annotated[str | None, typer.Option("--url", help="Another place that serves the same file.")] = None,
    quiet: QuietOption = False,
) -> None:
    """Download a benchmark from its public home, check its digest, and go on with a broken download."""
    from tasks.fetch import fetch as download

    console = Console(stderr=True)
    path = download(benchmark, to, url, None if quiet else lambda text: console.print(text, highlight=False))
    print(path)


@app.command()
def bench(
    what: Annotated[str, typer.Argument(help="What to measure: pipeline, readers.")] = "pipeline",
    data: DataOption = None,
    lake: Annotated[
        Path | None, typer.Option("--lake", help="A lake whose cached vectors `readers` may use; else a passing one.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure speed on this machine; the bundled sample where no LoCoMo file is named with --data.

    `pipeline` runs the main job from nothing to the report, then again. `readers` times the pursuit over a grid of
    candidates and budgets, against one pass over the pool, the published times and other solvers in the same run.
    """
    from flows.bench import measure

    measured = measure(what, data, None if lake is None else str(lake))
    if as_json:
        print(json.dumps(measured))
        return
    console = Console() if sys.stdout.isatty() else Console(width=140)
    plain = Table("measure", "value", title=f"suffice bench {what}", box=SIMPLE)
    for name, value in measured.items():
        if isinstance(value, list):
            _print_rows(console, name, value)
        else:
            plain.add_row(name, str(value))
    console.print(plain)


def _print_rows(console: Console, title: str, rows: list[dict[str, Any]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = Table(*names, title=title, title_justify="left", box=SIMPLE)
    for row in rows:
        table.add_row(*("" if row.get(name) is None else str(row[name]) for name in names))
    console.print(table)


def main() -> None:
    """Entry point: runs the command; bad input is one line on standard error and exit code 2."""
    try:
        app(standalone_mode=True)
    except InputError as error:
        Console(stderr=True).print(f"suffice: {error}", style="red", highlight=False, markup=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print(
            "suffice: interrupted; what was computed is kept, run again to go on", highlight=False
        )
        sys.exit(130)


def _protocol(
    name: str,
    data: str | None,
    arms: list[str] | None,
    limit: int | None,
    conversations: list[str] | None,
    changes: list[str] | None,
) -> Protocol:
    """The protocol with the command line's changes made, so that its digest tells them."""
    made = dict(protocols.setting(change) for change in changes or [])
    given = {
        "data.path": data,
        "arms": _split(arms),
        "data.limit": limit,
        "data.conversations": _split(conversations),
    }
    made |= {key: value for key, value in given.items() if value}
    return protocols.load(name, made)


def _split(values: list[str] | None) -> list[str]:
    """Comma-separated items, commas within parentheses left alone."""
    return [item.strip() for value in values or [] for item in re.split(r",(?![^()]*\))", value) if item.strip()]


def _check_data(said: Protocol) -> None:
    from tasks.sources import locate

    locate(said.data.benchmark, said.data.path)


def _run_flow(
    said: Protocol, root: Path, stages: tuple[str, ...], workers: int, *, quiet: bool, verbose: bool
) -> dict[str, Any]:
    configure(Lake(root).prefect, verbose=verbose)
    if not quiet and sys.stderr.isatty():
        Console(stderr=True).print("starting Prefect (10 to 30 s where it runs its own server)", style="dim")
    from prefect.task_runners import ThreadPoolTaskRunner

    from flows.benchmark import benchmark

    with shown(Console(stderr=True), quiet=quiet):
        runner: Any = ThreadPoolTaskRunner(max_workers=workers)
        summary: dict[str, Any] = benchmark.with_options(task_runner=runner)(said, str(root), stages)
    return summary


def _print_summary(summary: Mapping[str, Any]) -> None:
    console = Console() if sys.stdout.isatty() else Console(width=120)
    if "headline" in summary:
        _print_headline(console, summary["headline"], summary["offline"])
        reuse = summary["reuse"]
        console.print(
            f"{reuse['cells with evidence']:,} cells over {reuse['distinct evidence states']:,} distinct "
            f"evidence states: {reuse['cells that share a state']:,} cells shared one, "
            f"which saved {reuse['answers saved']:,} answers and {reuse['verdicts saved']:,} verdicts.",
            highlight=False,
        )
    new = ", ".join(f"{count:,} {stage}" for stage, count in summary["new"].items() if count)
    console.print(f"New in this run: {new or 'nothing, all was in the lake'}.", highlight=False)
    if "paths" in summary:
        console.print(f"Report: {summary['paths']['report']}", highlight=False, soft_wrap=True)


def _print_headline(console: Console, headline: list[dict[str, Any]], offline: bool) -> None:
    title = "Overall, %" + ("; answers and verdicts are the offline programs'" if offline else "")
    table = Table(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    for name in headline[0]:
        table.add_column(name, justify="left" if name == "arm" else "right", no_wrap=True)
    for row in headline:
        table.add_row(*("" if value is None else str(value) for value in row.values()))
    console.print(table)


if __name__ == "__main__":
    main()

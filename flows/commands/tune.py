"""`suffice tune`."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.commands.options import (
    ConversationsOption,
    DataOption,
    JsonOption,
    LakeOption,
    LimitOption,
    ProtocolName,
    QuietOption,
    SetOption,
    SplitOption,
    VerboseOption,
    chosen_protocol,
    refuse_closed,
)
from flows.commands.screen import console, print_json
from flows.progress import shown
from flows.server import configure
from storage.lake import Lake

if TYPE_CHECKING:
    from flows.tune import Interval, Tuned


def tune(
    protocol: ProtocolName,
    reader: Annotated[str, typer.Argument(help="The reader, with what stays fixed: 'locality(sigma=0.5)'.")],
    grid: Annotated[
        list[str] | None, typer.Option("--grid", help="A parameter and its values: 'rho=0,0.25,0.5'. Repeatable.")
    ] = None,
    baseline: Annotated[str, typer.Option("--baseline", help="The reader to compare with.")] = "hybrid",
    budget: Annotated[str, typer.Option("--budget", help="The budget of both: k10, t2000, C3.")] = "k10",
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            help="What is maximised: complete_evidence, evidence_recall, gold_hit, session_recall, complete_sessions.",
        ),
    ] = "complete_evidence",
    folds: Annotated[
        int | None, typer.Option("--folds", min=2, help="Folds of whole conversations; one a conversation if none.")
    ] = None,
    store: Annotated[str | None, typer.Option("--store", help="The store to read; the first if none.")] = None,
    data: DataOption = None,
    lake: LakeOption = "lake",
    conversations: ConversationsOption = None,
    limit: LimitOption = None,
    split: SplitOption = None,
    workers: Annotated[int, typer.Option(min=1, help="Conversations that are read at the same time.")] = 2,
    set_: SetOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Choose a reader's parameters on some conversations and report what they do on the others.

    Every figure is held out: the conversations of a fold are read with the setting that was best on all others. A
    sealed split is not tuned on.
    """
    from tasks.grid import settings

    forms = settings(reader, grid or [])
    said = chosen_protocol(protocol, data, None, limit, conversations, set_, sealed=split, lake=lake)
    refuse_closed(said)
    root = Lake.open(lake).root
    configure(Lake(root).prefect, verbose=verbose)
    from prefect.task_runners import ThreadPoolTaskRunner

    from flows.tune import Search
    from flows.tune import tune as flow

    search = Search(forms, baseline, budget, metric, store, folds)
    with shown(Console(stderr=True), quiet=quiet or as_json):
        runner: Any = ThreadPoolTaskRunner(max_workers=workers)
        found: Tuned = flow.with_options(task_runner=runner)(said, str(root), search)
    if as_json:
        print_json({**asdict(found), "times_chosen": found.times_chosen})
    else:
        _print(console(), found)


def _print(out: Console, found: "Tuned") -> None:
    title = f"{found.metric} at {found.budget} over store {found.store}, %, every fold read with what the others chose"
    table = Table("fold", "chosen on the others", title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    for name in ("lead there", "questions", "held out", found.baseline_form):
        table.add_column(escape(name), justify="right")
    for number, fold in enumerate(found.folds, start=1):
        name = fold.conversations[0] if len(fold.conversations) == 1 else f"{number}"
        figures = (f"{100 * fold.lead:.2f}", f"{fold.questions:,}", _percent(fold.value), _percent(fold.baseline))
        table.add_row(escape(name), escape(fold.chosen), *figures)
    out.print(table)
    kinds = Table("kind", box=SIMPLE, pad_edge=False)
    for name in ("questions", "held out", found.baseline_form):
        kinds.add_column(escape(name), justify="right")
    for kind, (count, value, base) in found.kinds.items():
        kinds.add_row(escape(kind), f"{count:,}", _percent(value), _percent(base))
    out.print(kinds)
    counts = [f"{form} in {count}" for form, count in found.times_chosen.items()]
    for line in (
        f"Held out: {_spread(found.value)}. {found.baseline_form}: {_spread(found.baseline)}. "
        f"Difference: {_spread(found.difference, sign='+')}. 95 % intervals over conversations.",
        f"Chosen of {found.settings} settings, in {len(found.folds)} folds: {', '.join(counts)}.",
        "No figure here was looked at when choosing: a fold's setting is the best on the other folds alone. "
        "The folds share most of what they were chosen on, which the intervals do not know.",
    ):
        out.print(line, highlight=False, markup=False)


def _percent(value: float) -> str:
    return f"{100 * value:.1f}"


def _spread(interval: "Interval", sign: str = "") -> str:
    ends = (100 * end for end in (interval.mean, interval.low, interval.high))
    mean, low, high = (f"{end:{sign}.1f}" for end in ends)
    return f"{mean} ({low} to {high})"

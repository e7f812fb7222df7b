"""The papers' tables and figures from what a lake holds."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from flows.gate import planned
from flows.protocol import Protocol
from flows.report import results
from reports.comparisons import compare
from reports.drawing import Figure
from reports.latency_grid import latency_grid
from reports.overview_figures import overview
from reports.paper_figures import paper_figures
from reports.paper_files import FORMATS, reading, write_tables
from reports.paper_lookup import Ran
from reports.paper_tables import PaperTable, build
from reports.published import names, printed
from reports.results import Results
from reports.tables import summarise
from storage.errors import InputError
from storage.lake import Lake
from storage.places import read_whole
from tasks import specs
from tasks.answerers import ANSWERERS
from tasks.encoders import ENCODERS
from tasks.ingest import ingest
from tasks.judges import JUDGES
from tasks.plan import Plan, StorePlan
from tasks.sealed import Unsealing
from tasks.sufficiency import SUFFICIENCY_JUDGES

LABELS = {"sufficient": 1.0, "insufficient": 0.0}


def tables(
    protocol: Protocol,
    lake: str,
    unsealing: Unsealing | None = None,
    wanted: Sequence[str] = (),
    formats: Sequence[str] = ("html",),
    out: Path | None = None,
    bench: Path | None = None,
) -> dict[str, Any]:
    """Write the tables that `wanted` names, all if empty, into `out`, or else the lake's reports.

    Reads what the lake holds; starts no server and computes no evidence. Returns `folder`, `paths` by name, `tables`: a
    row each with how many published numbers have ours beside them, and `figures`: name → reading.
    Raises `InputError` for a table, a format or a bench file that is none.
    """
    chosen, unknown = names(wanted)
    if unknown:
        raise InputError(f"--table: some of {', '.join(printed())} expected, {unknown[0]!r} found")
    if strange := [each for each in formats if each not in FORMATS]:
        raise InputError(f"--format: some of {', '.join(FORMATS)} expected, {strange[0]!r} found")
    ran = _ran(protocol, lake, unsealing, _bench(bench))
    found = build(ran, [printed()[name] for name in chosen])
    figures = [*([] if wanted else _figures(ran)), *paper_figures(found)]
    folder = out or Lake(lake).reports / f"{protocol.name}-tables"
    summary = {
        "Run": protocol.name,
        "Benchmark": ran.results.reads,
        "Questions": f"{ran.results.questions.height:,}",
        "Arms": f"{len(ran.results.arms):,}",
        "Answerer": ran.answerer,
    }
    title = protocol.title or protocol.name
    paths = write_tables(found, figures, formats, folder, title, summary)
    return {
        "folder": str(folder),
        "paths": {name: str(path) for name, path in paths.items()},
        "tables": [_told(table) for table in found],
        "figures": {figure.name: figure.reading for figure in figures},
    }


def _figures(ran: Ran) -> list[Figure]:
    """This run's pictures and, where a bench stands beside it, that of its latencies."""
    measured = latency_grid(ran.bench["cells"]) if ran.bench else None
    drawn = overview(ran.results, summarise(ran.results), compare(ran.results))
    return [*drawn, measured] if measured else drawn


def _told(table: PaperTable) -> dict[str, Any]:
    cells = list(table.cells)
    return {
        "table": table.name,
        "title": table.title,
        "published": sum(cell.published is not None for cell in cells),
        "ours": sum(cell.ours is not None for cell in cells),
        "beside": sum(cell.difference is not None for cell in cells),
        "reading": reading(table),
    }


def _ran(protocol: Protocol, lake: str, unsealing: Unsealing | None, bench: dict[str, Any] | None) -> Ran:
    data = protocol.data
    dataset = ingest(lake, data.benchmark, data.path, data.sha256 or None, data.split)
    plan = planned(protocol, lake, dataset, unsealing)
    found = results(protocol, plan, dataset, {})
    answerer = specs.make(ANSWERERS, plan.answerer, "answerer")
    asking = [judge for judge in plan.judges if not specs.make(JUDGES, judge, "judge").offline]
    panel = [specs.make(SUFFICIENCY_JUDGES, judge, "sufficiency judge") for judge in plan.panel]
    asked = bool(panel) and not any(judge.offline for judge in panel)
    models = {model.name: model.model for model in plan.models}
    return Ran(
        results=found,
        sufficiency=_sufficiency(found),
        judge=next(iter(asking), ""),
        panel=", ".join(filter(None, [*plan.panel, plan.adjudicator])) if asked else "",
        answerer=_named(plan.answerer, models),
        offline_answers=answerer.offline,
        encoders={store.name: _encoder(store.encoder) for store in plan.stores},
        stores={store.name: _store(store) for store in plan.stores},
        models=models,
        bench=bench,
        pursuit=_pursuit(protocol, plan),
    )


def _store(store: StorePlan) -> str:
    """A store's writer in the words of the papers, for which turns as they were said are flat turns."""
    if store.pools:
        return "imported candidates"
    return f"flat {store.writer}" if store.writer.startswith("turns") else store.writer


def _encoder(form: str) -> str:
    title = getattr(specs.make(ENCODERS, form, "encoder"), "title", "")
    return f"{form}: {title}" if title else form


def _named(part: str, models: dict[str, str]) -> str:
    """A part with its model's own name beside the protocol's."""
    told = [model for name, model in models.items() if f"model={name}" in part]
    return f"{part} ({', '.join(told)})" if told else part


def _sufficiency(found: Results) -> pl.DataFrame:
    score = pl.col("sufficiency").replace_strict(LABELS, default=None, return_dtype=pl.Float64)
    return found.cells.select("arm", "question_id", sufficient=score)


def _pursuit(protocol: Protocol, plan: Plan) -> pl.DataFrame | None:
    """The numbers of the analysis of the first store, where it was written for these very inputs."""
    from flows.analyse import analysis_folder

    numbers = analysis_folder(protocol, plan, plan.stores[0]) / "numbers.csv"
    return pl.read_csv(read_whole(numbers)) if numbers.is_file() else None


def _bench(path: Path | None) -> dict[str, Any] | None:
    """What `suffice bench readers --json` printed into a file."""
    if path is None:
        return None
    try:
        said = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"--bench: the JSON that `suffice bench readers --json` prints expected, {error}") from error
    if not isinstance(said, dict) or not isinstance(said.get("cells"), list):
        raise InputError(f"--bench {path}: what `suffice bench readers --json` prints expected, no `cells` found")
    return said

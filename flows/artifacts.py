"""What does the Prefect page of a run show of its report? Means of whole arms alone: no question, gold or answer."""

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def keep_artifacts(summary: Mapping[str, Any]) -> None:
    """Keep the headline of a report's summary as a markdown artifact and its page as a link artifact of this run.

    Does nothing outside of a flow run; a server that does not take them costs a warning, never the run.
    """
    from prefect.artifacts import create_link_artifact, create_markdown_artifact
    from prefect.context import FlowRunContext

    if FlowRunContext.get() is None:
        return
    name, page = summary["protocol"], summary["paths"]["report"]
    try:
        create_markdown_artifact(headline(summary), key=key(name, "headline"), description="Means of every arm, %")
        create_link_artifact(link(page), link_text="Report", key=key(name, "report"), description=cell(page))
    except Exception as error:  # whatever the client raises: the report is written, and that is what the run is for
        logging.getLogger(__name__).warning("no artifacts of this run were kept: %s", error)


def headline(summary: Mapping[str, Any]) -> str:
    """The headline table as markdown, a row an arm, a dash where nothing was measured; below it a link a figure."""
    rows = summary["headline"]
    heads = list(dict.fromkeys(head for row in rows for head in row))
    lines = [f"## {cell(summary['protocol'])}", "", f"{summary['questions']:,} questions"]
    lines[-1] += "; answers and scores are those of offline programs" if summary["offline"] else ""
    if rows:
        lines += ["", _line(heads), "|:--|" + "--:|" * (len(heads) - 1)]
        lines += [_line(["–" if row.get(head) is None else row[head] for head in heads]) for row in rows]
    figures = {name: path for name, path in summary["paths"].items() if path.endswith(".svg")}
    if figures:
        lines += ["", "Figures: " + ", ".join(f"[{cell(name)}]({link(path)})" for name, path in figures.items())]
    return "\n".join(lines) + "\n"


def key(*parts: str) -> str:
    """An artifact's key: lower-case letters, digits and dashes, all that the server takes."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")


def link(page: str) -> str:
    """An address that a browser opens: a page's file by its URI, a page elsewhere as it is."""
    return page if "://" in page else Path(page).absolute().as_uri()


def cell(value: object) -> str:
    """Text that markdown takes for nothing but itself."""
    text = re.sub(r"([\\`*_{}\[\]()#+!|~>-])", r"\\\1", re.sub(r"\s+", " ", str(value)))
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _line(values: list[Any]) -> str:
    return f"| {' | '.join(map(cell, values))} |"

"""How a dump of another system's search results becomes the files of a neutral pool."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from storage.errors import InputError
from storage.pool_files import SCHEMA_VERSION
from tasks.imported.checks import SCORE_KINDS
from tasks.imported.formats import FORMATS, Format, Found

Row = dict[str, Any]
_TIMES = ("%Y%m%d%H%M", "%Y/%m/%d", "%Y/%m/%d %H:%M", "%I:%M %p on %d %B, %Y", "%d %B, %Y", "%d %B %Y")


@dataclass
class Files:
    """Rows of the pool and of its sidecars."""

    pool: list[Row] = field(default_factory=list)
    queries: list[Row] = field(default_factory=list)
    resident: list[Row] = field(default_factory=list)


def convert(path: Path, name: str, benchmark: str, run: str) -> Files:
    """The pool in a dump: one JSON object a line, each a question.

    `{conversation_id, question_id, results, system_version?, embedder_id?, query_embedding?}`; the shape of `results`
    is the format's. Raises `InputError` for an unknown format and for a line that is not of that shape.
    """
    if name not in FORMATS:
        raise InputError(f"--from: one of {', '.join(FORMATS)} expected, {name!r} found")
    files = Files()
    for number, line in enumerate(_lines(path), 1):
        try:
            said = json.loads(line)
            _add(files, FORMATS[name], said, benchmark, run)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            cause = f"{type(error).__name__} {error}"
            raise InputError(f"{path}: line {number}: results {FORMATS[name].shape} expected, {cause} found") from error
    return files


def rows(found: list[Found], **question: Any) -> Iterator[Row]:
    """Rows of the pool for one question's candidates, best first; `question` gives the columns that they share."""
    embedder = question.pop("embedder_id", None)
    for rank, item in enumerate(found):
        scored = item.scored if item.score is not None else "none"
        better = SCORE_KINDS[scored] if scored != "hybrid" else True
        yield {
            "schema_version": SCHEMA_VERSION,
            **question,
            "candidate_id": item.id,
            "native_rank": rank,
            "native_score": item.score,
            "score_kind": scored,
            "higher_is_better": better if item.score is not None else None,
            "text": _storable(item.text),
            "kind": item.kind,
            "speaker": item.speaker,
            "timestamp": time_of(item.at),
            "timestamp_raw": item.at,
            "source_turn_ids": list(item.turns),
            "source_session_ids": [],
            "embedding": item.vector,
            "embedder_id": (embedder or "unnamed") if item.vector is not None else None,
            "channels": list(item.channels),
            "group_id": item.group,
            "extra_json": json.dumps(item.more) if item.more else None,
        }


def time_of(text: Any) -> datetime | None:
    """The local time that a date says, None where it says none that can be read; never now."""
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text.strip()).replace(tzinfo=None)
    except ValueError:
        pass
    for form in _TIMES:
        try:
            return datetime.strptime(text.strip(), form)
        except ValueError:
            continue
    return None


def _add(files: Files, format: Format, said: Mapping[str, Any], benchmark: str, run: str) -> None:
    question, conversation = str(said["question_id"]), str(said["conversation_id"])
    embedder = said.get("embedder_id")
    shared = {
        "benchmark": benchmark,
        "conversation_id": conversation,
        "question_id": question,
        "system": format.system,
        "system_version": str(said.get("system_version", "")),
        "run_id": run,
        "embedder_id": embedder,
    }
    files.pool += rows(format.read(said["results"]), **shared)
    vector = said.get("query_embedding")
    named = (embedder or "unnamed") if vector is not None else None
    files.queries.append({"question_id": question, "embedding": vector, "embedder_id": named})
    files.resident += [
        {"conversation_id": conversation, "question_id": question, "kind": kind, "text": _storable(text)}
        for kind, text in format.resident(said["results"])
    ]


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text(encoding="utf-8-sig").split("\n") if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: a file of JSON lines in UTF-8 expected, {error}") from error


def _storable(text: str) -> str:
    """Text that Parquet can hold: a lone surrogate becomes U+FFFD, NUL is removed."""
    return str(text).encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\x00", "")

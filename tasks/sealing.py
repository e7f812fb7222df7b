"""How a benchmark's file becomes conversations in the clear and a sealed split."""

from collections.abc import Sequence

import pyarrow as pa

from storage import seal
from storage.digests import file_digest
from storage.lake import Lake
from storage.records import Gold, Question, Turn
from storage.rows import to_rows
from storage.schemas import GOLD, QUESTIONS
from tasks.ingest import refuse_readable, write
from tasks.marks import conversation_digests, unmarked
from tasks.sources import SOURCES, locate
from tasks.sources.ingested import Ingested
from tasks.splits import chosen


def seal_split(lake: str, benchmark: str, data: str, rule: str, recipient: str) -> seal.Seal:
    """Seal the questions that `rule` chooses, and write the conversations and the open questions in the clear.

    Raises `InputError` if the benchmark is sealed in the lake already, if the lake holds these conversations'
    questions in the clear, for a rule or a recipient that is none, and what the source raises.
    """
    place = Lake.open(lake)
    path = locate(benchmark, data)
    read = SOURCES[benchmark](path)
    turns, questions, gold = unmarked(benchmark, read.turns, read.questions, read.gold)
    stated, ids = chosen(rule, questions)
    words = conversation_digests(turns)
    refuse_readable(place, benchmark, set(words.values()))
    kept = [each for each in questions if each.id not in ids]
    shown = Ingested(
        benchmark, turns, kept, [row for row in gold if row.question_id not in ids], _facts(turns, kept, stated)
    )
    public = {
        "benchmark": benchmark,
        "version": file_digest(path),
        "rule": stated,
        "dataset": shown.dataset,
        "gold": shown.gold_digest,
        "conversations": tuple(sorted(words.values())),
        "facts": dict(shown.facts),
    }
    sealed = seal.seal(place, public, _tables(questions, gold, ids), recipient)
    write(lake, shown)
    return sealed


def _tables(questions: Sequence[Question], gold: Sequence[Gold], ids: set[str]) -> dict[str, pa.Table]:
    """The rows to encrypt; `place` is the place in the whole benchmark."""
    places = [(place, question) for place, question in enumerate(questions) if question.id in ids]
    rows = to_rows([question for _, question in places], place=[place for place, _ in places])
    held = to_rows(row for row in gold if row.question_id in ids)
    return {
        "questions": pa.Table.from_pylist(rows, schema=QUESTIONS.schema),
        "gold": pa.Table.from_pylist(held, schema=GOLD.schema),
    }


def _facts(turns: Sequence[Turn], questions: Sequence[Question], rule: str) -> dict[str, int | str]:
    """What an ingest report may say: a source's own names questions, their kinds and their evidence."""
    return {
        "conversations": len({turn.conversation_id for turn in turns}),
        "sessions": len({turn.session_id for turn in turns}),
        "turns": len(turns),
        "open questions": len(questions),
        "sealed questions": rule,
    }

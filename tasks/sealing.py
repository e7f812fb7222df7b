"""How a benchmark's file becomes conversations in the clear and a sealed split."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from storage import seal
from storage.lake import Lake
from storage.rows import to_rows
from storage.schemas import GOLD, QUESTIONS
from tasks.ingest import refuse_readable, write
from tasks.marks import conversation_digests, spoken, unmarked
from tasks.sources import SOURCES, content_digest, locate
from tasks.sources.ingested import Ingested, Told
from tasks.splits import chosen


def seal_split(lake: str, benchmark: str, data: str, rule: str, recipient: str) -> seal.Seal:
    """Seal the questions that `rule` chooses, and write the conversations and the open questions in the clear.

    Raises `InputError` if the benchmark is sealed in the lake already, if the lake holds these conversations'
    questions in the clear, for a rule or a recipient that is none, and what the source raises.
    """
    place = Lake.open(lake)
    path = locate(benchmark, data)
    whole = [unmarked(benchmark, told) for told in SOURCES[benchmark].load(path).told]
    stated, ids = chosen(rule, [question for told in whole for question, _ in told.asked])
    words = conversation_digests(spoken(turn for told in whole for turn in told.turns))
    refuse_readable(place, benchmark, set(words.values()))
    kept = [replace(told, asked=[pair for pair in told.asked if pair[0].id not in ids]) for told in whole]
    shown = Ingested(benchmark, lambda _: kept)
    public = {
        "benchmark": benchmark,
        "version": content_digest(benchmark, path),
        "rule": stated,
        "dataset": shown.addresses.dataset,
        "gold": shown.addresses.gold,
        "conversations": tuple(sorted(set(words.values()))),
        "facts": _facts(shown, stated),
    }
    sealed = seal.seal(place, public, _tables(whole, ids), recipient)
    write(lake, benchmark, kept, sealed.id)
    return sealed


def _tables(whole: Sequence[Told], ids: set[str]) -> dict[str, pa.Table]:
    """The rows to encrypt; `place` is the place in the whole benchmark."""
    pairs = [pair for told in whole for pair in told.asked]
    held = [(place, *pair) for place, pair in enumerate(pairs) if pair[0].id in ids]
    questions = to_rows([question for _, question, _ in held], place=[place for place, _, _ in held])
    gold = to_rows([row for _, _, row in held])
    return {
        "questions": pa.Table.from_pylist(questions, schema=QUESTIONS.schema),
        "gold": pa.Table.from_pylist(gold, schema=GOLD.schema),
    }


def _facts(shown: Ingested, rule: str) -> dict[str, int | str]:
    """What an ingest report may say: a source's own names questions, their kinds and their evidence."""
    return {
        "conversations": len({turn.conversation_id for turn in shown.turns}),
        "sessions": len({(turn.conversation_id, turn.session_id) for turn in shown.turns}),
        "turns": len(shown.turns),
        "open questions": len(shown.questions),
        "sealed questions": rule,
    }

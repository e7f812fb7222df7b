"""Each distinct answer to a question is judged once; each evidence state is scored against gold once."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from storage.digests import digest
from storage.lake import Lake
from storage.records import Gold, Question
from storage.schemas import ANSWERS, SCORES, STATES, VERDICTS
from tasks import specs
from tasks.answer import selected_states
from tasks.judges import JUDGES
from tasks.metrics import evidence_metrics
from tasks.plan import Conversations, Plan, StorePlan
from tasks.shard import shard


def judge(plan: Plan, conversations: Conversations) -> int:
    """Verdicts of every judge on one conversation's answers that the lake lacks; returns how many."""
    answers = answers_to_judge(plan, conversations)
    questions = {question.id: question for question in plan.questions(conversations)}
    gold = plan.gold_of(conversations)
    made = 0
    for name in plan.judges:
        table = Lake(plan.lake).table(VERDICTS, plan.verdicts(name))
        rows = answers.join(table.missing(answers.select("question_id", "answer")), on=["question_id", "answer"])
        items = [(questions[id], gold[id], text) for id, text in rows.select("question_id", "text").iter_rows()]
        made += table.append(verdict_rows(plan, name, items))
    return made


def verdict_rows(plan: Plan, judge: str, items: Sequence[tuple[Question, Gold, str | None]]) -> list[dict[str, Any]]:
    """Rows of the verdicts table for these replies; none for a reply of which no verdict could be had."""
    verdicts = specs.make(JUDGES, judge, "judge").judge_many(items, plan.asking)
    return [
        {
            "question_id": question.id,
            "answer": digest(text),
            "score": verdict.score,
            "label": verdict.label,
            "status": verdict.status,
            "raw": verdict.raw,
            "scores": list(verdict.scores or (verdict.score,)),
        }
        for (question, _, text), verdict in zip(items, verdicts, strict=True)
        if verdict is not None
    ]


def unjudged(plan: Plan) -> set[str]:
    """The questions that some judge lacks a verdict of."""
    answers = answers_to_judge(plan)
    missing: set[str] = set()
    for name in plan.judges:
        table = Lake(plan.lake).table(VERDICTS, plan.verdicts(name))
        missing |= set(table.missing(answers.select("question_id", "answer"))["question_id"])
    return missing


def answers_to_judge(plan: Plan, conversations: Conversations | None = None) -> pl.DataFrame:
    """Distinct `question_id, answer, text` of the run; `answer` is the address of the text (null: no reply)."""
    states = pl.concat([selected_states(plan, store, conversations) for store in plan.stores]).unique()
    answers = Lake(plan.lake).table(ANSWERS, plan.answers).read(["question_id", "evidence_hash", "text"])
    kept = answers.join(states, on=["question_id", "evidence_hash"], how="semi")
    return (
        with_answer(kept)
        .select("question_id", "answer", "text")
        .unique(["question_id", "answer"])
        .sort("question_id", "answer")
    )


def with_answer(answers: pl.DataFrame) -> pl.DataFrame:
    """`answers` with the column `answer`, the address of each text."""
    return answers.with_columns(answer=pl.Series([digest(text) for text in answers["text"]], dtype=pl.String))


def score(plan: Plan, store: StorePlan, conversations: Conversations) -> int:
    """Evidence metrics of one conversation's states that the lake lacks; returns how many."""
    lake = Lake(plan.lake)
    missing = unscored(plan, store, conversations)
    if missing.is_empty():
        return 0
    gold = plan.gold_of(conversations)
    records = plan.record_frame(store, conversations)
    sources = dict(records.select("id", "source_turn_ids").iter_rows())
    named = dict(records.select("id", "source_session_ids").iter_rows()) if store.pools else {}
    turns = plan.turns(conversations)
    sessions = dict(turns.select("id", "session_id").iter_rows())
    speakers = dict(turns.select("id", "speaker").iter_rows())
    states = lake.table(STATES, store.store).read().join(missing, on=missing.columns, how="semi")
    return lake.table(SCORES, plan.scores(store)).append(
        [
            {
                "question_id": row["question_id"],
                "evidence_hash": row["evidence_hash"],
                **evidence_metrics(
                    gold[row["question_id"]],
                    [id for id in row["record_ids"] if id in sources],
                    sources,
                    sessions,
                    speakers,
                    named,
                ),
            }
            for row in states.iter_rows(named=True)
        ]
    )


def unscored(plan: Plan, store: StorePlan, conversations: Conversations | None = None) -> pl.DataFrame:
    """The (question_id, evidence_hash) of the run's selections without evidence metrics."""
    return Lake(plan.lake).table(SCORES, plan.scores(store)).missing(selected_states(plan, store, conversations))


judge_task = shard("judge", judge)
score_task = shard("score", score)

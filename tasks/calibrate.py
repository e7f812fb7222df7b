"""A judge's verdicts on replies of which it is known whether they are right."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from storage.digests import digest
from storage.lake import Lake
from storage.schemas import VERDICTS
from tasks.judge import verdict_rows
from tasks.plan import Plan
from tasks.planted import Case, planted
from tasks.shard import shard


def calibrate(plan: Plan, judge: str, conversation_id: str) -> int:
    """Judge the planted replies to one conversation's questions that the lake lacks a verdict of; returns how many.

    They are verdicts like any other, in the judge's own table: a planted reply that an arm gave too is judged once.
    """
    return judge_cases(plan, judge, cases_of(plan, conversation_id))


def cases_of(plan: Plan, conversation_id: str) -> list[Case]:
    """The planted replies to the run's questions of one conversation.

    Wrong replies are drawn from all of the conversation's questions, so that a limited run plants what a full one does.
    """
    whole = replace(plan, kinds=(), limit=None)
    asked = {question.id for question in plan.questions(conversation_id)}
    cases = planted(whole.questions(conversation_id), whole.gold_of(conversation_id), plan.seed)
    return [case for case in cases if case.question.id in asked]


def judge_cases(plan: Plan, judge: str, cases: Sequence[Case]) -> int:
    """Judge those of `cases` that have no verdict yet, equal replies to a question once; returns how many."""
    table = Lake(plan.lake).table(VERDICTS, plan.verdicts(judge))
    keyed = {(case.question.id, digest(case.reply)): case for case in cases}
    expected = pl.DataFrame(list(keyed), schema={"question_id": pl.String, "answer": pl.String}, orient="row")
    items = [keyed[key] for key in table.missing(expected).iter_rows()]
    return table.append(verdict_rows(plan, judge, [(case.question, case.gold, case.reply) for case in items]))


def measured(plan: Plan, judge: str, cases: Sequence[Case]) -> pl.DataFrame:
    """`question_id, kind, truth, answer, score?, status?, scores?` of each case; null where it was not judged yet."""
    rows = [(case.question.id, case.question.kind, case.truth, digest(case.reply)) for case in cases]
    schema = dict.fromkeys(("question_id", "kind", "truth", "answer"), pl.String)
    table = Lake(plan.lake).table(VERDICTS, plan.verdicts(judge))
    verdicts = table.read(["question_id", "answer", "score", "status", "scores"])
    return pl.DataFrame(rows, schema=schema, orient="row").join(
        verdicts, on=["question_id", "answer"], how="left", maintain_order="left"
    )


calibrate_task = shard("calibrate", calibrate)

"""Each evidence state is judged once for sufficiency: by a panel, and by an adjudicator where the panel disagrees."""

from collections.abc import Sequence

import polars as pl

from storage.lake import Lake
from storage.records import Question
from storage.schemas import STATES, SUFFICIENCY
from tasks import specs
from tasks.answer import selected_states
from tasks.evidence import rendered
from tasks.judges.asked import Told
from tasks.outcomes import Status
from tasks.plan import Conversations, Plan, StorePlan
from tasks.shard import shard
from tasks.sufficiency import SUFFICIENCY_JUDGES
from tasks.sufficiency.exhibit import Exhibit

Vote = Told[str] | None


def adjudicate(plan: Plan, store: StorePlan, conversations: Conversations) -> int:
    """Judge the sufficiency of some conversations' states that the lake lacks; returns how many.

    Judges see the question, the reference answer and the evidence text; ids, methods, budgets and replies stay here.
    A state of which some vote could not be had is left out, and the next run asks again.
    """
    missing = unadjudicated(plan, store, conversations)
    if missing.is_empty():
        return 0
    lake = Lake(plan.lake)
    states = lake.table(STATES, store.store).read().join(missing, on=missing.columns, how="semi")
    questions = {question.id: question for question in plan.questions(conversations)}
    gold = plan.gold_of(conversations)
    records = plan.shown(store, conversations)
    exhibits = [
        Exhibit(_blind(questions[id]), gold[id].answer or "", rendered(records[record] for record in held))
        for id, held in states.select("question_id", "record_ids").iter_rows()
    ]
    votes = _panel(plan, exhibits)
    return lake.table(SUFFICIENCY, plan.sufficiency).append(
        [
            {
                "question_id": id,
                "evidence_hash": evidence,
                "label": label,
                "status": status,
                "votes": [vote.value for vote in cast if vote],
                "raw": "\n---\n".join(vote.raw or "" for vote in cast if vote) or None,
            }
            for (id, evidence), cast in zip(
                states.select("question_id", "evidence_hash").iter_rows(), votes, strict=True
            )
            if None not in cast
            for label, status in [agreed(cast, len(plan.panel))]
        ]
    )


def unadjudicated(plan: Plan, store: StorePlan, conversations: Conversations | None = None) -> pl.DataFrame:
    """The (question_id, evidence_hash) of the run's selections without a word on their sufficiency.

    Questions without a reference answer are left out: nothing says what would suffice. Empty where there is no panel.
    """
    states = selected_states(plan, store, conversations)
    if not plan.panel:
        return states.clear()
    gold = plan.gold_of(plan.conversation_ids() if conversations is None else conversations)
    answered = [id for id, held in gold.items() if (held.answer or "").strip()]
    table = Lake(plan.lake).table(SUFFICIENCY, plan.sufficiency)
    return table.missing(states.filter(pl.col("question_id").is_in(answered)))


def agreed(votes: Sequence[Vote], panel: int) -> tuple[str | None, Status]:
    """The label and status of a state by its votes: `panel` judges' first, then the adjudicator's if one was asked.

    The adjudicator's vote stands. Without one, votes that all say the same stand, and others come to `uncertain`; a
    vote that could not be read is no vote. With no vote read, the label is None and the status says why.
    """
    adjudicated = [vote for vote in votes[panel:] if vote and vote.value]
    deciding = adjudicated or votes[:panel]
    said = {vote.value for vote in deciding if vote and vote.value}
    if not said:
        return None, next((vote.status for vote in votes if vote and vote.status != "ok"), "failed")
    unread = any(vote is None or vote.value is None for vote in deciding)
    return ("uncertain" if len(said) > 1 or unread else said.pop()), "ok"


def _blind(question: Question) -> Question:
    """What is asked, and when; not which question of what kind it is."""
    return Question("", "", "", question.asked_at, question.text)


def _panel(plan: Plan, exhibits: Sequence[Exhibit]) -> list[list[Vote]]:
    """Every state's votes: the judges', and the adjudicator's where they do not all say one and the same."""
    by_judge = [_votes(plan, judge, exhibits) for judge in plan.panel]
    votes = [list(cast) for cast in zip(*by_judge, strict=True)]
    split = [place for place, cast in enumerate(votes) if plan.adjudicator and _split(cast)]
    if split:
        for place, vote in zip(
            split, _votes(plan, plan.adjudicator, [exhibits[place] for place in split]), strict=True
        ):
            votes[place].append(vote)
    return votes


def _votes(plan: Plan, judge: str, exhibits: Sequence[Exhibit]) -> list[Vote]:
    part = specs.make(SUFFICIENCY_JUDGES, judge, "sufficiency judge")
    return list(part.judge_many(exhibits, plan.asking))


def _split(votes: Sequence[Vote]) -> bool:
    """Whether an adjudicator is to be asked: the votes were had, and they differ, doubt or could not be read."""
    said = {vote.value for vote in votes if vote}
    return None not in votes and said not in ({"sufficient"}, {"insufficient"})


adjudicate_task = shard("sufficiency", adjudicate)

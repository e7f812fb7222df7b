"""What a run will ask of models, before anything is asked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import polars as pl

from readers.types import Budget
from storage.lake import Lake
from storage.records import Gold, Question, Record
from storage.rows import from_frame
from storage.schemas import STATES
from tasks import specs
from tasks.answer import selected_states, unanswered
from tasks.answerers import ANSWERERS
from tasks.arms import Arm
from tasks.asking import Asking
from tasks.asks import ONE_TOKEN, RERANK, bounds
from tasks.compose import missing_cells
from tasks.encoders import ENCODERS
from tasks.encoders.minilm import count_tokens
from tasks.evidence import line, rendered
from tasks.extraction import asks, cases, unwritten
from tasks.imported.bringing import bring
from tasks.judge import answers_to_judge
from tasks.judges import JUDGES
from tasks.llm import Message, Reply, Request, ledger
from tasks.llm.local import LOCAL, SPEEDS
from tasks.llm.prices import cost, price
from tasks.llm.rows import from_row
from tasks.plan import Plan, StorePlan
from tasks.prompts import load
from tasks.store import write_store
from tasks.sufficiency import SUFFICIENCY_JUDGES
from tasks.sufficiency.exhibit import Exhibit
from tasks.writers import WRITERS
from tasks.writers.turns import Turns

_REPLY = "some words that stand for an answer of the usual length"
_TYPICAL_RECORDS = 20
_QUESTION = 100
"""Characters of a question and of what was searched for, about."""


class Forecast(NamedTuple):
    """What one part will ask of one model.

    `held`: replies that the ledger has, of those that can be named. `calls`: those to come; `at_most` says that they
    are bounded: evidence or answers are not there yet, so that each cell is taken to have its own, or a reader decides
    as it goes, so that each cell is taken to ask all it may. Tokens follow the
    ledger's own rates for the model where it has any, else four characters a token and the whole token limit.
    `cost`: US dollars, None where the price is unknown. `repairs`: calls that may come on top, at most, where replies
    cannot be read and are asked for once more; they are in no other number. `seconds`: about how long, by the ledger's
    own latencies with as many calls at a time as the model allows, None where it has none.
    """

    stage: str
    part: str
    model: str
    held: int
    calls: int
    at_most: bool
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    repairs: int = 0
    seconds: float | None = None


@dataclass(frozen=True)
class _Case:
    """One conversation as far as it has come: evidence that is known, and what stands for evidence that is not.

    `unanswered`: a question for each answer that is still to come, at most.
    """

    known: list[tuple[Question, list[Record]]]
    guessed: list[tuple[Question, list[Record]]]
    answers: list[tuple[Question, str | None]]
    unanswered: list[Question]
    gold: dict[str, Gold]


def forecast(plan: Plan) -> list[Forecast]:
    """One row a part that asks a model, in the order of the stages.

    Asks nothing; writes records that are missing, but for those that a model is to make: the turns stand for them.
    """
    for store in plan.stores:
        if store.pools:
            bring(plan, store)
        elif not asks(store):
            write_store(plan, store)
    cases = [_case(plan, conversation) for conversation in plan.conversation_ids()]
    return [*_facts(plan), *_readers(plan), *_answers(plan, cases), *_verdicts(plan, cases), *_sufficiency(plan, cases)]


def _facts(plan: Plan) -> Iterator[Forecast]:
    """Exact in calls, but for replies that have to be asked for again; prompts count what is remembered so far."""
    for store in {store.store: store for store in plan.stores if asks(store)}.values():
        if todo := cases(plan, unwritten(plan, store)):
            writer, rehearsal = specs.make(WRITERS, store.writer, "writer"), _Rehearsal(plan.lake, plan.models)
            encoder = specs.make(ENCODERS, store.encoder, "encoder")
            for _ in writer.write_all(todo, rehearsal, encoder.encode):
                pass
            yield _row(plan, "store", store.writer, writer.model, rehearsal.requests, [], repaired=True)


@dataclass(frozen=True)
class _Rehearsal(Asking):
    """Replies from the ledger, and where it has none, that there is nothing to remember. `requests`: all of them."""

    requests: list[Request] = field(default_factory=list)

    def ask(self, requests: Sequence[Request]) -> list[Reply]:
        self.requests.extend(requests)
        held = ledger(self.lake).find([request.digest for request in requests])
        return [from_row(held[one.digest]) if one.digest in held else Reply("[]", "ok") for one in requests]


def _readers(plan: Plan) -> Iterator[Forecast]:
    """Bounds of what is missing: what a reader asks next depends on the reply."""
    for store in plan.stores:
        for arm in plan.arms_of(store):
            if arm.model is None:
                continue
            asks: list[Request] = []
            for conversation in plan.conversation_ids():
                questions = len(missing_cells(plan, store, [arm], conversation))
                asks += _asks(plan, store, arm, conversation) * questions
            yield _row(plan, "compose", str(arm), arm.model, [], asks)


def _asks(plan: Plan, store: StorePlan, arm: Arm, conversation: str) -> list[Request]:
    """What stands for all that an arm may ask for one question of a conversation."""
    records, _ = _records(plan, store, conversation)
    each = sum(len(line(record)) for record in records) / max(1, len(records))
    model, made = plan.model(arm.model or ""), list[Request]()
    for prompt, (times, shown) in bounds(arm.reader, min(store.size, len(records)), len(records)):
        own = 0 if prompt == RERANK else sum(len(part.content) for part in load("readers", prompt).parts)
        text = Message("user", " " * round(own + _QUESTION + shown * each))
        asked = replace(model, max_tokens=1) if prompt in ONE_TOKEN else model
        made += [Request(asked, (text,), prompt, purpose=f"reader: {prompt}")] * times
    return made


def _answers(plan: Plan, cases: Sequence[_Case]) -> Iterator[Forecast]:
    part = specs.make(ANSWERERS, plan.answerer, "answerer")
    if not part.offline:
        known = [request for case in cases for request in part.requests(case.known, plan.asking)]
        guessed = [request for case in cases for request in part.requests(case.guessed, plan.asking)]
        yield _row(plan, "answer", plan.answerer, part.model, known, guessed)


def _verdicts(plan: Plan, cases: Sequence[_Case]) -> Iterator[Forecast]:
    for form in plan.judges:
        part = specs.make(JUDGES, form, "judge")
        if hasattr(part, "requests"):
            known = [(question, case.gold[question.id], text) for case in cases for question, text in case.answers]
            guessed = [(question, case.gold[question.id], _REPLY) for case in cases for question in case.unanswered]
            requests = [part.requests(items, plan.asking) for items in (known, guessed)]
            yield _row(plan, "judge", form, part.model, *requests, repaired=True)


def _sufficiency(plan: Plan, cases: Sequence[_Case]) -> Iterator[Forecast]:
    for form in (*plan.panel, *filter(None, [plan.adjudicator])):
        part = specs.make(SUFFICIENCY_JUDGES, form, "panel")
        if hasattr(part, "requests"):
            known = [item for case in cases for item in _exhibits(case, case.known)]
            guessed = [item for case in cases for item in _exhibits(case, case.guessed)]
            requests = [part.requests(items, plan.asking) for items in (known, guessed)]
            yield _row(plan, "sufficiency", form, part.model, *requests, bound=form == plan.adjudicator, repaired=True)


def _exhibits(case: _Case, items: Sequence[tuple[Question, list[Record]]]) -> list[Exhibit]:
    references = [(question, case.gold[question.id].answer or "", records) for question, records in items]
    return [Exhibit(question, answer, rendered(records)) for question, answer, records in references if answer.strip()]


def _row(
    plan: Plan,
    stage: str,
    part: str,
    name: str,
    known: Sequence[Request],
    guessed: Sequence[Request],
    *,
    bound: bool = False,
    repaired: bool = False,
) -> Forecast:
    model, distinct = plan.model(name), {request.digest: request for request in known}
    held = ledger(plan.lake).find(distinct)
    new = [request for digest, request in distinct.items() if digest not in held] + list(guessed)
    per_character, per_reply, per_call = _rates(plan, model.model, new)
    prompt, completion = sum(request.characters for request in new) * per_character, len(new) * per_reply
    listed = price(model, datetime.now(UTC).date())
    share = listed.batch if listed and model.batch else 1.0
    seconds = None if per_call is None or model.batch else len(new) * per_call / model.concurrency
    if per_call is None and model.base_url == LOCAL:
        seconds = prompt / SPEEDS[0] + completion / SPEEDS[1]
    return Forecast(
        stage,
        part,
        name,
        held=len(held),
        calls=len(new),
        at_most=bound or bool(guessed),
        prompt_tokens=round(prompt),
        completion_tokens=round(completion),
        cost=cost(listed, prompt * share, completion * share),
        repairs=len(new) if repaired else 0,
        seconds=0.0 if not new else seconds,
    )


def _rates(plan: Plan, model: str, new: Sequence[Request]) -> tuple[float, float, float | None]:
    """Prompt tokens a character, tokens a reply and seconds a call: as the ledger has seen, else as requests are
    estimated, without seconds."""
    purposes = list({request.purpose for request in new})
    seen = ledger(plan.lake).rows().filter(pl.col("model") == model, pl.col("purpose").is_in(purposes))
    seen = seen.drop_nulls(["prompt_tokens", "completion_tokens"])
    if len(seen):
        sums = seen.select(pl.col("prompt_tokens", "completion_tokens", "characters").sum()).row(0, named=True)
        latency: Any = seen["latency_s"].mean()
        return sums["prompt_tokens"] / max(1, sums["characters"]), sums["completion_tokens"] / len(seen), latency
    characters = sum(request.characters for request in new)
    prompt, completion = (sum(request.tokens[side] for request in new) for side in (0, 1))
    return prompt / max(1, characters), completion / max(1, len(new)), None


def _case(plan: Plan, conversation: str) -> _Case:
    questions = {question.id: question for question in plan.questions(conversation)}
    known: dict[tuple[str, str], tuple[Question, list[Record]]] = {}
    guessed: list[tuple[Question, list[Record]]] = []
    open_: set[tuple[str, str]] = set()
    for store in plan.stores:
        records, tokens = _records(plan, store, conversation)
        by_id = plan.shown(store, conversation)
        chosen = selected_states(plan, store, conversation)
        states = Lake(plan.lake).table(STATES, store.store).read().join(chosen, on=chosen.columns, how="semi")
        for row in states.iter_rows(named=True):
            key = row["question_id"], row["evidence_hash"]
            known[key] = (questions[row["question_id"]], [by_id[id] for id in row["record_ids"]])
        open_ |= set(unanswered(plan, store, conversation).rows())
        guessed += _stand_ins(plan, store, conversation, questions, records, tokens)
    answers = answers_to_judge(plan, conversation).select("question_id", "text").rows()
    told = [(questions[id], text) for id, text in answers]
    to_come = [questions[id] for id, _ in sorted(open_)] + [question for question, _ in guessed]
    return _Case(list(known.values()), guessed, told, to_come, plan.gold_of(conversation))


def _stand_ins(
    plan: Plan,
    store: StorePlan,
    conversation: str,
    questions: dict[str, Question],
    records: list[Record],
    tokens: list[int],
) -> Iterator[tuple[Question, list[Record]]]:
    """For every cell that is not composed, its question with as many records as its budget allows."""
    arms = {str(arm): arm for arm in plan.arms_of(store)}
    for name, question in missing_cells(plan, store, list(arms.values()), conversation).iter_rows():
        yield questions[question], records[: _size(arms[name].limits, tokens)]


def _records(plan: Plan, store: StorePlan, conversation: str) -> tuple[list[Record], list[int]]:
    """A conversation's records with their tokens; its turns where a model has not made its records yet."""
    frame = plan.record_frame(store, conversation)
    if len(frame) or not asks(store):
        return from_frame(Record, frame), frame["tokens"].to_list()
    records = Turns().write(cases(plan, [conversation])[0].turns)
    return records, count_tokens([line(record) for record in records])


def _size(budget: Budget, tokens: list[int]) -> int:
    """How many records a budget lets through: about, where it bounds tokens or calls."""
    if budget.records is not None:
        return budget.records
    if budget.tokens is not None:
        return int(budget.tokens * len(tokens) / max(1, sum(tokens)))
    return len(tokens) if budget.calls is None else _TYPICAL_RECORDS


def total(rows: Sequence[Forecast], field: str) -> Any:
    """The sum of a column, None where some row does not know its share."""
    values = [getattr(row, field) for row in rows]
    return None if None in values else sum(values)

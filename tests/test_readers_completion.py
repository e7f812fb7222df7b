"""Completion asks in rounds, counts every call and never keeps more than its budget holds."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from readers import READERS
from readers.bfr import BfrAdaptive, BfrMv, BfrState, BfrText, chosen, likely_session, missing, persons
from readers.completion import Policy, State, by_name, by_session, by_words, complete
from readers.requirements import rules
from readers.router import Router, forms
from readers.types import Budget, Evidence, Note, OverBudget, Query, asks_model
from tasks.access import QuestionAccess
from tests.test_readers_contract import make_library, make_pool, make_query, questions
from tests.told_access import ToldAccess

WITH_MODEL = sorted(name for name, reader in READERS.items() if asks_model(reader))
# `rsc` completes the pool's own order, with weights that are learned: tests/test_readers_rsc.py.
COMPLETING = sorted(name for name, reader in READERS.items() if hasattr(reader, "init") and name not in WITH_MODEL)
COMPLETING_BY_MODEL = [name for name in WITH_MODEL if getattr(READERS[name], "completes", False)]
SEARCHING = [name for name, reader in READERS.items() if getattr(reader, "searches", False)]
RANKINGS = ["hybrid", "dense", "bm25", "random", "mmr", "mem_pursuit", "mem0_flat", "locality"]
thorough = settings(deadline=None, max_examples=50, suppress_health_check=list(HealthCheck))
completion_budgets = st.builds(
    Budget,
    records=st.none() | st.integers(0, 40),
    tokens=st.none() | st.integers(0, 600),
    calls=st.none() | st.integers(0, 9),
    rounds=st.none() | st.integers(0, 5),
    new_records=st.none() | st.integers(0, 40),
)


# A scripted store ----------------------------------------------------------------------------------------


def note(id: str, text: str = "", speaker: str = "Ada", tokens: int = 5, time: float = 0.0) -> Note:
    return Note(id, text or f"about {id}", speaker, 0, 0, time, tokens)


@dataclass
class Script:
    """Returns, call by call, what was written down for it; remembers what it was asked."""

    replies: list[str]
    asked: list[tuple[str, object, frozenset[str]]] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return len(self.asked)

    def notes(self, ids: Sequence[str]) -> tuple[Note, ...]:
        return tuple(map(note, ids))

    def text(self, cue: str, most: int, without: Collection[str]) -> tuple[Note, ...]:
        return self._reply("text", cue, most, without)

    def entity(self, name: str, most: int, without: Collection[str]) -> tuple[Note, ...]:
        return self._reply("entity", name, most, without)

    def session(self, anchor: str, most: int, without: Collection[str]) -> tuple[Note, ...]:
        return self._reply("session", anchor, most, without)

    def time(self, anchor: float, days: float, most: int, without: Collection[str]) -> tuple[Note, ...]:
        return self._reply("time", anchor, most, without)

    def _reply(self, view: str, cue: object, most: int, without: Collection[str]) -> tuple[Note, ...]:
        ids = self.replies[len(self.asked)] if len(self.asked) < len(self.replies) else ""
        self.asked.append((view, cue, frozenset(without)))
        return tuple(note(id) for id in ids if id not in without)[:most]


def run(script: Script, budget: Budget, plan: Any, retain: Any = lambda state, found: found, **parts: Any) -> Evidence:
    access: Any = script
    first = Evidence(ids=("a", "b"), stop_reason="budget")
    return complete(make_query(), first, "hybrid", Policy(plan, retain, 12, **parts), budget, access)


def both(state: State) -> list[Any]:
    return [by_words("words"), by_session(state.evidence[-1].id)]


# The loop by hand ----------------------------------------------------------------------------------------


def test_a_round_excludes_only_what_it_started_from():
    script = Script(["cd", "de", "f", "g"])
    evidence = run(script, Budget(calls=4, rounds=2, new_records=9), both)
    assert script.asked == [
        ("text", "words", frozenset("ab")),
        ("session", "b", frozenset("ab")),
        ("text", "words", frozenset("abcde")),
        ("session", "e", frozenset("abcde")),
    ]
    assert evidence.ids == tuple("abcdefg")
    assert (evidence.calls, evidence.stop_reason) == (4, "budget")
    assert [(step.view, step.cue, step.returned, step.kept) for step in evidence.trace] == [
        ("init", "hybrid", ("a", "b"), ("a", "b")),
        ("text", "words", ("c", "d"), ("c", "d")),
        ("session", "b", ("d", "e"), ("e",)),
        ("text", "words", ("f",), ("f",)),
        ("session", "e", ("g",), ("g",)),
    ]


@pytest.mark.parametrize(
    ("budget", "ids", "calls"),
    [
        (Budget(calls=0, rounds=9, new_records=9), "ab", 0),
        (Budget(calls=9, rounds=0, new_records=9), "ab", 0),
        (Budget(calls=9, rounds=9, new_records=0), "ab", 0),
        (Budget(calls=1, rounds=9, new_records=9), "abcd", 1),
        (Budget(calls=3, rounds=9, new_records=9), "abcdef", 3),
        (Budget(calls=9, rounds=1, new_records=9), "abcde", 2),
        (Budget(calls=9, rounds=9, new_records=2), "abcd", 2),
        (Budget(calls=9, rounds=9, new_records=4), "abcdef", 4),
        (Budget(calls=9, rounds=9, records=3), "abc", 2),
        (Budget(calls=9, rounds=9, tokens=24), "abcd", 2),
        (Budget(calls=9, rounds=9, tokens=14), "ab", 2),
    ],
)
def test_each_bound_ends_the_loop(budget, ids, calls):
    script = Script(["cd", "de", "f", "g"])
    evidence = run(script, budget, both)
    assert evidence.ids == tuple(ids)
    assert (evidence.calls, script.calls, evidence.stop_reason) == (calls, calls, "budget")


def test_a_missing_cue_is_no_call():
    script = Script(["c", "d", "e"])
    evidence = run(script, Budget(calls=3, rounds=3), lambda state: [None, by_words("words"), None])
    assert evidence.ids == tuple("abcde")
    assert evidence.calls == 3


def test_what_a_round_keeps_is_decided_once_over_all_that_came_back():
    seen = []

    def retain(state, found):
        seen.append("".join(each.id for each in found))
        return found[::-1][:2]

    evidence = run(Script(["cd", "de", "cf", "f"]), Budget(rounds=2), both, retain)
    assert seen == ["cde", "cf"]
    assert evidence.ids == tuple("abedfc")
    assert [step.kept for step in evidence.trace[1:]] == [("d",), ("e",), ("f", "c"), ()]


def test_a_round_that_keeps_nothing_is_the_last():
    script = Script(["c", "", "", ""])
    evidence = run(script, Budget(calls=99, rounds=99), both)
    assert evidence.ids == tuple("abc")
    assert (evidence.calls, evidence.stop_reason) == (4, "pool_exhausted")


def test_a_satisfied_policy_stops_before_it_asks():
    evidence = run(Script(["c", "d", "e"]), Budget(), both, satisfied=lambda state: state.round == 1)
    assert evidence.ids == tuple("abcd")
    assert (evidence.calls, evidence.stop_reason) == (2, "adaptive")


def test_the_access_stops_who_asks_beyond_the_calls():
    access = QuestionAccess(make_library(make_pool([(1.0, 0.0)])), Budget(calls=1))
    assert access.text("ada", 5, ()) and access.calls == 1
    with pytest.raises(OverBudget, match="at most 1 retrieval calls"):
        by_name("Ada").ask(access, 5, ())
    assert access.calls == 1


# Properties of the completing readers --------------------------------------------------------------------


@pytest.mark.parametrize("name", COMPLETING)
@thorough
@given(questions(), completion_budgets, st.sampled_from(RANKINGS), st.integers(0, 12))
def test_budget_is_never_exceeded_and_the_trace_adds_up(name, question, budget, init, init_records):
    query, pool = question
    library = make_library(pool)
    access = QuestionAccess(library, budget)
    evidence = READERS[name](init=init, init_records=init_records).read(query, pool, budget, access)
    first, *steps = evidence.trace
    tokens = {id: library.notes[place].tokens for id, place in library.places.items()}
    assert set(evidence.ids) <= set(library.places)
    assert len(set(evidence.ids)) == len(evidence.ids)
    assert len(evidence.ids) <= init_records + (
        len(library.places) if budget.new_records is None else budget.new_records
    )
    assert budget.records is None or len(evidence.ids) <= budget.records
    assert budget.tokens is None or sum(tokens[id] for id in evidence.ids) <= budget.tokens
    assert evidence.calls == access.calls == len(steps)
    assert budget.calls is None or access.calls <= budget.calls
    assert (first.view, first.cue, first.returned) == ("init", init, first.kept)
    assert evidence.ids[: len(first.kept)] == first.kept
    assert sorted(id for step in evidence.trace for id in step.kept) == sorted(evidence.ids)
    assert all(set(step.kept) <= set(step.returned) for step in steps)


@pytest.mark.parametrize("init", RANKINGS)
@thorough
@given(questions(), st.integers(0, 12), st.integers(1, 40), st.integers(0, 9), st.integers(0, 9), st.integers(0, 40))
def test_paging_through_a_ranking_is_the_top_of_it_whatever_the_page(
    init, question, init_records, page, calls, rounds, new
):
    query, pool = question
    budget = Budget(calls=calls, rounds=rounds, new_records=new)
    library = make_library(pool)
    access = QuestionAccess(library, budget)
    ids = BfrText(init=init, init_records=init_records, page=page, view="ranking").read(query, pool, budget, access).ids
    ranked = len(library.notes) if init == "mem0_flat" else len(pool)
    size = min(init_records, ranked) + min(new, page * min(calls, rounds))
    top = READERS[init]().read(query, pool, Budget(records=size), QuestionAccess(make_library(pool), Budget()))
    assert ids == top.ids


@pytest.mark.parametrize("init", RANKINGS)
@thorough
@given(questions(), st.integers(0, 12), st.integers(1, 40), st.integers(0, 60), st.booleans())
def test_paging_until_a_bound_of_the_whole_evidence_is_the_ranking_at_that_bound(
    init, question, init_records, page, most, in_tokens
):
    query, pool = question
    bound = {"tokens": most} if in_tokens else {"records": most}
    library = make_library(pool)
    paged = Budget(calls=99, rounds=99, **bound)
    reader = BfrText(init=init, init_records=init_records, page=page, view="ranking")
    ids = reader.read(query, pool, paged, QuestionAccess(library, paged)).ids
    assert ids == READERS[init]().read(query, pool, Budget(**bound), QuestionAccess(library, Budget())).ids


def test_bfr_text_pages_through_the_words_of_the_question():
    pool = make_pool(np.zeros((30, 2)))
    budget = Budget(calls=2, rounds=2, new_records=30)
    access = QuestionAccess(make_library(pool), budget)
    evidence = BfrText(init_records=3).read(make_query(), pool, budget, access)
    library = make_library(pool)
    order = [library.notes[place].id for place in library.by_words(make_query().text)]
    assert evidence.ids == (*pool.ids[:3], *[id for id in order if id not in pool.ids[:3]][:16])
    assert [(len(step.returned), len(step.kept)) for step in evidence.trace[1:]] == [(12, 8), (12, 8)]


def test_bfr_mv_reads_text_entity_and_the_latest_session_in_turn():
    pool = make_pool(np.zeros((30, 2)))
    budget = Budget(calls=5, rounds=5, new_records=50)
    access = QuestionAccess(make_library(pool), budget)
    asked = Query("q1", "Where did Ada go?", np.zeros(2, np.float32))
    evidence = BfrMv(init_records=3).read(asked, pool, budget, access)
    steps = evidence.trace[1:]
    assert [step.view for step in steps] == ["text", "entity", "session", "text", "entity"]
    assert [step.cue for step in steps[:3]] == [asked.text, "Ada", "r2"]
    unnamed = Query("q1", "where to?", np.zeros(2, np.float32))
    unnamed_steps = BfrMv().read(unnamed, pool, budget, QuestionAccess(make_library(pool), budget)).trace[1:]
    assert "entity" not in {step.view for step in unnamed_steps}


def test_bfr_state_asks_for_what_is_missing():
    pool = make_pool(np.zeros((4, 2)))
    budget = Budget(calls=1, rounds=1, new_records=5)
    asked = Query("q1", "Which place did Zoe go to?", np.zeros(2, np.float32))
    evidence = BfrState().read(asked, pool, budget, QuestionAccess(make_library(pool), budget))
    assert evidence.trace[1].cue == "Which place did Zoe go to? entity anchor for Zoe"


def test_bfr_adaptive_stops_after_a_round_once_nothing_is_missing():
    pool = make_pool(np.zeros((12, 2)))
    budget = Budget(calls=9, rounds=9, new_records=50)
    asked = Query("q1", "Which place on which day went she to?", np.zeros(2, np.float32))
    library = make_library(pool)
    eager = BfrAdaptive(certain=1.0, passes=False).read(asked, pool, budget, QuestionAccess(library, budget))
    assert (eager.stop_reason, eager.calls) == ("adaptive", 2)
    never = BfrAdaptive(certain=0.0, passes=False).read(asked, pool, budget, QuestionAccess(library, budget))
    assert never.stop_reason != "adaptive"


def test_hypotheses_rank_by_confidence_question_words_and_evidence():
    asked = "Did Ada adopt a parrot?"
    bare = State(asked, (), 0)
    told = State(asked, (note("m", "Kiwi sings loud", "Bo"),), 0)
    # .91 + .2 against .90 + .2; then .86 + .2 + .1 and .92 + .2 · 2/3 + .1 from the evidence.
    assert [action.cue for action in chosen(bare, (), 2)] == ["Ada ada adopt parrot", asked]
    assert [action.cue for action in chosen(told, (), 3)] == [
        "Bo ada adopt parrot",
        "Bo ada adopt kiwi sings",
        "Ada ada adopt parrot",
    ]
    assert len(chosen(told, ["a missing thing"], 99)) == 8
    assert {action.view for action in chosen(told, (), 99)} == {"text", "entity", "time", "session"}


def test_the_likely_session_is_of_a_record_that_names_the_question_s_person():
    evidence = (note("m", "nothing", "Bo"), note("n", "saw ada", "Bo"), note("o", "nothing", "Bo"))
    for asked, anchor in [("Did Ada go?", "n"), ("who went?", "o")]:
        action = likely_session(State(asked, evidence, 0))
        assert action is not None and action.cue == anchor
    assert likely_session(State("Did Ada go?", (), 0)) is None


@pytest.mark.parametrize(
    "init", sorted(name for name, reader in READERS.items() if not getattr(reader, "completes", False))
)
@pytest.mark.parametrize("name", [*COMPLETING, *COMPLETING_BY_MODEL])
def test_any_reader_that_spends_no_calls_may_give_the_first_set_one_with_a_model_to_one_with_a_model(name, init):
    if init in SEARCHING or (init in WITH_MODEL and name not in WITH_MODEL):
        with pytest.raises(ValueError, match="init: one of"):
            READERS[name](init=init)
        return
    pool = make_pool([(1.0, 0.0), (0.0, 1.0), (0.6, 0.8)])
    budget = Budget(calls=3, rounds=3, new_records=2)
    evidence = READERS[name](init=init, init_records=2).read(
        make_query(), pool, budget, ToldAccess(make_library(pool), budget)
    )
    assert evidence.trace[0].cue == init
    assert len(evidence.trace[0].kept) <= 2 and len(evidence.ids) <= 4


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("bfr_text", {"init": "bfr_mv"}, "init: one of .*hybrid.* expected, 'bfr_mv' found"),
        ("bfr_mv", {"init": "hybird"}, "init"),
        ("bfr_text", {"page": 0}, "page of at least 1 expected, 0 found"),
        ("bfr_text", {"view": "entity"}, "view"),
        ("bfr_mv", {"keep_hard": 0}, "keep_hard"),
        ("bfr_state", {"init_records": -1}, "init_records"),
        ("bfr_state", {"covered": 1.5}, "covered"),
        ("bfr_adaptive", {"certain": math.nan}, "certain"),
        ("bfr_adaptive", {"hypotheses": 0}, "hypotheses"),
    ],
)
def test_a_parameter_out_of_range_is_refused(name, parameters, message):
    with pytest.raises(ValueError, match=message):
        READERS[name](**parameters)


# Retention by hand ---------------------------------------------------------------------------------------


def test_worth_is_the_weighted_sum():
    evidence = [note("e", "We saw Kiwi", "Bo")]
    candidate = note("m", "Rex ran with Kiwi in June", "Bo")
    (worth,) = Router().worth("Has Rex run far?", ["june"], evidence, [candidate])
    # Words: has rex run far; rex ran with kiwi june. Names new to the evidence: Rex, June, the latter a month.
    assert worth.relevance == pytest.approx(1 / 4)
    assert worth.coverage == pytest.approx(1.0)
    assert worth.novelty == pytest.approx(4 / 5)
    assert worth.bridge == pytest.approx(0.2 * 2 + 0.3)
    assert worth.score == pytest.approx(0.40 / 4 + 0.25 + 0.10 * 4 / 5 + 0.25 * 0.7)


def test_a_shared_stem_or_part_of_a_word_is_relevant():
    candidate = note("m", "stress", "Bo")
    (worth,) = Router().worth("destress", [], [], [candidate])
    # destress: destress, destres, stress, tress; stress: stress, stres, ress, ess. One of four is shared.
    assert forms(["destress"]) == {"destress", "destres", "stress", "tress"}
    assert worth.relevance == pytest.approx(1 / 4 + 0.08)


def test_tiers_admit_by_score_then_by_relevance_up_to_the_cap():
    plain = [note(f"p{i}", "zzz", "Bo") for i in range(4)]
    near = [note(f"n{i}", "garden", "Bo") for i in range(4)]
    router = Router(keep=2, hard=5, coverage=0.0, bridge=0.0)
    kept = router.retain("Which garden?", (), (), [*plain, *near])
    assert [each.id for each in kept] == ["n0", "n1", "n2", "n3"]
    few = Router(keep=2, hard=3).retain("Which garden?", (), (), [*plain, *near])
    assert [each.id for each in few] == ["n0", "n1", "n2"]


@thorough
@given(
    st.lists(st.sampled_from(["garden June", "zzz", "Rex ran", "gardening with Kiwi"]), max_size=40), st.integers(1, 9)
)
def test_no_more_than_the_cap_is_kept_and_nothing_twice(texts, hard):
    candidates = [note(f"m{i}", text) for i, text in enumerate(texts)]
    kept = [each.id for each in Router(hard=hard).retain("Which garden has Rex?", ["Rex"], (), candidates)]
    assert len(kept) == len(set(kept)) <= hard
    assert set(kept) <= {each.id for each in candidates}


# What is missing by rule ---------------------------------------------------------------------------------


def test_a_requirement_is_missing_until_one_record_holds_a_quarter_of_its_words():
    assert persons("When did Ada and Bob, in May, meet Zoe?") == ["Ada", "Bob", "Zoe"]
    asked = "How long did Ada wait?"
    nothing, half, all_but_time = (
        State(asked, evidence, 0)
        for evidence in [(), (note("m", "nothing", "Ada"),), (note("m", "Ada did wait long", "Ada"),)]
    )
    needs = rules(asked)
    every = missing(nothing, needs, 0.25)
    assert every[0] == asked and "Ada" in every[1] and "time" in every[2]
    assert missing(half, needs, 0.25) == [asked, every[2]]
    assert missing(all_but_time, needs, 0.25) == [every[2]]

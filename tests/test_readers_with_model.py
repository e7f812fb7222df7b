"""Readers that ask a model do with its replies what their papers say, and say where they could not."""

import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from readers import READERS
from readers.bfr import missing
from readers.completion import State
from readers.decomposition import by_model
from readers.mera import MeraFlat
from readers.mragent import MragentFlat, MragentScripted, around
from readers.rankgpt import windows
from readers.requirements import rules
from readers.types import Budget, Evidence, Note
from readers.xquad import xquad
from tasks.access import Library
from tests.test_readers_contract import make_library, make_pool, make_query
from tests.told_access import ToldAccess

UNLIMITED = Budget()
DAY = 86_400.0


def read(name: str, pool: Any, say: Any, budget: Budget = UNLIMITED, **parameters: Any) -> tuple[Evidence, ToldAccess]:
    access = ToldAccess(make_library(pool), budget, say)
    return READERS[name](**parameters).read(make_query(), pool, budget, access), access


def fallbacks(evidence: Evidence) -> list[str]:
    return [step.cue for step in evidence.trace if step.view == "fallback"]


# Listwise ------------------------------------------------------------------------------------------------


def oracle(worth: Mapping[int, int], noise: str = "Ranking: ") -> Any:
    """A comparator that knows the true order: it ranks the places that it is shown by their worth."""

    def say(prompt: str, variables: Mapping[str, str]) -> str:
        shown = re.findall(r"\[(\d+)\] .*?place (\d+) ", variables["records"])
        assert variables["count"] == str(len(shown))
        ranked = sorted(shown, key=lambda pair: -worth[int(pair[1])])
        return noise + " > ".join(f"[{number}]" for number, _ in ranked)

    return say


def test_rankgpt_with_an_oracle_brings_the_best_to_the_front_in_nineteen_calls() -> None:
    pool = make_pool(np.zeros((200, 2)))
    worth = dict(enumerate(np.random.default_rng(5).permutation(200).tolist()))
    evidence, access = read("rankgpt", pool, oracle(worth))
    truth = [f"r{place}" for place in sorted(worth, key=lambda place: -worth[place])]
    # A pass of windows of 20 by 10 carries the ten best to the front, in order; one pass sorts no more.
    assert list(evidence.ids[:10]) == truth[:10]
    assert len(access.told) == 19
    assert sorted(evidence.ids) == sorted(pool.ids)
    assert fallbacks(evidence) == []


def test_rankgpt_sorts_a_whole_pool_that_fits_one_window() -> None:
    pool = make_pool(np.zeros((20, 2)))
    worth = dict(enumerate(np.random.default_rng(6).permutation(20).tolist()))
    evidence, access = read("rankgpt", pool, oracle(worth))
    assert [worth[int(id[1:])] for id in evidence.ids] == list(range(19, -1, -1))
    assert len(access.told) == 1


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, []),
        (1, [(0, 1)]),
        (20, [(0, 20)]),
        (25, [(5, 25), (0, 15)]),
        (30, [(10, 30), (0, 20)]),
        (40, [(20, 40), (10, 30), (0, 20)]),
    ],
)
def test_the_last_window_begins_with_the_first_record(size: int, expected: list[tuple[int, int]]) -> None:
    assert list(windows(size, 20, 10)) == expected


def test_two_hundred_candidates_are_nineteen_windows() -> None:
    assert len(list(windows(200, 20, 10))) == 19


def test_rankgpt_appends_what_a_reply_leaves_out_and_keeps_the_order_where_it_names_none() -> None:
    pool = make_pool(np.zeros((4, 2)))
    evidence, _ = read("rankgpt", pool, lambda *_: "Ranking: [3] > [9] > [3] > [1]")
    assert evidence.ids == ("r2", "r0", "r1", "r3")
    kept, _ = read("rankgpt", pool, lambda *_: "I would rather not.")
    assert kept.ids == pool.ids
    assert fallbacks(kept) == ["no ranking of 1 to 4 in the reply: left as it was"]


# Sets ----------------------------------------------------------------------------------------------------


def test_setr_takes_the_set_first_and_fills_in_native_order() -> None:
    pool = make_pool(np.zeros((30, 2)))
    said = "[1] is about 2023.\n\nSelected: [4] [2] [25]"
    evidence, access = read("setr", pool, lambda *_: said, Budget(records=5))
    assert evidence.ids == ("r3", "r1", "r0", "r2", "r4")
    assert len(access.told) == 1
    assert access.told[0][1]["records"].count("\n") == 19, "twenty candidates are shown"
    assert "Budget" not in str(access.told) and "k5" not in str(access.told)
    bare, _ = read("setr", pool, lambda *_: said, Budget(records=5), fill=False)
    assert (bare.ids, bare.stop_reason) == (("r3", "r1"), "adaptive")


def test_setr_says_when_it_fell_back_and_when_nothing_helps_is_no_fallback() -> None:
    pool = make_pool(np.zeros((3, 2)))
    evidence, _ = read("setr", pool, lambda *_: "no idea")
    assert (evidence.ids, len(fallbacks(evidence))) == (pool.ids, 1)
    none, _ = read("setr", pool, lambda *_: "Selected: none", fill=False)
    assert (none.ids, fallbacks(none)) == ((), [])


# Pointwise -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cross_encoder", "llm_pointwise"])
def test_scores_order_the_head_ties_go_to_the_native_rank_and_the_tail_stays(name: str) -> None:
    pool = make_pool(np.zeros((6, 2)))
    scores = {0: 0.2, 1: 0.7, 2: 0.7, 3: 0.9}

    def score(text: str) -> float:
        return scores[int(re.search(r"place (\d+)", text)[1])]  # type: ignore[index]

    access = ToldAccess(make_library(pool), UNLIMITED, score=score)
    evidence = READERS[name](depth=4).read(make_query(), pool, UNLIMITED, access)
    assert evidence.ids == ("r3", "r1", "r2", "r0", "r4", "r5")
    np.testing.assert_allclose(evidence.gains, [0.9, 0.7, 0.7, 0.2, np.nan, np.nan])


def test_a_record_of_which_the_model_says_neither_scores_nothing_and_is_counted() -> None:
    pool = make_pool(np.zeros((3, 2)))
    access = ToldAccess(make_library(pool), UNLIMITED)
    access.first_tokens = lambda prompt, each: [{"yes": -5.0, "no": -0.1}, {"Hm": -0.1}, {"yes": -0.1}]  # type: ignore[method-assign]
    evidence = READERS["llm_pointwise"]().read(make_query(), pool, UNLIMITED, access)
    assert evidence.ids == ("r2", "r0", "r1")
    assert fallbacks(evidence) == ["neither yes nor no of 1 records: score 0"]


# Requirements --------------------------------------------------------------------------------------------

TWO = json.dumps(
    {
        "requirements": [
            {"id": "a", "description": "where she went", "type": "answer_bearing_fact"},
            {"id": "b", "description": "where she  went", "type": "answer_bearing_fact"},
            {"id": "c", "description": "when she went", "type": "temporal_bridge"},
            {"id": "d", "description": "colour of bicycle", "type": "made_up"},
            {"id": "e"},
        ]
    }
)


def test_requirements_are_read_once_each_and_by_rules_where_there_are_none() -> None:
    access = ToldAccess(make_library(make_pool([])), UNLIMITED, lambda *_: TWO)
    found = by_model("Where did she go?", access)
    assert [(need.id, need.text, need.kind) for need in found.requirements] == [
        ("R1", "where she went", "answer_bearing_fact"),
        ("R2", "when she went", "temporal_bridge"),
        ("R3", "colour of bicycle", "answer_bearing_fact"),
    ]
    assert found.steps == ()
    access.say = lambda *_: "no JSON here"
    fallen = by_model("Where did Ada go?", access)
    assert fallen.requirements == rules("Where did Ada go?")
    assert len(fallen.steps) == 1
    access.say = lambda *_: json.dumps({"requirements": [{"description": f"fact {i}"} for i in range(20)]})
    assert len(by_model("?", access).requirements) == 8


def test_fca_ms_takes_the_subset_that_the_model_selects() -> None:
    pool = make_pool([(1.0, 0.0)] * 4)
    replies = {"requirements": TWO, "subset": '{"selected": [3, 1, 3, 77], "missing": ["R3"]}'}
    evidence, access = read("fca_ms_model", pool, lambda prompt, _: replies[prompt], grounding="pointer")
    assert evidence.ids == ("r2", "r0")
    assert [prompt for prompt, _ in access.told] == ["requirements", "subset"]
    assert "R2 (temporal_bridge): when she went" in access.told[1][1]["requirements"]
    assert fallbacks(evidence) == []
    replies["subset"] = "none of them"
    fallen, _ = read("fca_ms_model", pool, lambda prompt, _: replies[prompt], grounding="pointer", first=2)
    assert len(fallen.ids) == 2 and len(fallbacks(fallen)) == 1


def test_bfr_with_a_model_reads_for_what_its_requirements_lack_and_carries_fallbacks() -> None:
    pool = make_pool([(1.0, 0.0)] * 3)
    budget = Budget(calls=2, rounds=1, new_records=4)
    replies = {"requirements": TWO, "subset": '{"selected": [1]}'}
    evidence, access = read("bfr_state_model", pool, lambda prompt, _: replies[prompt], budget)
    lacking = missing(State("Where did she go?", access.notes(pool.ids), 0), by_model("", access).requirements, 0.25)
    assert evidence.trace[0].view == "init"
    assert lacking and evidence.trace[1].cue == f"Where did she go? {lacking[0]}"
    fallen, _ = read("bfr_state_model", pool, lambda *_: "", budget)
    # The one decomposition that failed is told once, the selection that failed beside it.
    assert len(fallbacks(fallen)) == 2


def test_xquad_s_aspects_are_the_requirements_of_the_model() -> None:
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(8, 2))
    pool = make_pool(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
    texts = {"where she went": [1.0, 0.0], "when she went": [0.0, 1.0], "colour of bicycle": [-1.0, 0.0]}
    access = ToldAccess(make_library(pool), UNLIMITED, lambda *_: TWO)
    access.embed = lambda asked: np.array([texts[text] for text in asked], np.float32)  # type: ignore[method-assign]
    evidence = READERS["xquad_model"](trade=1.0).read(make_query(), pool, UNLIMITED, access)
    # The notes share no attribute with any requirement but words that all of them have: cosine alone tells them apart.
    cosines = np.maximum(np.array(list(texts.values())) @ pool.vectors.T.astype(float), 0)
    order, _ = xquad(pool.dense, cosines, 8, trade=1.0)
    assert evidence.ids[0] == pool.ids[order[0]]
    assert fallbacks(evidence) == []


# Agents --------------------------------------------------------------------------------------------------

TEXTS = [
    ("Ada", "I adopted a parrot called Kiwi.", 0, 0.0),
    ("Bo", "Kiwi is a fine name.", 0, 0.2 * DAY),
    ("Ada", "The double bass is out of tune.", 1, 31 * DAY),
    ("Bo", "I miss the parrot.", 1, 31.5 * DAY),
    ("Ada", "So do I.", 2, 60 * DAY),
]
STORE = Library(
    [Note(f"r{i}", text, who, session, i, time, 4) for i, (who, text, session, time) in enumerate(TEXTS)],
    lambda texts: np.zeros((len(texts), 2), np.float32),
)


def agent(reader: Any, script: list[Any], budget: Budget = UNLIMITED, asked: str = "Who adopted a parrot?") -> Any:
    replies = iter(script)

    def say(prompt: str, variables: Mapping[str, str]) -> str:
        said = next(replies)
        return said if isinstance(said, str) else json.dumps(said)

    access = ToldAccess(STORE, budget, say)
    query = make_query()
    query = type(query)(query.id, asked, query.vector)
    return reader.read(query, make_pool([]), budget, access), access


def call(tool: str, value: Any) -> dict[str, Any]:
    return {"tool": tool, "value": value}


def test_mragent_searches_with_tools_and_holds_the_union_in_order_of_arrival() -> None:
    script = [
        {"calls": [call("search_text", "parrot"), call("search_entity", "Kiwi"), call("no_such_tool", "x")]},
        {"calls": [call("search_session", 2), call("search_temporal", "1970-03")]},
        {"records": [1, 3]},
    ]
    evidence, access = agent(MragentFlat(), script)
    assert evidence.ids == ("r0", "r3", "r1", "r2", "r4")
    assert [(step.view, step.returned) for step in evidence.trace] == [
        ("text", ("r0", "r3")),
        ("entity", ("r1",)),
        ("session", ("r2",)),
        ("time", ("r4",)),
    ]
    assert (evidence.calls, access.calls, len(access.told), evidence.stop_reason) == (4, 4, 3, "adaptive")
    assert "[3] (1 January 1970) Kiwi is a fine name." in access.told[1][1]["records"]
    assert access.told[1][1]["searches"] == "text: parrot\nentity: Kiwi"
    cited, _ = agent(MragentFlat(evidence="cited"), script)
    assert cited.ids == ("r0", "r1")


def test_mragent_s_limits_are_kept_whatever_the_model_asks_for() -> None:
    greedy = {"calls": [call("search_text", "parrot kiwi bass")] * 9}
    evidence, access = agent(MragentFlat(rounds=3, tools=4, depth=1), [greedy] * 9)
    assert (access.calls, evidence.calls, len(evidence.ids)) == (4, 4, 4)
    assert len(access.told) == 2, "after the tools are spent one round is left, for the records"
    assert access.told[-1][1]["rounds_left"] == "0"
    assert evidence.stop_reason == "budget"
    _, access = agent(MragentFlat(rounds=2, depth=1), [greedy] * 9)
    assert (len(access.told), access.calls) == (2, 9)
    bounded, access = agent(MragentFlat(), [greedy] * 9, Budget(calls=2, records=1))
    assert (access.calls, len(bounded.ids), bounded.stop_reason) == (2, 1, "budget")


def test_mragent_falls_back_to_the_question_once_and_says_so() -> None:
    evidence, access = agent(MragentFlat(), ["I would search for parrots."])
    assert evidence.ids == ("r0", "r3")
    assert fallbacks(evidence) == ["neither tool calls nor records in the reply"]
    assert (access.calls, len(access.told)) == (1, 1)
    later, access = agent(MragentFlat(), [{"calls": [call("search_entity", "Kiwi")]}, "hm"])
    assert later.ids == ("r0", "r1") and len(fallbacks(later)) == 1 and access.calls == 1


def test_the_scripted_agent_makes_its_three_calls_without_a_model() -> None:
    evidence, access = agent(MragentScripted(), [], asked="What did Ada say about a parrot?")
    assert [step.view for step in evidence.trace] == ["text", "entity", "session"]
    assert access.told == [] and access.calls == evidence.calls == 3
    assert agent(MragentScripted(tools=1), [])[1].calls == 1


def test_a_day_and_a_month_take_in_their_own_records_alone() -> None:
    months = {("1970-01", ("r0", "r1")), ("1970-02", ("r2", "r3")), ("1970-03", ("r4",)), ("1970-02-01", ("r2", "r3"))}
    for date, expected in months:
        action = around(date)
        assert action is not None
        found = action.ask(ToldAccess(STORE, UNLIMITED), 9, ())
        assert tuple(sorted(note.id for note in found)) == expected
    assert [around(text) for text in ("1970-13", "1970-02-30", "May 1970", "0000-01")] == [None] * 4


def test_mera_searches_for_what_is_missing_and_keeps_what_it_verified() -> None:
    script = [{"query": "parrot"}, {"records": [2]}, {"query": "parrot kiwi"}, {"records": [1]}, {"done": True}]
    evidence, access = agent(MeraFlat(), script)
    assert evidence.ids == ("r3", "r1"), "a record that was seen is not searched again"
    assert (evidence.calls, access.calls, evidence.stop_reason) == (2, 2, "adaptive")
    assert [prompt for prompt, _ in access.told] == ["mera_plan", "mera_verify"] * 2 + ["mera_plan"]
    assert access.told[2][1]["records"] == "[1] (1 February 1970) I miss the parrot."
    assert access.told[2][1]["searches"] == "parrot"


def test_mera_stops_within_its_rounds_and_says_where_replies_were_of_no_use() -> None:
    script = [{"query": "parrot"}, {"records": []}] * 9
    evidence, access = agent(MeraFlat(rounds=3), script)
    # From the second round on all records with the word are seen: nothing comes back, so nothing is verified.
    assert (evidence.ids, access.calls, evidence.stop_reason) == ((), 3, "budget")
    fallen, _ = agent(MeraFlat(rounds=1), ["no plan", "no verdict"])
    assert fallen.ids == ("r0", "r3")
    assert len(fallbacks(fallen)) == 2

"""Answerers and judges that ask a model, over real HTTP: what is sent, what is read, what is repaired, what is kept."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from storage.errors import InputError
from storage.records import Gold, Question, Record
from tasks.answerers.prompted import Prompted, answer_in
from tasks.asking import Asking
from tasks.judges import Judge
from tasks.judges.absence import LocomoAdversarial, denies
from tasks.judges.beam import Beam
from tasks.judges.graded import Lenient, Strict
from tasks.judges.longmemeval import LongMemEval, rule
from tasks.llm import Model
from tasks.outcomes import NO_INFORMATION, Answer, Verdict
from tasks.sufficiency.blinded import Blinded
from tasks.sufficiency.exhibit import Exhibit
from tasks.sufficiency.lexical import LexicalCover
from tests.fault_server import EMPTY, FILTERED, NULL, REFUSAL, TRUNCATED, TRUNCATED_NULL, Fault, FaultServer, said

QUESTION = Question("c1/q0", "c1", "single-hop", datetime(2023, 6, 1, 9, 5), "Who is Kiwi?")
GOLD = Gold("c1/q0", "Ada's parrot", ("c1/D1:1",), ("c1/1",))
RECORDS = [
    Record("c1/D1:1", "c1", "s1", 0, "Ada", "Ada: I adopted a parrot.", datetime(2023, 5, 8, 13, 56), ("c1/D1:1",)),
    Record("c1/D2:2", "c1", "s2", 1, "Ada", "Ada: He is called Kiwi.", None, ("c1/D2:2",)),
]


@pytest.fixture
def endpoint() -> Iterator[FaultServer]:
    with FaultServer() as server:
        yield server


@pytest.fixture
def asking(endpoint: FaultServer, tmp_path: Path) -> Asking:
    return Asking(str(tmp_path), (Model("small", "m", endpoint.url, max_tokens=16),))


def _texts(endpoint: FaultServer) -> list[str]:
    return ["\n".join(message["content"] for message in seen.body["messages"]) for seen in endpoint.asked()]


def _judge(judge: Judge, asking: Asking, *replies: str | None, gold: Gold = GOLD, question: Question = QUESTION) -> Any:
    return list(judge.judge_many([(question, gold, reply) for reply in replies], asking))


# ---- answering


def test_the_answerer_sees_records_oldest_first_with_dates_and_nothing_of_gold_ids_or_scores(
    endpoint: FaultServer, asking: Asking
) -> None:
    endpoint.reply = lambda body: " Ada's parrot.\n"
    assert list(Prompted("small").answer_many([(QUESTION, RECORDS)], asking)) == [
        Answer("Ada's parrot.", "ok", " Ada's parrot.\n")
    ]
    (text,) = _texts(endpoint)
    assert "[1:56 pm on 8 May, 2023] Ada: I adopted a parrot.\nAda: He is called Kiwi." in text
    assert "The question is asked on: 9:05 am on 1 June, 2023" in text
    assert not any(hidden in text for hidden in ("c1", "D1:1", "single-hop", "Ada's parrot", "score"))


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (REFUSAL, Answer(None, "refused", "I cannot help with that.")),
        (FILTERED, Answer(None, "refused")),
        (TRUNCATED, Answer(None, "truncated", "The answer is")),
        (TRUNCATED_NULL, Answer(None, "truncated")),
        (NULL, Answer(None, "failed")),
        (EMPTY, Answer(None, "failed", "")),
        (said("Error: failed to generate answer"), Answer(None, "parse_failed", "Error: failed to generate answer")),
        (said("<think>hm"), Answer(None, "parse_failed", "<think>hm")),
    ],
)
def test_what_is_no_answer_says_why(endpoint: FaultServer, asking: Asking, fault: Fault, expected: Answer) -> None:
    endpoint.faults.append(fault)
    (found,) = Prompted("small").answer_many([(QUESTION, RECORDS)], asking)
    assert found is not None
    assert (found.text, found.status) == (expected.text, expected.status)
    assert (found.raw or "") == (expected.raw or "")


def test_no_evidence_is_declared_or_asked_as_the_protocol_says(endpoint: FaultServer, asking: Asking) -> None:
    items: list[tuple[Question, list[Record]]] = [(QUESTION, []), (QUESTION, RECORDS)]
    found = list(Prompted("small").answer_many(items, asking))
    assert found[0] == Answer(NO_INFORMATION, "ok")
    assert len(endpoint.asked()) == 1 == len(Prompted("small").requests(items, asking))
    list(Prompted("small", empty="ask").answer_many(items, asking))
    assert "(no records)" in _texts(endpoint)[1]
    assert len(endpoint.asked()) == 2, "the other request was answered already"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("1. Scan: two.\nAnswer: maybe\n4. Date.\n**Answer:** 7 May 2023**", "7 May 2023"),
        ("<think>Answer: no</think>\nfinal answer: yes", "yes"),
        ('```json\n{"answer": 3}\n```', "3"),
        ('{"answer": ""}', None),
        ('{"answer": null}', None),
        ('{"said": "both"}', '{"said": "both"}'),
        ("1. Scan: two records name a day.\nAnswer:", None),
        ("The answer: both", "The answer: both"),
        ("", None),
        ("Error: no", None),
        ("Answer: Error: timed out", None),
        ("errors were made", "errors were made"),
    ],
)
def test_an_answer_is_taken_from_its_line_or_is_all_that_is_said(reply: str, answer: str | None) -> None:
    assert answer_in(reply) == answer


def test_of_a_cut_reply_only_an_answer_line_that_ended_counts() -> None:
    assert answer_in("Answer: Kiwi\nand mo", cut=True) == "Kiwi"
    assert answer_in("Answer: Kiwi and his fr", cut=True) is None


def test_a_users_own_prompt_is_used_and_may_not_ask_for_gold(
    tmp_path: Path, endpoint: FaultServer, asking: Asking
) -> None:
    path = tmp_path / "own.txt"
    path.write_text("Q {{question}} E {{evidence}}", encoding="utf-8")
    list(Prompted("small", prompt=str(path)).answer_many([(QUESTION, RECORDS[1:])], asking))
    assert _texts(endpoint) == ["Q Who is Kiwi? E Ada: He is called Kiwi."]
    first = Prompted("small", prompt=str(path)).spec()
    path.write_text("Q {{question}} E {{evidence}}!", encoding="utf-8")
    assert Prompted("small", prompt=str(path)).spec() != first, "an edited prompt is another answerer"
    path.write_text("{{question}} {{reference}}", encoding="utf-8")
    with pytest.raises(
        InputError, match="variables among evidence, question, reference_date expected, reference found"
    ):
        Prompted("small", prompt=str(path))
    path.write_text("Q {question} E {{evidence}}", encoding="utf-8")
    with pytest.raises(InputError, match=r"a place for \{\{question\}\} expected, none found"):
        Prompted("small", prompt=str(path))


# ---- judging


@pytest.mark.parametrize(
    ("judge", "words"), [(Lenient("small"), ("CORRECT", "WRONG")), (Strict("small"), ("yes", "no"))]
)
def test_a_judge_is_shown_its_own_words_and_its_reply_is_read(
    judge: Judge, words: tuple[str, str], endpoint: FaultServer, asking: Asking
) -> None:
    endpoint.reply = lambda body: words["a cat" in body["messages"][-1]["content"]]
    right, wrong = _judge(judge, asking, "a parrot of Ada's", "a cat")
    assert (right.score, right.label, right.status, right.raw) == (1.0, "correct", "ok", words[0])
    assert (wrong.score, wrong.label, wrong.scores) == (0.0, "wrong", (0.0,))
    assert all(word in _texts(endpoint)[0] for word in (*words, "Who is Kiwi?", "Ada's parrot"))


def test_an_unreadable_reply_is_asked_about_once_and_then_it_is_parse_failed(
    endpoint: FaultServer, asking: Asking
) -> None:
    endpoint.faults.extend([said("Hard to say."), said("wrong")])
    (found,) = _judge(Lenient("small"), asking, "a cat")
    assert (found.score, found.label) == (0.0, "wrong")
    assert found.raw == "Hard to say.\n\n[asked again]\nwrong"
    repair = endpoint.asked()[1].body["messages"]
    assert [message["role"] for message in repair[-2:]] == ["assistant", "user"]
    assert repair[-1]["content"] == "Reply with one word and nothing else: CORRECT or WRONG."
    endpoint.faults.extend([said("Hard to say."), said("Still hard.")])
    assert _judge(Lenient("small"), asking, "a dog")[0].status == "parse_failed"
    assert len(endpoint.asked()) == 4


@pytest.mark.parametrize(
    ("faults", "status", "score"),
    [
        ([REFUSAL], "refused", None),
        ([TRUNCATED_NULL, said("CORRECT")], "ok", 1.0),
        ([said('{"label": "WRONG", "why": "bec', "length")], "ok", 0.0),
        ([said("The answer is corr", "length"), said("um")], "truncated", None),
        ([NULL], "failed", None),
    ],
)
def test_every_way_to_fail_has_its_status_and_none_is_a_zero(
    endpoint: FaultServer, asking: Asking, faults: list[Fault], status: str, score: float | None
) -> None:
    endpoint.faults.extend(faults)
    (found,) = _judge(Lenient("small"), asking, "a parrot")
    assert (found.status, found.score) == (status, score)
    assert not endpoint.faults


def test_blank_and_missing_answers_are_wrong_and_gold_without_answer_is_failed(
    endpoint: FaultServer, asking: Asking
) -> None:
    assert [found.score for found in _judge(Strict("small"), asking, None, " \n")] == [0.0, 0.0]
    nothing = Gold("c1/q0", None, (), ())
    assert _judge(Strict("small"), asking, "x", gold=nothing) == [Verdict(None, None, "failed")]
    trap = Question("c1/q2", "c1", "adversarial", None, "What is Bo's dog called?")
    absent = _judge(Lenient("small"), asking, NO_INFORMATION, "Kiwi", gold=nothing, question=trap)
    assert [found.score for found in absent] == [1.0, 0.0]
    assert not endpoint.seen


def test_repeats_give_the_mean_the_majority_and_what_each_said(endpoint: FaultServer, asking: Asking) -> None:
    endpoint.faults.extend([said("yes"), said("no"), said("yes")])
    one = Asking(asking.lake, (Model("small", "m", endpoint.url, concurrency=1),))
    (found,) = _judge(Strict("small", repeats=3), one, "a parrot")
    assert (found.score, found.label) == (pytest.approx(2 / 3), "correct")
    assert sorted(found.scores) == [0.0, 1.0, 1.0]
    assert len(endpoint.asked()) == 3
    again = _judge(Strict("small", repeats=3), one, "a parrot")
    assert again == [found] and len(endpoint.asked()) == 3, "all repeats come from the ledger"


def test_an_unread_repeat_leaves_the_mean_and_an_even_split_has_no_label(endpoint: FaultServer, asking: Asking) -> None:
    one = Asking(asking.lake, (Model("small", "m", endpoint.url, concurrency=1),))
    endpoint.faults.extend([said("yes"), REFUSAL, said("yes")])
    (found,) = _judge(Strict("small", repeats=3), one, "a parrot")
    assert found.score == 1.0 and found.scores == (1.0, None, 1.0)
    endpoint.faults.extend([said("yes"), said("no")])
    assert _judge(Strict("small", repeats=2), one, "a bird")[0].label is None


@pytest.mark.parametrize(
    ("id", "kind", "expected"),
    [
        ("gpt4_1_abs", "temporal-reasoning", "abstention"),
        ("c9", "temporal-reasoning", "temporal"),
        ("c9", "knowledge-update", "update"),
        ("c9", "single-session-preference", "preference"),
        ("c9", "multi-session", "plain"),
        ("c9_abs/q1", "multi-session", "abstention"),
        ("abs_c9", "single-session-user", "plain"),
    ],
)
def test_longmemeval_judges_by_type_and_by_the_suffix_of_the_id(
    id: str, kind: str, expected: str, endpoint: FaultServer, asking: Asking
) -> None:
    question = Question(id, id.split("/")[0], kind, None, "How many days?")
    assert rule(question) == expected
    endpoint.reply = lambda body: "yes"
    gold = Gold(id, "18", (), (), ("likes tea",))
    (found,) = _judge(LongMemEval("small"), asking, "19", gold=gold, question=question)
    assert found.score == 1.0
    told = {
        "abstention": "cannot be answered",
        "temporal": "off by one",
        "update": "what held before",
        "preference": "likes tea",
        "plain": "contain the correct answer",
    }
    assert told[expected] in _texts(endpoint)[0]
    assert not any(text in _texts(endpoint)[0] for name, text in told.items() if name not in (expected, "plain"))


RUBRIC = Gold("c1/q0", None, (), (), ("names Ada", "names the parrot", "names the day"))


def test_beam_averages_one_request_an_item_and_the_official_arithmetic_cuts_halves(
    endpoint: FaultServer, asking: Asking
) -> None:
    grades = {"names Ada": "score: 1", "names the parrot": "0.5", "names the day": "Score: 0"}

    def reply(body: Any) -> str:
        return next(grade for item, grade in grades.items() if item in str(body["messages"]))

    endpoint.reply = reply
    (found,) = _judge(Beam("small"), asking, "Ada has one", gold=RUBRIC)
    assert (found.score, found.label, found.status) == (pytest.approx(0.5), None, "ok")
    assert len(endpoint.asked()) == 3 and all("Who is Kiwi?" in text for text in _texts(endpoint))
    assert _judge(Beam("small", arithmetic="official"), asking, "Ada has one", gold=RUBRIC)[0].score == pytest.approx(
        1 / 3
    )
    grades["names the day"] = "none at all"
    unread = _judge(Beam("small"), asking, "Ada has two", gold=RUBRIC)[0]
    assert (unread.score, unread.status) == (None, "parse_failed"), "an unread item is not a 0"
    assert _judge(Beam("small"), asking, None, gold=RUBRIC)[0].score == 0.0
    assert _judge(Beam("small"), asking, "x", gold=GOLD)[0].status == "failed"


def test_beam_orders_events(endpoint: FaultServer, asking: Asking) -> None:
    question = Question("c1/q0", "c1", "event_ordering", None, "In which order?")
    endpoint.faults.extend([said("The reply lists the second first: [2, 1, 3]")])
    (found,) = _judge(Beam("small"), asking, "parrot, Ada, day", gold=RUBRIC, question=question)
    assert found.score == pytest.approx((1 / 3 + 1) / 2), "two of three pairs in order: tau 1/3"
    assert "1. names Ada\n2. names the parrot\n3. names the day" in _texts(endpoint)[0]


@pytest.mark.parametrize(
    ("reply", "absent"),
    [
        (NO_INFORMATION, True),
        ("It is not mentioned.", True),
        ("The records do not say.", True),
        ("Bo's dog isn't named in the records; there's no mention of it.", True),
        ("I can't determine that from the records.", True),
        ("Unknown", True),
        ("Nothing is mentioned about that.", True),
        ("None of the records mention it.", True),
        ("There isn't any information on this.", True),
        ("Not enough information.", True),
        ("Melanie did not mention it.", True),
        ("Cannot tell.", True),
        ("Kiwi", False),
        ("She did not know how to swim", False),
        ("He could not find his keys", False),
        ("He does not have a dog", False),
        ("It is not mentioned, but it is probably Kiwi.", False),
        ("There is no reason to hide it: Kiwi", False),
        ("Not mentioned. " + "word " * 30, False),
        ("", False),
    ],
)
def test_an_adversarial_reply_is_right_iff_it_says_there_is_nothing(reply: str, absent: bool) -> None:
    assert denies(reply) == absent
    trap = Question("q", "c", "adversarial", None, "What?")
    (found,) = LocomoAdversarial().judge_many([(trap, Gold("q", "Kiwi", (), ()), reply)])
    assert found.score == float(absent)
    (other,) = LocomoAdversarial().judge_many([(QUESTION, GOLD, reply)])
    assert other == Verdict(None, None, "failed"), "other kinds are not its business"


# ---- sufficiency


def test_the_judge_of_sufficiency_sees_question_reference_and_evidence_alone(
    endpoint: FaultServer, asking: Asking
) -> None:
    endpoint.reply = lambda body: "Insufficient." if "parrot" in str(body) else "uncertain"
    exhibits = [Exhibit(QUESTION, "Ada's parrot", "Ada: He is Kiwi."), Exhibit(QUESTION, "a bird", "")]
    found = [vote and vote.value for vote in Blinded("small").judge_many(exhibits, asking)]
    assert found == ["insufficient", "uncertain"]
    assert "(no records)" in next(text for text in _texts(endpoint) if "a bird" in text)
    assert not any(hidden in json.dumps(_texts(endpoint)) for hidden in ("c1", "q0", "single-hop"))


@pytest.mark.parametrize(
    ("reference", "evidence", "expected"),
    [
        ("Ada's parrot", "Ada: I adopted a parrot.", "sufficient"),
        ("7 May 2023", "on May 7th, 2023 she left", "sufficient"),
        ("7 May 2023", "[1:56 pm on 8 May, 2023] yesterday", "uncertain"),
        ("a parrot", "She likes dogs", "insufficient"),
        ("Yes", "She likes dogs", "insufficient"),
        ("the", "anything", "uncertain"),
        ("parrot", "", "insufficient"),
    ],
)
def test_the_offline_stand_in_looks_for_the_references_words(reference: str, evidence: str, expected: str) -> None:
    (vote,) = LexicalCover().judge_many([Exhibit(QUESTION, reference, evidence)])
    assert vote is not None and vote.value == expected


def test_a_call_that_gets_no_reply_gives_no_verdict(endpoint: FaultServer, asking: Asking, monkeypatch: Any) -> None:
    from tasks.llm import Reply

    def nothing(self: Asking, requests: Any) -> list[Reply]:
        return [Reply(None, "failed", error="timed out") for _ in requests]

    monkeypatch.setattr(Asking, "ask", nothing)
    assert _judge(Strict("small"), asking, "a parrot") == [None]
    assert list(Prompted("small").answer_many([(QUESTION, RECORDS)], asking)) == [None]
    assert list(Blinded("small").judge_many([Exhibit(QUESTION, "x", "y")], asking)) == [None]

"""The extractive answerer, its dates and its text functions: by hand, by property, and on hostile text."""

import inspect
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.digests import canonical
from storage.records import Gold, Question, Record
from tasks import specs
from tasks.answerers import ANSWERERS, Answerer
from tasks.answerers.dates import MONTHS, WEEKDAYS, day, mentions, resolve
from tasks.answerers.extractive import Extractive
from tasks.outcomes import NO_INFORMATION, Answer
from tasks.text import STOP_WORDS, stem, terms, tokens

ROOT = Path(__file__).parents[1]
SATURDAY = date(2023, 7, 15)
DAYS = st.dates(date(1900, 1, 1), date(2100, 12, 31))


def record(text: str, speaker: str = "Mel", position: int = 0, said_at: datetime | None = None) -> Record:
    said_at = said_at or datetime(2023, 7, 15, 13, 51)
    return Record(f"D1:{position}", "c", "1", position, speaker, f"{speaker}: {text}", said_at, ())


def ask(text: str, *evidence: Record, answerer: Extractive | None = None) -> str | None:
    question = Question("q", "c", "single-hop", None, text)
    return next((answerer or Extractive()).answer_many([(question, evidence)])).text


# ---- dates


@pytest.mark.parametrize(
    ("expression", "printed"),
    [
        ("yesterday", "14 July 2023"),
        ("last night", "14 July 2023"),
        ("the day before yesterday", "13 July 2023"),
        ("this morning", "15 July 2023"),
        ("tomorrow", "16 July 2023"),
        ("the day after tomorrow", "17 July 2023"),
        ("three days ago", "12 July 2023"),
        ("20 days ago", "25 June 2023"),
        ("a few days ago", "A few days before 15 July 2023"),
        ("a couple of days ago", "13 July 2023"),
        ("last week", "The week before 15 July 2023"),
        ("a week ago", "The week before 15 July 2023"),
        ("the week before", "The week before 15 July 2023"),
        ("two weeks ago", "Two weeks before 15 July 2023"),
        ("two weekends ago", "Two weekends before 15 July 2023"),
        ("this week", "The week of 15 July 2023"),
        ("next week", "The week after 15 July 2023"),
        ("in two weeks", "Two weeks after 15 July 2023"),
        ("this weekend", "The weekend of 15 July 2023"),
        ("this past weekend", "The weekend before 15 July 2023"),
        ("last Friday", "The Friday before 15 July 2023"),
        ("last Fri", "The Friday before 15 July 2023"),
        ("on Tuesday", "The Tuesday before 15 July 2023"),
        ("next Monday", "The Monday after 15 July 2023"),
        ("last month", "June 2023"),
        ("next month", "August 2023"),
        ("seven months ago", "December 2022"),
        ("in six months", "January 2024"),
        ("last year", "2022"),
        ("this year", "2023"),
        ("three years ago", "2020"),
        ("a few years ago", "A few years before 2023"),
        ("several weeks ago", "Several weeks before 15 July 2023"),
        ("last summer", "Summer 2022"),
        ("next summer", "Summer 2024"),
        ("last fall", "Fall 2022"),
        ("last winter", "Winter 2023"),
        ("this spring", "Spring 2023"),
        ("in May", "May 2023"),
        ("last December", "December 2022"),
        ("next December", "December 2023"),
        ("in December", "December 2023"),
        ("last July", "July 2022"),
        ("next July", "July 2024"),
        ("July 4th", "4 July 2023"),
        ("28th of December", "28 December 2023"),
        ("May 7, 2023", "7 May 2023"),
        ("7th of May 2023", "7 May 2023"),
        ("7 May, 2023", "7 May 2023"),
        ("2023-05-07", "7 May 2023"),
        ("Sept 2021", "September 2021"),
        ("the summer of 2022", "Summer 2022"),
        ("since 2016", "Since 2016"),
        ("back in 2019", "2019"),
        ("31 February 2023", "February 2023"),
        ("29 February 2024", "29 February 2024"),
        ("the sun, the wed, a mon", None),
        ("last but not least", None),
        ("in 3 pieces", None),
    ],
)
def test_expressions_of_time_said_on_saturday_15_july_2023(expression: str, printed: str | None) -> None:
    assert SATURDAY.weekday() == 5
    assert resolve(expression, SATURDAY) == printed


@pytest.mark.parametrize(
    ("expression", "said_on", "printed"),
    [
        ("yesterday", date(2024, 3, 1), "29 February 2024"),
        ("yesterday", date(2023, 3, 1), "28 February 2023"),
        ("yesterday", date(2023, 1, 1), "31 December 2022"),
        ("last month", date(2023, 1, 31), "December 2022"),
        ("next month", date(2023, 12, 5), "January 2024"),
        ("last winter", date(2023, 12, 5), "Winter 2023"),  # December 2023 is in the winter of 2024
        ("next winter", date(2023, 12, 5), "Winter 2025"),
        ("last summer", date(2023, 12, 5), "Summer 2023"),
        ("February 29", date(2025, 1, 10), "29 February 2024"),
        ("February 29", date(2022, 6, 1), None),
        ("tomorrow", date(9999, 12, 31), None),
        ("999 years ago", date(900, 1, 1), None),
        ("last year", date(1, 5, 5), None),
        ("last month", date(1, 1, 5), None),
    ],
)
def test_edges_of_months_years_and_of_the_calendar(expression: str, said_on: date, printed: str | None) -> None:
    assert resolve(expression, said_on) == printed


def test_mentions_come_in_order_without_overlap_and_know_whether_they_are_explicit() -> None:
    text = "In 2019 we met; the day before yesterday, not yesterday, she left on May 7, 2021."
    found = mentions(text, SATURDAY)
    assert [m.printed for m in found] == ["2019", "13 July 2023", "14 July 2023", "7 May 2021"]
    assert [m.explicit for m in found] == [True, False, False, True]
    assert [text[m.start : m.end] for m in found][1] == "the day before yesterday"
    assert [m.printed for m in mentions(text, None)] == ["2019", "7 May 2021"]


@given(DAYS, DAYS)
def test_every_printed_day_reads_back_whenever_it_is_read(of: date, said_on: date) -> None:
    assert resolve(day(of), said_on) == day(of)
    assert resolve(f"{MONTHS[of.month - 1]} {of.day}, {of.year}", said_on) == day(of)
    assert resolve(of.isoformat(), None) == day(of)


@given(DAYS, st.integers(0, 999))
def test_days_ago_agree_with_the_calendar(said_on: date, days: int) -> None:
    assert resolve(f"{days} days ago", said_on) == day(said_on - timedelta(days=days))


@given(DAYS, st.sampled_from(WEEKDAYS))
def test_a_weekday_keeps_its_name_and_its_anchor(said_on: date, weekday: str) -> None:
    assert resolve(f"last {weekday}", said_on) == f"The {weekday} before {day(said_on)}"


@given(st.text(max_size=200), st.dates())
def test_no_text_and_no_day_break_the_dates(text: str, said_on: date) -> None:
    found = mentions(text, said_on)
    assert all(a.end <= b.start for a, b in pairwise(found))


# ---- text


def test_terms_are_stems_without_stop_words_in_order() -> None:
    assert tokens("Mel's 2 dogs: don't_run!\x00\ud800") == ["mel", "s", "2", "dogs", "don", "t", "run"]
    assert terms("The dogs were running to Mel's running-shop") == ["dog", "run", "mel", "run", "shop"]
    assert stem("x" * 65 + "ing").endswith("ing")
    assert not [word for word in STOP_WORDS if word != word.lower() or tokens(word) != [word]]


# ---- the answerer


@pytest.mark.parametrize(
    ("question", "text", "answer"),
    [
        ("When did Mel go to the pottery workshop?", "Last Fri I took my kids to a pottery workshop.",
         "The Friday before 15 July 2023"),
        ("When did Mel paint the sunrise?", "I painted that sunrise last year!", "2022"),
        ("When did Mel mention pottery?", "Pottery it is!", "15 July 2023"),
        ("When did Mel adopt the cat?", "(1:51 pm on 15 July, 2023) We adopted the cat yesterday.",
         "14 July 2023"),
        ("How long has Mel been married?", "We've been married for 5 years now.", "5 years"),
        ("How many dogs does Mel have?", "I have three dogs and they are wild.", "three"),
        ("How often does Mel run?", "I run twice a week, it helps.", "twice a week"),
        ("Who did Mel meet at the shelter?", "At the shelter I met a girl, Cindy Lou.", "Cindy Lou"),
        ("Where did Mel move from?", "I moved here from Sweden four years ago.", "Sweden"),
        ("What book did Mel read?", 'I read "Becoming Nicole" last week, wow.', "Becoming Nicole"),
        ("Does Mel like cats?", "Yes, I really love cats!", "Yes"),
        ("Does Mel like cats?", "I don't like cats.", "No"),
        ("What has Mel been teaching her siblings?", "I've been teaching my siblings coding.", "coding"),
        ("Why did Mel choose the agency?", "I chose the agency because they help folks.", "they help folks"),
    ],
)  # fmt: skip
def test_answers_by_kind_of_question(question: str, text: str, answer: str) -> None:
    assert ask(question, record(text)) == answer


def test_a_list_question_joins_records() -> None:
    evidence = [record("I love pottery classes.", position=0), record("I also enjoy swimming.", position=2)]
    said = ask("What hobbies does Mel enjoy?", *evidence)
    assert said is not None and "swimming" in said
    assert ask("Where has Mel camped?", record("We camped in Ohio."), record("We camped at Zion.", position=3))


def test_a_turn_that_replies_to_the_question_wins() -> None:
    evidence = [
        record("Chocolate cake is tasty.", position=0),
        record("What flavour is your birthday cake?", "Al", position=5),
        record("Raspberry and lemon.", position=6),
    ]
    assert ask("What flavour is Mel's birthday cake?", *evidence) == "Raspberry and lemon"


@pytest.mark.parametrize("evidence", [(), (record("Nice weather."),), (record(""),), (record("", speaker=""),)])
def test_evidence_that_does_not_answer_gets_the_declared_reply(evidence: Sequence[Record]) -> None:
    assert ask("When did Caroline adopt a puppy?", *evidence) == NO_INFORMATION


def test_what_another_speaker_did_is_not_answered() -> None:
    evidence = record("I adopted a puppy from the shelter.", "John")
    assert ask("What did John adopt from the shelter?", evidence) == "puppy"
    assert ask("What did Maria eat at school?", evidence) == NO_INFORMATION


def test_unknown_time_is_not_made_up() -> None:
    undated = Record("D1:1", "c", "1", 0, "Mel", "Mel: We moved to Rome yesterday", None, ())
    assert ask("When did Mel move to Rome?", undated) == NO_INFORMATION


ANYTHING = st.text(st.sampled_from("Mel dog 7,.?!\"[]'\x00\ud800‏") | st.characters(), max_size=80)


@given(ANYTHING, st.lists(ANYTHING, max_size=4))
def test_any_text_is_answered_and_always_alike(question: str, texts: list[str]) -> None:
    evidence = [record(text, position=place) for place, text in enumerate(texts)]
    once = ask(question, *evidence)
    answerer = Extractive()
    assert once and once == ask(question, *evidence, answerer=answerer) == ask(question, *evidence, answerer=answerer)


@pytest.mark.parametrize(
    "text",
    ["last " * 200_000, "a" * 1_000_000, "Aa " * 330_000, "1,1" * 330_000 + "a", '"' * 1_000_000,
     "\x00\ud800 " * 330_000, " " * 1_000_000 + "dog", "what what " * 100_000, "to be of " * 110_000],
)  # fmt: skip
def test_a_megabyte_turn_is_answered_in_time(text: str) -> None:
    kinds = ["When was", "How long was", "How many did", "Who was", "Where was", "Why was", "What book was"]
    started = time.perf_counter()
    for kind in kinds:
        said = ask(f"{kind} Mel dog last", record(text), record(text, position=1))
        assert said and len(said) < 2_000
    ask(text, record("dog"))
    mentions(" ".join(text.split())[:200_000], SATURDAY)
    assert time.perf_counter() - started < 20


def test_records_are_known_by_content_not_by_id_alone() -> None:
    answerer = Extractive()
    question = "How many dogs does Mel have?"
    assert ask(question, record("I have three dogs."), answerer=answerer) == "three"
    assert ask(question, record("I have two dogs."), answerer=answerer) == "two"


def test_answers_do_not_depend_on_the_process() -> None:
    program = (
        "from tests.test_tasks_extractive import ask, record\n"
        "said = [ask('What hobbies and places does Mel like most?', *(record(t, position=i) for i, t in\n"
        "  enumerate(['I like hobbies most', 'places I like', 'hobbies, places', 'people like it'])))]\n"
        "print(said)"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(runs) == 1


def test_answers_come_one_by_one_and_in_order() -> None:
    question = Question("q", "c", "single-hop", None, "How many dogs does Mel have?")
    stream = Extractive().answer_many([(question, [record("I have three dogs.")]), (question, [])])
    assert next(stream) == Answer("three", "ok")
    assert list(stream) == [Answer(NO_INFORMATION, "ok")]


@pytest.mark.parametrize("answerer", ANSWERERS.values())
def test_gold_cannot_reach_an_answerer(answerer: type[Answerer]) -> None:
    assert list(inspect.signature(answerer.answer_many).parameters) == ["self", "items", "asking"]
    assert "Gold" not in str(get_type_hints(answerer.answer_many))
    package = answerer.__module__.rpartition(".")[0]
    modules = [module for name, module in sys.modules.items() if name.startswith(package)]
    assert inspect.getmodule(answerer) in modules
    assert not any(value is Gold for module in modules for value in vars(module).values())


def test_the_spec_is_json_and_parameters_print_and_parse_back() -> None:
    assert canonical(Extractive().spec()) == canonical(Extractive(threshold=0.2).spec())
    part = specs.make(ANSWERERS, "extractive(joined=1)", "answerer")
    assert part == Extractive(joined=1) and specs.parameters(part) == {"threshold": 0.3, "joined": 1}
    assert ANSWERERS["extractive"].name == "extractive" and ANSWERERS["extractive"].offline


@pytest.mark.parametrize(("threshold", "joined"), [(-0.1, 1), (1.1, 1), (0.5, 0), (0.5, 9)])
def test_parameters_out_of_range_are_refused(threshold: float, joined: int) -> None:
    with pytest.raises(ValueError, match="threshold must be"):
        Extractive(threshold, joined)

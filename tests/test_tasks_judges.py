"""The lexical judges against sums by hand, an independent twin of the official score, and hostile text."""

import re
import string
import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from snowballstemmer import stemmer

from storage.digests import canonical
from storage.records import Gold, Question
from tasks import specs
from tasks.judges import JUDGES, Judge
from tasks.judges.lexical import LexicalMatch, StemF1, canonical_words, normalised, official_f1
from tasks.outcomes import NO_INFORMATION, Verdict

PORTER = stemmer("porter")
KINDS = ("multi-hop", "temporal", "open-domain", "single-hop", "adversarial")
TEXTS = st.text(st.sampled_from("ab dog the,;.Ty7é\x00\ud800") | st.characters(), max_size=40)


def verdict(judge: Judge, reply: str | None, gold: str | None, kind: str = "single-hop") -> Verdict:
    question = Question("q", "c", kind, None, "What?")
    return next(judge.judge_many([(question, Gold("q", gold, (), ()), reply)]))


def f1(reply: str, gold: str, kind: str = "single-hop") -> float | None:
    return verdict(StemF1(), reply, gold, kind).score


def matches(reply: str, gold: str, kind: str = "single-hop") -> bool:
    return verdict(LexicalMatch(), reply, gold, kind).label == "correct"


def twin(reply: str, gold: str, kind: str) -> float:
    """The official score written again from its description, slowly."""

    def words(text: str) -> list[str]:
        text = "".join(c for c in text.replace(",", "").lower() if c not in string.punctuation)
        return [PORTER.stemWord(word) for word in re.sub(r"\b(a|an|the|and)\b", " ", text).split()]

    def plain(one: str, other: str) -> float:
        left, right = words(one), words(other)
        if left == right == []:
            return 1.0
        shared = sum(min(n, Counter(right)[word]) for word, n in Counter(left).items())
        if not shared:
            return 0.0
        precision, recall = shared / len(left), shared / len(right)
        return 2 * precision * recall / (precision + recall)

    if kind == "open-domain":
        gold = gold.partition(";")[0].strip()
    if kind != "multi-hop":
        return plain(reply, gold)
    parts = [max(plain(said, wanted) for said in reply.split(",")) for wanted in gold.split(",")]
    return sum(parts) / len(parts)


@pytest.mark.parametrize(
    ("reply", "gold", "expected"),
    [
        ("7 May 2023", "7 May, 2023", 1.0),
        ("May 7", "7 May 2023", 2 * 2 / (2 + 3)),
        ("dogs and dog", "dog", 2 / 3),  # two equal stems against one: precision 1/2, recall 1
        ("running runs", "runs running ran", 2 * 2 / (2 + 3)),
        ("The cat, a hat and an owl!", "cat hat owl", 1.0),
        ("1000", "1,000", 1.0),  # commas are deleted, not replaced
        ("3", "3", 1.0),  # integer golds come as text
        ("café Zürich", "Cafe Zürich", 1 / 2),  # accents are kept
        ("nothing shared", "else", 0.0),
        ("the", "a", 1.0),  # both empty after normalising
        ("the", "dog", 0.0),
    ],
)
def test_f1_by_hand(reply: str, gold: str, expected: float) -> None:
    assert f1(reply, gold) == pytest.approx(expected)


def test_multi_hop_gives_each_gold_part_its_best_reply_part() -> None:
    # pottery: 1; red bike against bike: 2/3; swimming: 0
    assert f1("bike, pottery", "Pottery, red bike, swimming", "multi-hop") == pytest.approx((1 + 2 / 3) / 3)
    assert f1("bike pottery", "Pottery", "multi-hop") == pytest.approx(2 / 3)


def test_open_domain_gold_ends_at_its_first_semicolon() -> None:
    assert f1("Yes", "Yes; she likes; it", "open-domain") == 1.0
    assert f1("Yes", "Yes; she likes it") == pytest.approx(2 / 5)
    assert f1("Yes; she", "Yes; she likes it", "open-domain") == pytest.approx(2 / 3)  # only the gold is cut


@pytest.mark.parametrize("judge", [StemF1(), LexicalMatch()])
def test_adversarial_is_right_iff_the_reply_says_there_is_nothing(judge: Judge) -> None:
    trap = "a trap that two rows carry as an answer"
    for gold in (None, trap):
        assert verdict(judge, NO_INFORMATION, gold, "adversarial") == Verdict(1.0, "correct", "ok")
        assert verdict(judge, "It is NOT mentioned there", gold, "adversarial").score == 1.0
        assert verdict(judge, trap, gold, "adversarial") == Verdict(0.0, "wrong", "ok")


@pytest.mark.parametrize("judge", [StemF1(), LexicalMatch()])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reply", [None, "", " \n\t"])
def test_missing_and_blank_replies_stay_in_the_denominator(judge: Judge, kind: str, reply: str | None) -> None:
    assert verdict(judge, reply, "gold", kind) == Verdict(0.0, "wrong", "ok")


@pytest.mark.parametrize("judge", [StemF1(), LexicalMatch()])
def test_gold_without_an_answer_is_not_a_zero(judge: Judge) -> None:
    assert verdict(judge, "dog", None) == Verdict(None, None, "failed")
    assert verdict(judge, None, None) == Verdict(None, None, "failed")


@pytest.mark.parametrize(
    ("reply", "gold"),
    [
        ("May 7, 2023", "7 May 2023"),
        ("on 2023-05-07", "7 May, 2023"),
        ("May 7th, 2023.", "7 May 2023"),
        ("7th of May 2023", "May 7, 2023"),
        ("the Friday before 24 June 2022", "The Friday before 24June, 2022."),
        ("two", "2"),
        ("25 dogs", "twenty-five dogs"),
        ("1,000 euros", "1000 euros"),
        ("She adopted a Labrador", "Labrador"),
        ("Sept 3 2022", "September 3, 2022"),
        ("Yes, she does", "Yes"),
    ],
)
def test_match_accepts_the_same_thing_said_otherwise(reply: str, gold: str) -> None:
    assert matches(reply, gold)


@pytest.mark.parametrize(
    ("reply", "gold"),
    [
        ("8 May 2023", "7 May 2023"),  # official F1 2/3
        ("7 June 2023", "7 May 2023"),
        ("3 golden retriever dogs", "2 golden retriever dogs"),
        ("No, she does not like it", "Yes, she does like it"),
        ("she likes dogs", "she does not like dogs"),
        ("The Tuesday before 3 May 2023", "The Friday before 3 May 2023"),
        ("doghouse", "dog"),
        ("17", "7"),
    ],
)
def test_match_refuses_near_misses(reply: str, gold: str) -> None:
    assert not matches(reply, gold)


def test_long_reply_that_mentions_everything_does_not_pass() -> None:
    listing = (
        "Step by step, it could be a dog, a cat, a horse, a parrot, a hamster, a lizard, a snake, a turtle, "
        "a rabbit, a goldfish, a ferret, a goat, a donkey, a cow, a pig, a sheep, a duck or a hen"
    )
    assert not matches(listing, "dog")
    assert not matches(listing, "dog, cat", "multi-hop")
    assert f1(listing, "horse, cat", "multi-hop") == 1.0  # the official score is fooled
    denial = f"{NO_INFORMATION} " + "But it may be the dog. " * 8
    assert not matches(denial, "dog", "adversarial")


def test_canonical_words_write_dates_and_numbers_one_way() -> None:
    assert canonical_words("On the 7th of May, 2023") == ["on", "7", "may", "2023"]
    assert canonical_words("7 May 8") == ["7", "may", "8"]
    assert canonical_words("Twenty-one, and 007") == ["21", "7"]
    assert canonical_words("1,234,567 in 2023,2024") == ["1234567", "in", "2023", "2024"]


@given(TEXTS, TEXTS, st.sampled_from(KINDS[:4]))
def test_official_score_agrees_with_its_twin(reply: str, gold: str, kind: str) -> None:
    assert official_f1(reply, gold, kind) == pytest.approx(twin(reply, gold, kind))


@given(TEXTS, TEXTS, st.sampled_from(KINDS))
def test_every_verdict_is_a_score_in_the_unit_interval(reply: str, gold: str, kind: str) -> None:
    for judge in (StemF1(), LexicalMatch()):
        found = verdict(judge, reply, gold, kind)
        assert found.status == "ok" and found.score is not None and 0 <= found.score <= 1
        assert found == verdict(judge, reply, gold, kind)


@given(TEXTS, TEXTS)
def test_plain_f1_is_symmetric(one: str, other: str) -> None:
    assert official_f1(one, other, "temporal") == official_f1(other, one, "temporal")


@given(TEXTS, st.sampled_from(("multi-hop", "temporal", "single-hop")))
def test_identical_text_scores_one(text: str, kind: str) -> None:
    assert official_f1(text, text, kind) == pytest.approx(1.0)


@given(TEXTS)
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    assert normalised(normalised(text)) == normalised(text)


@pytest.mark.parametrize("text", ["a," * 500_000, "7" * 1_000_000, "x" * 1_000_000, " \x00\ud800" * 300_000])
def test_a_megabyte_is_judged_in_time(text: str) -> None:
    started = time.perf_counter()
    for judge in (StemF1(), LexicalMatch()):
        verdict(judge, text, "7 May, dog, cat", "multi-hop")
        verdict(judge, "7 May, dog, cat", text, "multi-hop")
    assert time.perf_counter() - started < 30


def test_specs_are_json_and_parameters_print_and_parse_back() -> None:
    forms = [f"{name}(model=m)" if not judge.offline else name for name, judge in JUDGES.items() if name != "recorded"]
    assert all(canonical(specs.make(JUDGES, form, "judge").spec()) for form in forms)
    assert specs.make(JUDGES, "lexical_match(slack=9)", "judge") == LexicalMatch(slack=9)
    assert all(judge.name == name for name, judge in JUDGES.items())


@pytest.mark.parametrize(("threshold", "slack"), [(0.0, 1), (1.1, 1), (0.5, -1)])
def test_parameters_out_of_range_are_refused(threshold: float, slack: int) -> None:
    with pytest.raises(ValueError, match="threshold must be"):
        LexicalMatch(threshold, slack)

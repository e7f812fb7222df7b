"""Every shape of reply that has broken a harness is read as what it says, or as nothing."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readers.replies import numbers
from tasks.answerers.prompted import answer_in
from tasks.judges.replies import grade, label, order, words

RIGHT_WRONG = words(("correct", "wrong"), "CORRECT/WRONG")
YES_NO = words(("correct", "wrong"), "yes/no")
ENOUGH = words(("sufficient", "insufficient", "uncertain"), "sufficient/insufficient/uncertain")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('```json\n{"label": "CORRECT"}\n```', "correct"),
        ("{'label': 'WRONG'}", "wrong"),
        ('{"label": true}', "correct"),
        ('{"label": false}', "wrong"),
        ('{"label": "Correct."}', "correct"),
        ('{"label": "WRONG",}', "wrong"),
        ('{"reasoning": "Both say May, it is correct in part", "label": "WRONG"}', "wrong"),
        ('{"label": "WRONG", "reason": "the gold answer: yes"}', "wrong"),
        ('First I compare. The reply is correct about May.\n\n{"label": "WRONG"}', "wrong"),
        ('<think>It is CORRECT. Or {"label": "CORRECT"}?</think>\n{"label": "WRONG"}', "wrong"),
        ("the template opened it</think>WRONG", "wrong"),
        ("The two dates agree, so CORRECT", "correct"),
        ("**CORRECT**", "correct"),
        ("Label: CORRECT", "correct"),
        ("**Verdict:** wrong", "wrong"),
        ("CORRECT\n\nThe reply names the same day.", "correct"),
        ("The reply names another day.\n\nWRONG", "wrong"),
        ("The answer is correct", "correct"),
        ("The answer is not correct.", "wrong"),
        ("This isn't correct.", "wrong"),
        ("NOT CORRECT", "wrong"),
        ("Incorrect.", "wrong"),
        ("The generated answer is therefore incorrect.", "wrong"),
        ("correct: they agree", "correct"),
        ("CORRECT or WRONG? The years differ, so WRONG", "wrong"),
        ("Is the reply correct? Yes, it is correct.", "correct"),
    ],
)
def test_a_decision_is_read_whatever_its_shape(text: str, expected: str) -> None:
    assert label(text, RIGHT_WRONG) == expected


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        " \n",
        "```json\n```",
        "<think>CORRECT",
        "CORRECT and WRONG",
        "It is CORRECT about the day but WRONG about the year.",
        '{"label": "CORRECT"} {"label": "WRONG"}',
        "CORRECT\nor is it?\nWRONG",
        "The correct answer is 7 May 2023.",
        "THE CORRECT ANSWER IS MAY",
        "I cannot say whether the answer is correct.",
        "It would be CORRECT if the year were given.",
        "The answer mentions a parrot.",
        '{"label": "maybe"}',
        "I'm sorry, but I can't help with that.",
        "0.5",
        '{"label": "CORRECT|WRONG"}',
        "It is neither correct nor wrong.",
        "Is it correct? No.",
        "CORRECT\n\nWait, the year differs: it is WRONG.",
    ],
)
def test_what_says_nothing_sure_is_no_decision(text: str | None) -> None:
    assert label(text, RIGHT_WRONG) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes", "correct"),
        ("no.", "wrong"),
        ("Yes, both name the same day.", "correct"),
        ("No. There is no parrot.", "wrong"),
        ("**Yes**", "correct"),
        ("Answer: no", "wrong"),
        ("Yes, but the year is wrong.", None),
        ("There is no parrot in it", None),
        ("The reply is correct.", "correct"),
    ],
)
def test_the_words_belong_to_the_judge(text: str, expected: str | None) -> None:
    assert label(text, YES_NO) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sufficient", "sufficient"),
        ("INSUFFICIENT: the year is missing", "insufficient"),
        ("The evidence is not sufficient.", "insufficient"),
        ("It is not insufficient.", None),
        ('{"verdict": "uncertain"}', "uncertain"),
        ("It is sufficient, yet uncertain", None),
        ("insufficient\n\nIt is unclear whether the year is meant.", "insufficient"),
        ("sufficient\n\nNo: the year is missing, so the evidence is insufficient.", None),
        ("verdict: sufficient, verdict: insufficient or verdict: uncertain", None),
        ('{"verdict": "sufficient", "result": "sufficient for a careful reader"}', "sufficient"),
    ],
)
def test_three_labels_are_told_apart(text: str, expected: str | None) -> None:
    assert label(text, ENOUGH) == expected


def test_a_reply_that_was_cut_counts_for_what_it_closed() -> None:
    assert label("Yes, because the", YES_NO, cut=True) == "correct"
    assert label('{"label": "WRONG", "reason": "the rep', RIGHT_WRONG, cut=True) == "wrong"
    assert label("The day is right, so far it is correct", RIGHT_WRONG, cut=True) is None
    assert label('{"label": "CORRECT', RIGHT_WRONG, cut=True) is None
    assert grade("score: 0", (0, 0.5, 1), cut=True) is None
    assert grade("0", (0, 0.5, 1), cut=True) is None
    assert grade("0.5\nIt names the par", (0, 0.5, 1), cut=True) == 0.5


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.5", 0.5),
        ('{"score": 0.5, "reason": "half"}', 0.5),
        ("```json\n{'score': '1.0',}\n```", 1.0),
        ("Score: 0.5 (partly there)", 0.5),
        ("It names one of two.\n**0.5**", 0.5),
        ("1.", 1.0),
        ("2", None),
        ("0.7", None),
        ("1/2", None),
        ("50%", None),
        ("it is half there", None),
        ('{"score": 1} {"score": 0}', None),
        ("0 or 1", None),
        ("score: 1, score: 0.5 or score: 0", None),
        ("score: 1 or score: 1", None),
        ("0.5 - 1", None),
        ("0,5", None),
        ("1 - fully", 1.0),
        ("1. It names the parrot.\n2. It leaves the year out.\nSo in part.", None),
        ("1. It names the parrot.\n0.5", 0.5),
        (None, None),
    ],
)
def test_grades(text: str | None, expected: float | None) -> None:
    assert grade(text, (0, 0.5, 1)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[2, 0, 1]", (2, 0, 1)),
        ('<think>[1, 2, 3]</think>{"order": [3, 1]}', (3, 1)),
        ("items [1] and [2].\n[2, 1, 2, 0, 0]", (2, 1, 0, 0)),
        ("[]", ()),
        ("[4]", None),
        ("[2] > [1] > [3]", None),
        ("2, 1", None),
        (None, None),
    ],
)
def test_orders(text: str | None, expected: tuple[int, ...] | None) -> None:
    assert order(text, 3) == expected


@pytest.mark.parametrize("filler", ["\n", " ", "-", "*", '"', "> \n", "- [ ] \n"])
def test_a_flood_of_blanks_or_marks_is_read_past(filler: str) -> None:
    """Some models end in one, up to their token limit; patterns that go back over it would take many minutes here."""
    flood = filler * 50_000
    assert label(f"The years differ.\n{flood}\nLabel: WRONG", RIGHT_WRONG) == "wrong"
    assert grade(f"In part.\n{flood}\nscore: 0.5", (0, 0.5, 1)) == 0.5
    assert answer_in(f"Scan.\n{flood}\nAnswer: Kiwi") == "Kiwi"
    assert numbers(f"Scan.\n{flood}\nSelected: [2]", 3) == [2]


@given(st.text(max_size=200), st.booleans())
def test_any_text_is_survived(text: str, cut: bool) -> None:
    assert label(text, RIGHT_WRONG, cut=cut) in (None, "correct", "wrong")
    assert grade(text, (0, 0.5, 1), cut=cut) in (None, 0, 0.5, 1)
    order(text, 3)


@given(st.sampled_from(["correct", "wrong"]), st.text(max_size=60))
def test_a_json_label_wins_over_any_reason_before_it(name: str, reason: str) -> None:
    reason = reason.replace(":", "").replace("=", "")
    text = json.dumps({"reason": reason, "label": name.upper()})
    assert label(text, RIGHT_WRONG) in (name, None if "<think" in reason.lower() else name)


def test_a_letter_for_a_word_is_no_article() -> None:
    letters = words(("correct", "wrong"), "A/B")
    assert [label(text, letters) for text in ("A", "Label: B", "B. The year differs.")] == ["correct", "wrong", "wrong"]
    assert label("A reply like this is a guess.", letters) is None


@pytest.mark.parametrize("own", ["", "yes", "yes/yes", "yes/no/maybe", "a b/c"])
def test_a_judge_needs_two_different_words(own: str) -> None:
    with pytest.raises(ValueError, match="2 different words"):
        words(("correct", "wrong"), own)

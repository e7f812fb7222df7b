"""What is planted is what it is called, the audit's known figures come out, and the panel decides as it should."""

import itertools
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from reports.calibration import errors
from storage.errors import InputError
from storage.records import Gold, Question
from tasks.adjudicate import agreed
from tasks.audit import audit_cases
from tasks.judges.asked import Told
from tasks.judges.beam import kendall_tau_b, order_score
from tasks.judges.lexical import canonical_words
from tasks.judges.recorded import Recorded
from tasks.planted import differs, planted
from tests.conftest import REAL_DATA

AUDIT = REAL_DATA / "locomo_audit"


def _asked(*rows: tuple[str, str, str | None]) -> tuple[list[Question], dict[str, Gold]]:
    """Questions of one conversation each `(conversation, kind, gold)`, with their gold."""
    questions = [Question(f"q{i}", row[0], row[1], None, f"What about topic {i}?") for i, row in enumerate(rows)]
    return questions, {f"q{i}": Gold(f"q{i}", row[2], (), ()) for i, row in enumerate(rows)}


def test_a_specific_wrong_reply_is_another_gold_of_the_same_kind_and_conversation() -> None:
    questions, gold = _asked(
        ("c1", "temporal", "7 May 2023"), ("c1", "temporal", "2023-05-07"), ("c1", "temporal", "June 2022"),
        ("c1", "single-hop", "a parrot"), ("c2", "temporal", "1999"), ("c1", "adversarial", "a trap"),
        ("c2", "temporal", None),
    )  # fmt: skip
    cases = {(case.question.id, case.truth): case.reply for case in planted(questions, gold, 1)}
    assert cases["q0", "specific"] == cases["q1", "specific"] == "June 2022", "the same day in other words is no error"
    assert canonical_words(cases["q2", "specific"]) == ["7", "may", "2023"]
    assert ("q3", "specific") not in cases and ("q4", "specific") not in cases, "no rival: none is planted"
    assert all(("q4", truth) in cases for truth in ("good", "vague"))
    assert not any(id in ("q5", "q6") for id, _ in cases)


@given(
    st.lists(st.tuples(st.sampled_from(["c1", "c2"]), st.sampled_from(["a", "b"]), st.text(max_size=12)), max_size=8)
)
def test_a_planted_wrong_reply_is_never_the_true_gold(rows: list[tuple[str, str, str]]) -> None:
    questions, gold = _asked(*rows)
    for case in planted(questions, gold, 7):
        answer = case.gold.answer or ""
        if case.truth == "specific":
            assert canonical_words(case.reply) != canonical_words(answer)
            assert differs(case.reply, answer)
        if case.truth == "good":
            assert answer in case.reply


def test_a_vague_reply_is_about_the_question_and_holds_nothing_of_its_answer() -> None:
    questions, gold = _asked(("c1", "a", "topic 0"), ("c1", "a", "else"))
    vague = {case.question.id: case.reply for case in planted(questions, gold, 3) if case.truth == "vague"}
    assert "topic" in vague["q1"] and "else" not in vague["q1"]
    assert not set(canonical_words(vague["q0"])) & {"topic", "0"}


def test_planting_is_the_same_every_time_and_draws_by_seed() -> None:
    questions, gold = _asked(*[("c1", "a", f"answer{word}") for word in "abcdefgh"])
    assert planted(questions, gold, 1) == planted(questions, gold, 1)
    assert planted(questions, gold, 1) != planted(questions, gold, 2)


@pytest.fixture(scope="module")
def audit() -> Path:
    if not AUDIT.is_dir():
        pytest.skip(f"needs the LoCoMo audit at {AUDIT}")
    return AUDIT


def test_the_audits_votes_give_the_known_figures(audit: Path) -> None:
    cases = audit_cases(audit)
    judge = Recorded(str(audit))
    verdicts = list(judge.judge_many([(case.question, case.gold, case.reply) for case in cases]))
    frame = pl.DataFrame(
        {
            "truth": [case.truth for case in cases],
            "score": [None if verdict is None else verdict.score for verdict in verdicts],
        }
    )
    real = frame.filter(pl.col("truth") == "unknown")["score"]
    assert len(real) == 1540 and real.null_count() == 0
    assert f"{100 * float(real.mean()):.2f}" == "74.29"  # type: ignore[arg-type]
    rates = errors(frame)
    accepted = rates.false_accept["specific"]
    assert accepted.n == 1540 and accepted.rate is not None
    assert f"{100 * accepted.rate:.2f}" == "10.61"
    majority = sum(
        v is not None and v.label == "correct" for v, c in zip(verdicts, cases, strict=True) if c.truth == "specific"
    )
    assert majority == 164


def test_each_of_the_audits_votes_is_a_judge_of_its_own(audit: Path) -> None:
    planted_wrong = [case for case in audit_cases(audit) if case.truth == "specific"]
    items = [(case.question, case.gold, case.reply) for case in planted_wrong]
    accepted = [sum(v.score or 0 for v in Recorded(str(audit), vote).judge_many(items) if v) for vote in (1, 2, 3)]
    assert accepted == [163, 166, 161]
    assert next(Recorded(str(audit), 4).judge_many(items[:1])).status == "failed"  # type: ignore[union-attr]


def test_a_folder_that_is_no_audit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder with any of planted_wrong_specific"):
        Recorded(str(tmp_path))
    (tmp_path / "planted_wrong_specific.json").write_text('{"detailed_results": {"c": [{}]}}', encoding="utf-8")
    with pytest.raises(InputError, match="its published form expected"):
        audit_cases(tmp_path)


# ---- the order of events


@pytest.mark.parametrize("n", [2, 3, 4])
def test_tau_b_is_scipys_over_all_rankings_with_ties(n: int) -> None:
    ranks = list(itertools.product(range(1, n + 1), repeat=n))
    for one in ranks[:: max(1, len(ranks) // 20)]:
        for other in ranks[:: max(1, len(ranks) // 20)]:
            expected = kendalltau(one, other).statistic
            found = kendall_tau_b(one, other)
            assert (found is None and expected != expected) or found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("found", "events", "score"),
    [
        ((1, 2, 3), 3, 1.0),
        ((3, 2, 1), 3, 0.0),
        ((2, 1, 3), 3, (1 / 3 + 1) / 2),
        ((), 3, 0.0),
        ((0, 0), 3, 0.0),
        ((1,), 1, 1.0),
        # two of three, in order: true ranks 1 2 3, reply's 1 2 3 with the absent one last
        ((1, 2), 3, 1.0),
        # only the last: the other two tied behind it; no pair agrees, two disagree, one is tied: -2 / sqrt(3 * 2)
        ((3,), 3, (1 - 2 / 6**0.5) / 2),
        # something else first: true ranks 1 2 4, reply's 2 3 1
        ((0, 1, 2), 2, ((1 - 2) / 3 + 1) / 2),
    ],
)
def test_order_scores_by_hand(found: tuple[int, ...], events: int, score: float) -> None:
    assert order_score(found, events) == pytest.approx(score)


# ---- the panel


def _vote(label: str | None) -> Told[str]:
    return Told(label, "ok" if label else "parse_failed", None)


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        (["sufficient", "sufficient"], ("sufficient", "ok")),
        (["sufficient", "insufficient"], ("uncertain", "ok")),
        (["sufficient", "insufficient", "insufficient"], ("insufficient", "ok")),
        (["sufficient", "sufficient", "insufficient"], ("insufficient", "ok")),
        (["uncertain", "uncertain", "sufficient"], ("sufficient", "ok")),
        (["sufficient", None], ("uncertain", "ok")),
        (["sufficient", None, "sufficient"], ("sufficient", "ok")),
        (["sufficient", "insufficient", None], ("uncertain", "ok")),
        ([None, None], (None, "parse_failed")),
    ],
)
def test_the_panel_agrees_or_the_adjudicator_decides(votes: list[str | None], expected: tuple[str | None, str]) -> None:
    assert agreed([_vote(label) for label in votes], panel=2) == expected


def test_one_judge_alone_is_its_own_panel() -> None:
    assert agreed([_vote("insufficient")], panel=1) == ("insufficient", "ok")

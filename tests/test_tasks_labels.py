"""Labels known to be wrong find their questions, or the file is refused."""

import json
from collections import Counter
from pathlib import Path

import pytest

from storage.errors import InputError
from storage.records import Question
from tasks.labels import wrong_labels
from tasks.sources import locomo

SHARED = Path(__file__).parents[1].parent / "shared" / "data"
QUESTIONS = [
    Question(f"{c}/q{i}", c, "temporal", None, f"What of {i} in {c}?") for c in ("ann", "bo") for i in range(2)
]


def labelled(folder: Path, *labels: object) -> Path:
    path = folder / "labels.json"
    path.write_text(json.dumps(list(labels)))
    return path


def test_ids_are_the_benchmarks_or_a_place_in_the_file(tmp_path: Path) -> None:
    path = labelled(
        tmp_path,
        {"question_id": "locomo_1_qa0", "error_type": "WRONG_CITATION", "question": "What of 0 in bo?"},
        {"question_id": "ann/q1", "error_type": "HALLUCINATION", "why": "it was never said"},
    )
    assert wrong_labels(path, QUESTIONS) == {"bo/q0": "citation", "ann/q1": "answer"}


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ({"question_id": "locomo_2_qa0", "error_type": "HALLUCINATION"}, "locomo_2_qa0 has no question"),
        ({"question_id": "locomo_0_qa0", "error_type": "HALLUCINATION"}, "locomo_0_qa0 found twice"),
        ({"question_id": "ann/q1", "error_type": "AMBIGUOUS", "question": "Who?"}, "'What of 1 in ann.*'Who\\?' there"),
        ({"question_id": "ann/q1"}, "question_id and error_type expected"),
        ("ann/q1", "question_id and error_type expected"),
    ],
)
def test_a_label_of_no_question_or_of_another_is_refused(tmp_path: Path, label: object, message: str) -> None:
    path = labelled(tmp_path, {"question_id": "ann/q0", "error_type": "INCOMPLETE"}, label)
    with pytest.raises(InputError, match=message):
        wrong_labels(path, QUESTIONS)


def test_a_file_that_is_not_there_or_no_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        wrong_labels(tmp_path / "none.json", QUESTIONS)
    (tmp_path / "broken.json").write_text("[{")
    with pytest.raises(InputError, match="a list of question_id"):
        wrong_labels(tmp_path / "broken.json", QUESTIONS)


def test_the_public_audit_names_99_wrong_answers_and_57_wrong_citations() -> None:
    data, audit = SHARED / "locomo" / "locomo10.json", SHARED / "locomo_audit" / "label_errors.json"
    if not data.is_file() or not audit.is_file():
        pytest.skip("needs ../shared/data/locomo and ../shared/data/locomo_audit")
    questions = locomo.load(data).questions
    found = wrong_labels(audit, questions)
    kinds = {question.id: question.kind for question in questions}
    answers = Counter(kinds[id] for id, fault in found.items() if fault == "answer")
    assert answers == {"multi-hop": 28, "temporal": 26, "open-domain": 9, "single-hop": 36}
    assert Counter(found.values()) == {"answer": 99, "citation": 57}

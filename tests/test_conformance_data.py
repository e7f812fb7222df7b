"""Shapes of data that have given other harnesses wrong numbers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage.errors import InputError
from storage.lake import Lake
from tasks.ingest import ingest
from tasks.sources.locomo import load
from tests.conftest import conversation, write_locomo


def test_category_numbers_mean_the_release_s_kinds(tmp_path: Path) -> None:
    qa = [{"question": f"q{n}", "answer": "a", "evidence": ["D1:1"], "category": n} for n in (3, 1, 4, 2, 5)]
    read = load(write_locomo(tmp_path / "x.json", conversation(qa=qa)))
    kinds = {question.text: question.kind for question in read.questions}
    assert kinds == {
        "q1": "multi-hop",
        "q2": "temporal",
        "q3": "open-domain",
        "q4": "single-hop",
        "q5": "adversarial",
    }


def test_a_number_as_answer_is_text_and_a_repeated_question_is_two_questions(tmp_path: Path) -> None:
    qa = [
        {"question": "How many?", "answer": answer, "evidence": [turn], "category": 4}
        for answer, turn in ((2022, "D1:1"), (3.5, "D2:2"))
    ]
    read = load(write_locomo(tmp_path / "x.json", conversation(qa=qa)))
    assert [gold.answer for gold in read.gold] == ["2022", "3.5"]
    assert [question.text for question in read.questions] == ["How many?"] * 2
    assert len({question.id for question in read.questions}) == 2
    assert [gold.turn_ids for gold in read.gold] == [("c1/D1:1",), ("c1/D2:2",)]


def test_a_file_is_read_alike_under_every_locale(tmp_path: Path) -> None:
    said = conversation()
    said["conversation"]["session_1"][0]["text"] = "Où est le café? 鳥"
    path = tmp_path / "x.json"
    write_locomo(path, said)
    path.write_text(path.read_text("utf-8").encode().decode("unicode_escape"), encoding="utf-8")
    assert "鳥" in path.read_text(encoding="utf-8"), "the bytes are not ASCII"
    code = "import sys; from pathlib import Path; from tasks.sources.locomo import load; "
    code += "print(ascii(load(Path(sys.argv[1])).turns[0].text))"
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", code, str(path)],
        env={**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ascii("Où est le café? 鳥")


def test_a_file_of_another_digest_than_the_protocol_s_is_refused(tmp_path: Path) -> None:
    lake = str(Lake.open(tmp_path / "lake").root)
    with pytest.raises(InputError, match=r"SHA-256 00ff expected, .* found; download it again"):
        ingest(lake, "locomo", str(write_locomo(tmp_path / "x.json")), "00ff")

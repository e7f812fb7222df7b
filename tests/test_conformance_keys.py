"""What changes a result changes where it is kept."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows import protocol as protocols
from tasks.plan import Plan
from tasks.provenance import code

MODELS = {"models.small.model": "m", "models.other.model": "n"}


def _plan(changes: dict[str, Any] | None = None) -> Plan:
    return protocols.load("sample", {**MODELS, **(changes or {})}).plan("lake", "d", "g")


def test_another_judge_or_sampling_is_another_place_for_verdicts() -> None:
    places = {
        _plan().verdicts(judge)
        for judge in ("lenient(model=small)", "lenient(model=other)", "strict(model=small)", "stem_f1")
    }
    places |= {
        _plan({f"models.small.{key}": value}).verdicts("lenient(model=small)")
        for key, value in (("temperature", 0.7), ("max_tokens", 5), ("seed", 3))
    }
    assert len(places) == 7
    reached = _plan({"models.small.base_url": "http://elsewhere/v1", "models.small.concurrency": 2})
    assert reached.verdicts("lenient(model=small)") in places, "how a model is reached changes nothing"


def test_an_edited_prompt_is_another_place_for_answers(tmp_path: Path) -> None:
    prompt = tmp_path / "mine.md"
    prompt.write_text("{{question}}\n{{evidence}}\n", encoding="utf-8")
    form = f'prompted(model=small, prompt="{prompt}")'
    first = _plan({"answerer": form}).answers
    assert _plan({"answerer": form}).answers == first
    prompt.write_text("Briefly: {{question}}\n{{evidence}}\n", encoding="utf-8")
    assert _plan({"answerer": form}).answers != first


def test_another_gold_or_judge_is_never_read_as_the_old_one() -> None:
    plan = _plan()
    corrected = replace(plan, gold="corrected")
    assert corrected.verdicts("stem_f1") != plan.verdicts("stem_f1")
    assert corrected.scores(plan.stores[0]) != plan.scores(plan.stores[0])
    assert corrected.answers == plan.answers, "an answer knows nothing of gold"
    assert plan.verdicts("stem_f1") != plan.verdicts("lexical_match")


def test_changed_code_has_another_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "stage_of_a_test"
    (package / "inner").mkdir(parents=True)
    for name in ("__init__.py", "inner/__init__.py", "inner/part.py"):
        (package / name).write_text("", encoding="utf-8")
    first = code("stage_of_a_test")
    (package / "inner" / "part.py").write_text("K = 2\n", encoding="utf-8")
    code.cache_clear()
    assert code("stage_of_a_test") != first
    sys.modules.pop("stage_of_a_test", None)
    code.cache_clear()

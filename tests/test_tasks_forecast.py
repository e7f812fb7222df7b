"""A forecast counts what the endpoint then sees, and never too little."""

from pathlib import Path
from typing import Any

import pytest

from flows import protocol as protocols
from flows.estimate import estimate
from storage.lake import Lake
from storage.schemas import SELECTIONS, STATES
from tasks.answer import answer
from tasks.forecast import Forecast
from tasks.ingest import ingest
from tasks.judge import judge
from tasks.llm import BudgetStop, budget, ledger
from tasks.plan import Plan
from tests.conftest import write_locomo
from tests.fault_server import FaultServer

PROTOCOL = """
name = "asks"
arms = ["hybrid", "dense"]
budgets = ["k1"]
answerer = "prompted(model=small)"
judges = ["stem_f1", "lenient(model=small)"]
[data]
benchmark = "locomo"
[models.small]
model = "m"
max_tokens = 8
"""


def _compose(plan: Plan) -> None:
    """Evidence as readers would leave it: two states of the first question, one of each other that both arms share."""
    lake, store = Lake(plan.lake), plan.stores[0]
    states: list[dict[str, Any]] = []
    selections: list[dict[str, Any]] = []
    for question in plan.questions():
        records = plan.records(store, question.conversation_id)
        for place, arm in enumerate(plan.arms):
            held = records[place if question.id.endswith("q0") else 0].id
            states.append({"question_id": question.id, "evidence_hash": held, "record_ids": [held], "tokens": 1})
            row = dict.fromkeys(SELECTIONS.schema.names) | {"arm": str(arm), "question_id": question.id, "calls": 0}
            row |= {"evidence_hash": held, "record_ids": [held], "stop_reason": "", "latency_ms": 0.0, "trace": []}
            selections.append(row)
    lake.table(STATES, store.store).append(states)
    lake.table(SELECTIONS, store.selections(plan.seed)).append(selections)


def test_calls_are_bounded_before_and_exact_after_the_evidence_is_known(tmp_path: Path) -> None:
    data, lake = write_locomo(tmp_path / "data.json"), str(tmp_path / "lake")
    (tmp_path / "p.toml").write_text(PROTOCOL)
    with FaultServer(lambda body: "yes") as endpoint:
        changes = {"data.path": str(data), "models.small.base_url": endpoint.url}
        changes |= {"models.small.prompt_price": 1.0, "models.small.completion_price": 1e6}
        said = protocols.load(str(tmp_path / "p.toml"), changes)
        first = {row.stage: row for row in estimate(said, lake)}
        assert (first["answer"].calls, first["judge"].calls) == (6, 4), "two arms, three questions, one never judged"
        assert first["answer"].at_most and first["answer"].completion_tokens == 6 * 8
        assert [(row.repairs, row.seconds) for row in first.values()] == [(0, None), (4, None)]

        dataset = ingest(lake, "locomo", str(data))
        plan = said.plan(lake, dataset.dataset, dataset.gold)
        _compose(plan)
        known = {row.stage: row for row in estimate(said, lake)}
        assert (known["answer"].calls, known["answer"].at_most) == (4, False)
        with pytest.raises(BudgetStop), budget(lake, max_calls=3):
            answer(plan, plan.stores[0], "c1")
        rest = {row.stage: row for row in estimate(said, lake)}["answer"]
        assert (rest.held, rest.calls, rest.completion_tokens) == (3, 1, 2)
        assert rest.cost == pytest.approx(2.0, rel=0.01)
        seen = ledger(lake).rows()["latency_s"].to_list()
        assert rest.seconds == pytest.approx(sum(seen) / len(seen) / 8), "one call, eight at a time"

        answer(plan, plan.stores[0], "c1")
        assert len(endpoint.asked()) == 4
        judged = {row.stage: row for row in estimate(said, lake)}["judge"]
        judge(plan, "c1")
        assert judged.at_most is False and judged.calls == len(endpoint.asked()) - 4
        assert [(row.calls, row.cost) for row in estimate(said, lake)] == [(0, 0.0), (0, 0.0)]


def test_offline_parts_cost_nothing_and_a_model_without_a_price_an_unknown_sum(tmp_path: Path) -> None:
    data = str(write_locomo(tmp_path / "data.json"))
    assert estimate(protocols.load("sample", {"data.path": data}), str(tmp_path / "lake")) == []
    (tmp_path / "p.toml").write_text(PROTOCOL)
    rows = estimate(protocols.load(str(tmp_path / "p.toml"), {"data.path": data}), str(tmp_path / "lake"))
    assert [row.cost for row in rows] == [None, None]
    assert isinstance(rows[0], Forecast)


def test_readers_that_ask_are_bounded_cell_by_cell(tmp_path: Path) -> None:
    data = str(write_locomo(tmp_path / "data.json"))
    (tmp_path / "p.toml").write_text(PROTOCOL)
    arms = ["setr(model=small)", "rankgpt(model=small, window=2, step=1)", "llm_pointwise(model=small)"]
    changes = {"data.path": data, "judges": [], "arms": arms}
    rows = [
        row
        for row in estimate(protocols.load(str(tmp_path / "p.toml"), changes), str(tmp_path / "lake"))
        if row.stage == "compose"
    ]
    # Three questions over four records: one ask; three windows of two; one ask a record, of one token.
    assert [(row.calls, row.at_most) for row in rows] == [(3, True), (9, True), (12, True)]
    assert [row.completion_tokens for row in rows] == [3 * 8, 9 * 8, 12]
    assert all(row.prompt_tokens > 0 for row in rows)

"""The pursuit's analysis of a small lake: every figure, the arms' own numbers, resumed, refused where it must be."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows import protocol as protocols
from flows.protocol import Protocol
from reports.pursuit_analysis import COLUMNS, Key, Study, estimate
from reports.pursuit_figures import bins
from reports.pursuit_findings import readings
from storage.errors import InputError
from storage.lake import Lake
from storage.schemas import SCORES, SELECTIONS
from tasks.pursuit_analysis import covered_at
from tests.conftest import conversation, write_locomo

SCORED = ("ingest", "store", "index", "pool", "compose", "judge")
Ran = tuple[Protocol, Path, dict[str, str]]


def _lake(folder: Path, **changes: Any) -> tuple[Protocol, Path]:
    data = write_locomo(folder / "x.json", conversation("c1"), conversation("c2"))
    said: dict[str, Any] = {"data.path": str(data), "statistics.samples": 200, "budgets": ["k1", "k2", "k3", "k4"]}
    said["arms"] = ["hybrid", "mem_pursuit", "mem_pursuit(tau=1e-05)@k50"]
    return protocols.load("sample", said | changes), folder / "lake"


@pytest.fixture(scope="module")
def ran(server: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """A scored lake of two conversations with its analysis."""
    from flows.analyse import analyse
    from flows.benchmark import benchmark

    protocol, lake = _lake(tmp_path_factory.mktemp("pursuit"))
    benchmark(protocol, str(Lake.open(lake).root), SCORED)
    yield protocol, lake, analyse(protocol, str(lake))


def _arms(protocol: Protocol, lake: Path) -> pl.DataFrame:
    from tasks.ingest import ingest
    from tasks.sources import locate

    found = ingest(str(lake), protocol.data.benchmark, str(locate("locomo", protocol.data.path)))
    plan = protocol.plan(str(lake), found.dataset, found.gold)
    store = plan.stores[0]
    scores = Lake(lake).table(SCORES, plan.scores(store)).read()
    selections = Lake(lake).table(SELECTIONS, store.selections(plan.seed)).read()
    return selections.join(scores, on=["question_id", "evidence_hash"])


def test_the_nested_curve_is_what_the_arms_scored(ran: Ran) -> None:
    protocol, lake, paths = ran
    scored = _arms(protocol, lake)
    curve = pl.read_csv(paths["curve_data"])
    assert len(curve) == 4 * 2 * 2
    for k, policy, measure, value in curve.iter_rows():
        own = scored.filter(pl.col("arm") == f"{policy}@k{k}")[measure.replace(" ", "_")].drop_nulls()
        assert len(own) == 4
        assert value == pytest.approx(own.mean())


def test_the_adaptive_point_and_the_session_recall_are_the_arms(ran: Ran) -> None:
    protocol, lake, paths = ran
    scored = _arms(protocol, lake).filter(pl.col("complete_evidence").is_not_null())
    numbers = {row[:3]: row[3] for row in pl.read_csv(paths["numbers"]).iter_rows()}
    adaptive = scored.filter(pl.col("arm").str.contains("tau"))
    assert numbers["curve", "adaptive", "records"] == pytest.approx(adaptive["record_ids"].list.len().mean())
    assert numbers["curve", "adaptive", "mem_pursuit complete evidence"] == adaptive["complete_evidence"].mean()
    for policy in ("hybrid", "mem_pursuit"):
        own = scored.filter(pl.col("arm") == f"{policy}@k4")
        assert numbers["overlap", "k10", f"{policy} session recall"] == own["session_recall"].mean()


def test_every_question_with_gold_has_its_row(ran: Ran) -> None:
    rows = pl.read_csv(ran[2]["questions"])
    assert rows.columns == list(COLUMNS)
    assert rows["gold_records"].to_list() == [1, 2, 1, 2]
    assert rows["comparisons"].to_list() == [0, 2, 0, 2]
    assert rows["replaced_k10"].to_list() == [0.0] * 4
    advantage = rows["hybrid_residual"] - rows["gold_residual"]
    assert (advantage - rows["residual_advantage"]).abs().max() == 0


def test_the_page_shows_four_figures_and_fetches_nothing(ran: Ran) -> None:
    page = Path(ran[2]["analysis"]).read_text(encoding="utf-8")
    assert page.count("<svg") == 4
    assert not re.search(r'(?:src|href)\s*=\s*"(?!#|[a-z]+\.csv")', page)
    said = json.loads(Path(ran[2]["summary"]).read_text(encoding="utf-8"))
    assert list(said["readings"]) == ["overlap", "curve", "reconstruction", "preference"]
    assert all(text.endswith(".") and "None" not in text and "nan" not in text for text in said["readings"].values())


def test_an_analysis_of_the_same_inputs_is_not_written_again(ran: Ran, server: None) -> None:
    from flows.analyse import analyse

    protocol, lake, paths = ran
    before = Path(paths["analysis"]).stat().st_mtime_ns
    assert analyse(protocol, str(lake)) == paths
    assert Path(paths["analysis"]).stat().st_mtime_ns == before


def test_missing_pools_and_unknown_stores_are_refused(ran: Ran, tmp_path: Path) -> None:
    from flows.analyse import analyse

    with pytest.raises(InputError, match="pools of store turns expected, 6 missing"):
        analyse(ran[0], str(Lake.open(tmp_path / "empty").root))
    with pytest.raises(InputError, match="one of the stores turns expected, 'facts' found"):
        analyse(ran[0], str(ran[1]), "facts")


def test_a_set_is_covered_at_the_record_that_completes_it() -> None:
    holds = {"1": frozenset("a"), "2": frozenset(), "3": frozenset("bc"), "4": frozenset("d")}
    assert covered_at("ab", "1234", holds) == 3
    assert covered_at("aa", "1234", holds) == 1
    assert covered_at("ax", "1234", holds) is None


def test_no_bin_holds_both_signs_and_equal_sets_are_in_none() -> None:
    found = bins(pl.Series([-0.001, 0.0, 0.001, 0.0199, 0.021, None]), ("above", "below"))
    assert found.filter(pl.col("side") == "below")["questions"].to_list() == [1]
    assert found.filter(pl.col("side") == "above")["questions"].to_list() == [2, 1]


def _study(rows: list[dict[str, Any]]) -> Study:
    full = [dict.fromkeys(COLUMNS) | row for row in rows]
    frame = pl.DataFrame(full, schema=dict(COLUMNS))
    return Study("n", "t", "b", "open", frame, len(rows), ("apart",), {}, {}, "", 0, 200)


def _row(place: int, **values: Any) -> dict[str, Any]:
    base = {
        "question_id": f"q{place}",
        "conversation_id": f"c{place % 3}",
        "kind": "kind",
        "pool": 8,
        "gold_records": 1,
    }
    return base | {"adaptive_size": 2, "gold_in_pool": 1} | values


def test_shares_leave_out_what_is_undefined_and_kinds_apart() -> None:
    rows = [_row(place, residual_advantage=value) for place, value in enumerate((0.2, 0.0, -0.1, None))]
    found = estimate(_study([*rows, _row(4, kind="apart", residual_advantage=0.5)]))
    shares = [found[Key("reconstruction", "all", name)] for name in ("gold closer", "hybrid closer", "equal")]
    assert [each.value for each in shares] == pytest.approx([1 / 3] * 3)
    assert {each.n for each in shares} == {3}
    assert found[Key("reconstruction", "apart", "gold closer")].value == 1


def test_gold_that_is_never_found_is_a_miss_and_unknown_gold_is_missing() -> None:
    rows = [_row(0, hybrid_complete_at=None), _row(1, hybrid_complete_at=3), _row(2, gold_records=None)]
    found = estimate(_study(rows))[Key("curve", "k5", "hybrid complete evidence")]
    assert (found.value, found.n) == (0.5, 2)


def test_a_study_without_a_question_still_reads() -> None:
    said = readings(estimate(_study([])), [1])
    assert "nothing is compared" in said["reconstruction"] and "nothing is compared" in said["preference"]

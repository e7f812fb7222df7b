"""The whole LoCoMo release gives the figures that are known of it."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from flows import protocol as protocols
from flows.stages import STAGES
from readers.mem_pursuit import mem_pursuit
from storage.lake import Lake
from storage.schemas import SELECTIONS
from tasks.conversation import Conversation
from tasks.ingest import ingest
from tasks.plan import Plan
from tests.pursuit_reference import reference_path

# Measured once with the fp32 model and another implementation; percentages at 10 and 20 records.
KNOWN = {
    "hybrid": {"gold_hit": (72.5, 80.2), "complete_evidence": (59.6, 66.5), "session_recall": (89.1, 94.2)},
    "bm25": {"gold_hit": (67.8, 74.6), "complete_evidence": (55.6, 61.9), "session_recall": (88.2, 93.2)},
    "dense": {"gold_hit": (51.4, 62.0), "complete_evidence": (40.3, 48.9), "session_recall": (75.0, 86.4)},
    "mem_pursuit": {"gold_hit": (48.4, 61.5), "complete_evidence": (36.3, 47.5), "session_recall": (77.5, 87.3)},
    "mmr": {"gold_hit": (42.3, 56.6), "complete_evidence": (31.6, 43.0), "session_recall": (72.8, 86.3)},
}
COMPLETE_SESSIONS = {
    "hybrid": (83.5, 90.1),
    "bm25": (82.6, 88.8),
    "dense": (69.4, 81.5),
    "mem_pursuit": (71.3, 81.8),
    "mmr": (66.1, 80.7),
}
# Ten records and thirty more, page by page in the ranking's own order, against the ranking's first forty.
PAGED = ("bfr_text(view=ranking)@C6", "bfr_text(page=30, view=ranking)@C1")
FORTY = "hybrid@k40"
ADAPTIVE = "mem_pursuit(tau=1e-05)@k50"


@pytest.fixture(scope="module")
def locomo(server: None, locomo_file: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, dict[str, Any]]:
    """The release run with the known readers: the plan and the run's summary."""
    from flows.benchmark import benchmark

    lake = Lake.open(tmp_path_factory.mktemp("locomo"))
    said = protocols.load("locomo", {"data.path": str(locomo_file), "arms": [*KNOWN, ADAPTIVE, *PAGED, FORTY]})
    summary = benchmark(said, str(lake.root), STAGES)
    dataset = ingest(str(lake.root), "locomo", str(locomo_file))
    return said.plan(str(lake.root), dataset.dataset, dataset.gold), summary


@pytest.fixture(scope="module")
def main_csv(locomo: tuple[Plan, dict[str, Any]]) -> pl.DataFrame:
    return pl.read_csv(locomo[1]["paths"]["main"], schema_overrides={"k": pl.String}).filter(pl.col("kind") == "all")


@pytest.mark.parametrize("reader", KNOWN)
def test_readers_reach_their_known_figures(main_csv: pl.DataFrame, reader: str) -> None:
    for metric, known in (KNOWN[reader] | {"complete_sessions": COMPLETE_SESSIONS[reader]}).items():
        for k, expected in zip((10, 20), known, strict=True):
            row = main_csv.filter((pl.col("arm") == f"{reader}@k{k}") & (pl.col("metric") == metric))
            assert row["n"].to_list() == [1536]
            assert 100 * row["value"][0] == pytest.approx(expected, abs=1.5), (metric, k)


@pytest.mark.parametrize("arm", PAGED)
def test_paging_through_a_ranking_hands_over_the_ranking_on_every_question(
    locomo: tuple[Plan, dict[str, Any]], main_csv: pl.DataFrame, arm: str
) -> None:
    plan, _ = locomo
    selections = Lake(plan.lake).table(SELECTIONS, plan.stores[0].selections(plan.seed))
    held = selections.read(["arm", "question_id", "record_ids"])
    paged, top = (held.filter(pl.col("arm") == name).sort("question_id") for name in (arm, FORTY))
    assert len(paged) == 1986
    assert paged["question_id"].equals(top["question_id"])
    assert paged["record_ids"].to_list() == top["record_ids"].to_list()
    row = main_csv.filter((pl.col("arm") == arm) & (pl.col("metric") == "gold_hit"))
    assert 100 * row["value"][0] == pytest.approx(86.6, abs=1.5)


def test_the_adaptive_pursuit_stops_at_its_known_mean_size(main_csv: pl.DataFrame) -> None:
    row = main_csv.filter((pl.col("arm") == ADAPTIVE) & (pl.col("metric") == "records"))
    assert row["value"][0] == pytest.approx(16.4, abs=0.5)


def test_the_pursuit_orders_every_pool_as_the_reference_does(locomo: tuple[Plan, dict[str, Any]]) -> None:
    plan, _ = locomo
    store, seen = plan.stores[0], 0
    for conversation_id in plan.conversation_ids():
        conversation = Conversation.load(plan, store, conversation_id)
        for query, pool in conversation.queries(set(conversation.questions)):
            expected = reference_path(query.vector, pool.vectors, 20)
            assert np.array_equal(mem_pursuit(query.vector, pool.vectors, 20).order, expected.order), query.id
            seen += 1
    assert seen == 1986

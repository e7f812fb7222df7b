"""How long do a report's statistics take?"""

from time import perf_counter, process_time
from typing import Any

import numpy as np
import polars as pl

from reports.comparisons import compare
from reports.rates import rates
from reports.results import EVIDENCE_METRICS, Arm, Results
from reports.tables import summarise

ARMS, QUESTIONS, SAMPLES = 40, 1540, 10_000
_CONVERSATIONS, _KINDS, _BUDGETS = 10, ("multi-hop", "temporal", "open-domain", "single-hop"), (10, 20)


def statistics(data: str | None, lake: str | None = None) -> dict[str, Any]:
    """Summarise and compare a run made up at random, with the report's own functions; `data` and `lake` are not used.

    All measures of a run with two judges: means, intervals of both kinds by question and by conversation, paired
    differences over all questions and each kind, tests, and the subsets without wrong labels. Returns name → value.
    """
    results = made_up(ARMS, QUESTIONS, SAMPLES)
    start, processor = perf_counter(), process_time()
    summarise(results)
    summarised = perf_counter()
    comparisons = compare(results)
    compared = perf_counter()
    rates(results)
    end = perf_counter()
    return {
        "arms, questions, resamples": f"{ARMS}, {QUESTIONS:,}, {SAMPLES:,}",
        "paired comparisons": len(comparisons),
        "estimates, s": round(summarised - start, 2),
        "comparisons, s": round(compared - summarised, 2),
        "rates, s": round(end - compared, 2),
        "all, s": round(end - start, 2),
        "all, processor s": round(process_time() - processor, 2),
    }


def made_up(arms: int, questions: int, samples: int) -> Results:
    """A run whose every cell is drawn at random, with rates and scores, two judges and wrong labels."""
    rng = np.random.default_rng(20261130)
    readers = ("hybrid", *(f"reader{i}" for i in range(1, -(-arms // len(_BUDGETS)))))
    named = [Arm(f"{reader}@k{k}", reader, f"k{k}", str(k), "turns", False) for k in _BUDGETS for reader in readers][
        :arms
    ]
    ids = [f"q{i}" for i in range(questions)]
    own = pl.DataFrame(
        {
            "question_id": ids,
            "conversation_id": [f"c{i * _CONVERSATIONS // questions}" for i in range(questions)],
            "kind": [_KINDS[i % len(_KINDS)] for i in range(questions)],
        }
    )
    cells = pl.DataFrame({"arm": [arm.label for arm in named]}).join(own, how="cross")
    draws = rng.random((len(EVIDENCE_METRICS) + 2, len(cells)))
    evidence = {
        name: draw.round(2) if "recall" in name else (draw < 0.5).astype(float)
        for name, draw in zip(EVIDENCE_METRICS, draws, strict=False)
    }
    whole = [pl.Series(name, rng.integers(1, 20, len(cells))) for name in ("records", "tokens", "calls")]
    other = [pl.Series("latency_ms", rng.random(len(cells))), pl.Series("stop_reason", ["budget"] * len(cells))]
    scores = {"graded": draws[-2].round(2), "binary": (draws[-1] < 0.5).astype(float)}
    verdicts = [
        cells.select("arm", "question_id", judge=pl.lit(judge), status=pl.lit("ok"), score=pl.Series(score))
        for judge, score in scores.items()
    ]
    empty = pl.DataFrame()
    return Results(
        "bench", "bench", "open", "bench", True, named, _KINDS, tuple(scores),
        cells.with_columns(*(pl.Series(name, draw) for name, draw in evidence.items()), *whole, *other),
        pl.concat(verdicts), own, empty, empty, {}, {}, {}, {}, seed=1, samples=samples,
        wrong_labels={id: "citation" if i % 3 else "answer" for i, id in enumerate(ids) if i % 10 == 0},
    )  # fmt: skip

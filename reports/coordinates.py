"""What does a cell of a published table ask of a run?"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

Source = Literal["evidence", "cost", "answers", "judge", "panel", "bench", "pursuit", "count"]


class Metric(NamedTuple):
    """`source` says which of a run's tables hold it, `column` where; `scale` makes the paper's unit of it."""

    head: str
    source: Source
    column: str
    scale: float = 100.0


METRICS: Mapping[str, Metric] = {
    "n": Metric("n", "count", "", 1),
    "er": Metric("ER", "evidence", "evidence_recall"),
    "cer": Metric("CER", "evidence", "complete_evidence"),
    "gold_hit": Metric("Gold Hit", "evidence", "gold_hit"),
    "turn_hit": Metric("Turn Hit", "evidence", "gold_hit"),
    "session_recall": Metric("Session recall", "evidence", "session_recall"),
    "complete_sessions": Metric("Complete sessions", "evidence", "complete_sessions"),
    "replaced": Metric("Replaced", "evidence", "replaced"),
    "calls": Metric("Calls", "cost", "calls", 1),
    "records": Metric("Records", "cost", "records", 1),
    "f1": Metric("F1", "answers", "stem_f1"),
    "judge": Metric("Judge", "judge", ""),
    "suff": Metric("Sufficient", "panel", ""),
    "mean_ms": Metric("Mean, ms", "bench", "mean ms", 1),
    "median_ms": Metric("Median, ms", "bench", "median ms", 1),
    "p95_ms": Metric("p95, ms", "bench", "p95 ms", 1),
    "adaptive_records": Metric("Adaptive records", "pursuit", "curve/adaptive/records", 1),
    "gold_closer": Metric("Gold closer", "pursuit", "reconstruction/all/gold closer"),
    "hybrid_closer": Metric("Hybrid closer", "pursuit", "reconstruction/all/hybrid closer"),
    "equal_residual": Metric("Equal", "pursuit", "reconstruction/all/equal"),
    "gold_advantage": Metric("Mean advantage", "pursuit", "reconstruction/all/mean advantage", 1),
    "preference_questions": Metric("Questions", "pursuit", "preference/gold in two or more sessions/n", 1),
    "missing_preferred": Metric(
        "Missing preferred", "pursuit", "preference/gold in two or more sessions/missing preferred"
    ),
    "comparator_preferred": Metric(
        "Comparator preferred", "pursuit", "preference/gold in two or more sessions/comparator preferred"
    ),
    "mean_preference": Metric(
        "Mean preference", "pursuit", "preference/gold in two or more sessions/mean preference", 1
    ),
}
STATISTICS: Mapping[str, str] = {
    "low": "low",
    "high": "high",
    "cluster-low": "low, clustered",
    "cluster-high": "high, clustered",
    "p": "p",
}
# A paper's type of question → the benchmark's own kinds; "overall" is all of them.
KINDS: Mapping[str, tuple[str, ...]] = {
    "overall": (),
    "multi-hop": ("multi-hop",),
    "temporal": ("temporal",),
    "open-domain": ("open-domain",),
    "single-hop": ("single-hop",),
    "multi-session": ("multi-session",),
    "temporal-reasoning": ("temporal-reasoning",),
    "knowledge-update": ("knowledge-update",),
    "single-session": ("single-session-user", "single-session-assistant"),
    "user": ("single-session-user",),
    "assistant": ("single-session-assistant",),
    "preference": ("single-session-preference",),
}
BENCHMARKS = ("locomo", "longmemeval", "beam")
# What the papers call a reader → how this project prints one that stands for it, as patterns; others are their own.
STAND_FOR: Mapping[str, str] = {
    "mragent_flat": r"mragent_(flat|scripted)(\(.*\))?",
    "bge-base": r"cross_encoder\(.*bge-reranker-base.*\)",
    "bge-large": r"cross_encoder\(.*bge-reranker-large.*\)",
    "bge-v2-m3": r"cross_encoder\(.*bge-reranker-v2-m3.*\)",
    "qwen3.5-0.8b": r"llm_pointwise\(.*qwen3\.5-0\.8b.*\)",
    "qwen3.5-2b": r"llm_pointwise\(.*qwen3\.5-2b.*\)",
    "qwen3.5-4b": r"llm_pointwise\(.*qwen3\.5-4b.*\)",
}
SYSTEM = "a system over its own store, which is no reader of this one"
ABSENT: Mapping[str, str] = {
    "com": "CoM over its own store is no reader here; com_flat is its form over turns",
    "mragent": "MRAgent over its own graph is no reader here; mragent_flat is its form over turns",
    "rsc": "the paper does not say how its learned completion is built",
    "rag": "the paper does not say what its RAG reads",
    **dict.fromkeys(("a_mem", "lightmem", "simplemem", "memoryos", "mem0", "memorybank", "memos"), SYSTEM),
}
_BUDGET = re.compile(r"[kt]\d+|C\d+")


@dataclass(frozen=True)
class Coordinates:
    """`arms`: none, one, or two whose paired difference is meant; `kinds` empty: all. Empty text: not said."""

    arms: tuple[str, ...] = ()
    metric: str = ""
    statistic: str = ""
    kinds: tuple[str, ...] = ()
    budget: str = ""
    benchmark: str = ""
    conversation: str = ""
    encoder: str = ""
    answerer: str = ""
    size: int = 0
    k: int = 0


def label(words: str) -> str:
    """What a row or a column is called: what stands before ": ", else its words with metrics and statistics named."""
    said, colon, _ = words.partition(": ")
    if colon:
        return said
    heads = {**{name: metric.head for name, metric in METRICS.items()}, **STATISTICS}
    return " ".join(heads.get(word, word.removeprefix("encoder=")) for word in words.split())


def read(*parts: str) -> Coordinates:
    """The coordinates that row, column and table say together; what a later part says stands.

    A word is a metric, a statistic, a kind, a benchmark, a budget, a conversation, a setting (`encoder=…`, `P=…`), a
    minus sign, or else a reader.
    """
    found: dict[str, Any] = {}
    for part in parts:
        meant = [_meaning(word) for word in part.rpartition(": ")[2].split() if word != "-"]
        own = dict(meant)
        if arms := tuple(word for name, word in meant if name == "arms"):
            own["arms"] = arms
        found |= own
    return Coordinates(**found)


def _meaning(word: str) -> tuple[str, Any]:
    """(coordinate, its value)."""
    name, equals, value = word.partition("=")
    if equals and name in ("encoder", "answerer"):
        return name, value
    if equals and name in ("P", "K"):
        return {"P": "size", "K": "k"}[name], int(value)
    for coordinate, words in (("metric", METRICS), ("statistic", STATISTICS), ("benchmark", BENCHMARKS)):
        if word in words:
            return coordinate, word
    if word in KINDS:
        return "kinds", KINDS[word]
    if _BUDGET.fullmatch(word):
        return "budget", word
    return ("conversation" if re.fullmatch(r"conv-\d+", word) else "arms"), word

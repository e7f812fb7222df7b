"""What may not be concluded from a run?"""

from collections.abc import Iterator, Mapping

import polars as pl

from reports.comparisons import Comparison, Contrast
from reports.grid import ALL, begun
from reports.rates import EVERY
from reports.results import Results
from reports.significance import EXACT_UNITS
from reports.tables import PRIMARY, Cell, Statistics, overall

FEW_CLUSTERS = 20


def limits(results: Results, statistics: Statistics, comparisons: Mapping[Contrast, Comparison]) -> Iterator[str]:
    """Sentences by rule: too few conversations, many comparisons, missing cells, wrong labels, offline programs."""
    yield from _few_clusters(statistics)
    yield from _multiplicity(results, comparisons)
    yield from _missing_cells(results, statistics)
    yield from _unjudged(results)
    yield from _wrong_labels(results)
    yield from _store_within_budget(results)
    if results.offline and results.judges:
        yield (
            "Answers and scores come from offline programs, not from language models: they compare arms "
            "within this run and stand beside no paper's judged accuracy."
        )


def _few_clusters(statistics: Statistics) -> Iterator[str]:
    clusters = max((each.clusters for each in statistics.estimates.values()), default=0)
    if clusters == 1:
        yield "All questions come from one conversation, so nothing can be said about other conversations."
    elif 1 < clusters < FEW_CLUSTERS:
        yield (
            f"The questions come from {clusters} conversations. Intervals over conversations rest on "
            f"{clusters} units and tend to be too narrow; what they leave open is open.{_least(clusters)}"
        )


def _least(clusters: int) -> str:
    if clusters > EXACT_UNITS:
        return ""
    return f" No p by conversation can be below {2 / 2**clusters:.3g}."


def _multiplicity(results: Results, comparisons: Mapping[Contrast, Comparison]) -> Iterator[str]:
    families = {each.family: each.tests for each in comparisons.values() if each.contrast.subset == EVERY}
    if max(families.values(), default=0) > 1:
        alone = " The declared comparison stands alone and needs none." if results.primary else ""
        alone += " Those declared beside it are a family of their own." if len(results.secondary) > 1 else ""
        yield (
            f"Holm's correction holds within a family: the arms against one baseline by one measure, or one pair's "
            f"kinds of questions. There are {len(families):,} families, and none is corrected for the others.{alone}"
        )


def _missing_cells(results: Results, statistics: Statistics) -> Iterator[str]:
    questions = overall(results)
    left_out = results.questions.height - questions.height
    if left_out:
        yield (
            f"{left_out:,} questions of kind {listed(list(results.apart))} have rows of their own and stay "
            f"out of every overall number."
        )
    with_gold = questions.filter(pl.col("gold_turn_ids").list.len() > 0).height
    without = questions.height - with_gold
    if without:
        yield (
            f"{without:,} of {questions.height:,} questions name no gold turn and are in no evidence "
            f"measure; they are in cost, latency and, where a judge expects them, scores."
        )
    short = {arm.label: statistics.estimates[Cell(arm.label, ALL, PRIMARY)].n for arm in results.arms}
    lacking = {label: with_gold - n for label, n in short.items() if n < with_gold}
    if with_gold and list(lacking.values()) == [with_gold] * len(results.arms):
        yield f"No cell of any arm is held for the {with_gold:,} questions with gold: nothing is measured yet."
    elif lacking:
        alike = len(lacking) == len(results.arms) > 1 and len(set(lacking.values())) == 1
        worst = listed([f"{label} ({count:,})" for label, count in lacking.items()])
        worst = f"every arm ({next(iter(lacking.values())):,} each)" if alike else worst
        yield (
            f"Of {with_gold:,} questions with gold, cells are missing of {worst}: their means are over fewer "
            f"questions, and no arm is marked best where denominators differ."
        )


def _unjudged(results: Results) -> Iterator[str]:
    for judge in results.judges:
        expected = results.verdicts.filter(pl.col("judge") == judge).with_columns(begun=begun())
        never = expected.filter(~pl.col("begun"))["arm"].unique(maintain_order=True).to_list()
        if never:
            arms = "any arm" if len(never) == len(results.arms) else listed(never)
            yield f"{judge} has judged no answer of {arms}: no score is given."
        total = expected.filter("begun")
        open_cells = total.filter(pl.col("status") != "ok").height
        if open_cells:
            yield (
                f"{judge} has no score for {open_cells:,} of {total.height:,} cells: strict means count them as 0, "
                f"means over judged cells leave them out."
            )


def _wrong_labels(results: Results) -> Iterator[str]:
    faults = [results.wrong_labels.get(question) for question in results.questions["question_id"]]
    answers, citations = faults.count("answer"), faults.count("citation")
    if answers or citations:
        yield (
            f"Of {len(faults):,} questions, {answers:,} are known to have a wrong gold answer and {citations:,} more "
            f"wrong gold turns alone. They stay in every number but those that say that they leave them out."
        )


def _store_within_budget(results: Results) -> Iterator[str]:
    sizes = results.records.group_by("store", "conversation_id").len()
    for budget in sorted({int(a.k) for a in results.arms if a.k.isdigit()}):
        small = sizes.filter(pl.col("len") <= budget)["conversation_id"].n_unique()
        if small:
            yield (
                f"At {budget} records the budget covers the whole store of {small} "
                f"conversation{'s' if small != 1 else ''}: there is nothing to select there."
            )


def listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]

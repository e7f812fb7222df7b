"""Which arms differ, on which questions, and is it shown?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from reports.grid import ALL, Grid
from reports.intervals import Floats, Integers, bootstrap_means
from reports.rates import EVERY, binary_measures, kept_rows, mean, ranking_columns, subsets_of
from reports.results import Results
from reports.significance import cohen_h, detectable, holm, mcnemar, odds_ratio, sign_flip
from reports.tables import Estimate, baseline_of, estimates_of, resamples_of

LEVEL = 0.05
DECLARED, SECONDARY = "declared", "declared beside it"
ROUNDING = 1e-9  # a sum of fractions that is 0 on paper need not be 0 in floating point
Ends = tuple[float | None, float | None]
Verdict = Literal["above", "below", "unclear", "equal", "unknown"]


class Contrast(NamedTuple):
    """What is compared: `arm` minus `baseline` by `metric`, over one kind of questions (or `all`) of one subset."""

    arm: str
    baseline: str
    kind: str
    metric: str
    subset: str = EVERY


@dataclass(frozen=True)
class Comparison:
    """A paired difference over the questions defined for both arms; what is missing or undefined is None.

    `before, after`: means of the baseline and of the arm on these questions. `difference`: with percentile intervals;
    `bca`, `cluster_bca`: low and high of the bias-corrected and accelerated ones. `wins, losses`: questions on which
    the arm is higher, lower. `test`: `mcnemar` (exact) where the metric knows 0 and 1 alone, else `sign-flip`.
    `p`: its p over questions, `holm`: adjusted among the `tests` of its `family`; `cluster_p`: of flipping whole
    conversations, not adjusted. `cohen_h`, `odds_ratio` (wins for each loss) of rates, `d_z` (mean / sd of the
    differences) of scores. `detectable`, `cluster_detectable`: the smallest true difference found in 80 % of samples of
    this size.
    """

    contrast: Contrast
    difference: Estimate
    before: float | None
    after: float | None
    wins: int
    losses: int
    test: Literal["mcnemar", "sign-flip"]
    p: float | None
    cohen_h: float | None
    odds_ratio: float | None
    d_z: float | None
    bca: Ends = (None, None)
    cluster_bca: Ends = (None, None)
    cluster_p: float | None = None
    detectable: float | None = None
    cluster_detectable: float | None = None
    family: str = ""
    holm: float | None = None
    tests: int = 0

    @property
    def verdict(self) -> Verdict:
        """`above` or `below` only where no interval reaches 0 and Holm's p is at most 0.05."""
        side = verdict(self.difference)
        if side in ("above", "below") and (self.holm is None or self.holm > LEVEL):
            return "unclear"
        return side


def verdict(difference: Estimate) -> Verdict:
    """Which side of 0 a paired difference is on: `above` or `below` only if no interval of it reaches 0."""
    if difference.value is None or difference.low is None or difference.high is None:
        return "unknown"
    lows = [end for end in (difference.low, difference.cluster_low) if end is not None]
    highs = [end for end in (difference.high, difference.cluster_high) if end is not None]
    if min(lows) == max(highs) == 0:
        return "equal"
    return "above" if min(lows) > ROUNDING else "below" if max(highs) < -ROUNDING else "unclear"


def compare(results: Results) -> dict[Contrast, Comparison]:
    """Every arm against its baseline, and every declared pair, by every measure that ranks.

    Over all questions, each kind of them, and (all kinds together) the subsets without known wrong labels. Arms that
    use gold are compared with nobody. Families: the declared comparison alone; those declared beside it; the other arms
    against one baseline by one measure; the kinds of one pair by one measure. Resamples are those of `summarise`, so
    that intervals agree.
    Raises `ValueError` as `reports.tables.summarise` does.
    """
    grid = Grid.of(results)
    columns = ranking_columns(results, grid)
    found: list[Comparison] = []
    for subset in subsets_of(results):
        for kind in (ALL, *results.kinds) if subset == EVERY else (ALL,):
            contrasts = [Contrast(*pair, kind, metric, subset) for pair in _pairs(results) for metric in columns]
            sides = [(columns[each.metric][each.arm], columns[each.metric][each.baseline]) for each in contrasts]
            rows = kept_rows(results, grid, kind, subset)
            found += _compared(results, contrasts, sides, grid.conversations, rows, binary_measures(columns))
    return {each.contrast: each for each in _in_families(found, declared(results))}


def compare_runs(one: Results, other: Results) -> dict[Contrast, Comparison]:
    """Every arm that two runs share, `other` minus `one`, over their common questions, by the measures of both.

    Families: all shared arms by one measure; the kinds of one arm by one measure. Seed and samples are those of `one`.
    Raises `ValueError` where a common question belongs to another conversation or kind in the other run.
    """
    common = one.questions.join(other.questions, on=["question_id", "conversation_id", "kind"], how="semi")
    if len(common) < one.questions.join(other.questions, on="question_id", how="semi").height:
        raise ValueError("the same conversation and kind of each common question expected in both runs")
    ids = common.select("question_id")
    before, after = (_asked(each, ids) for each in (one, other))
    grid = Grid.of(before)
    first, second = ranking_columns(before, grid), ranking_columns(after, Grid.of(after))
    labels = [arm.label for arm in one.arms if any(arm.label == each.label for each in other.arms)]
    metrics = [metric for metric in first if metric in second]
    binary = binary_measures(first) & binary_measures(second)
    found: list[Comparison] = []
    for kind in (ALL, *dict.fromkeys(common["kind"])):
        contrasts = [Contrast(label, f"{label} of {one.name}", kind, metric) for label in labels for metric in metrics]
        sides = [(second[each.metric][each.arm], first[each.metric][each.arm]) for each in contrasts]
        found += _compared(before, contrasts, sides, grid.conversations, grid.rows(kind), binary)
    families = [replace(each, family=_run_family(each.contrast, one.name)) for each in found]
    return {each.contrast: each for each in _adjusted(families)}


def comparison_rows(comparisons: Mapping[Contrast, Comparison]) -> pl.DataFrame:
    """comparisons.csv: a row for each comparison, by the names of `Comparison`; null is missing or undefined."""
    rows = []
    for each in comparisons.values():
        own = {field.name: getattr(each, field.name) for field in fields(Comparison)}
        intervals = {name: own.pop(name) for name in ("bca", "cluster_bca")}
        ends = {f"{name}_{end}": pair[i] for name, pair in intervals.items() for i, end in enumerate(("low", "high"))}
        found = own.pop("difference")
        means = {"difference" if name == "value" else name: getattr(found, name) for name in _ESTIMATE}
        rows.append({**own.pop("contrast")._asdict(), **means, **ends, **own, "verdict": each.verdict})
    return pl.DataFrame(rows, infer_schema_length=None)


_ESTIMATE = tuple(field.name for field in fields(Estimate))


def _pairs(results: Results) -> list[tuple[str, str]]:
    """(arm, baseline), the declared ones among them."""
    seeing = {arm.label for arm in results.arms if arm.uses_gold}
    pairs = [pair for pair in baseline_of(results.arms).items() if not seeing & set(pair)]
    return list(dict.fromkeys([*pairs, *((each.arm, each.baseline) for each in declared(results))]))


def _compared(
    results: Results,
    contrasts: Sequence[Contrast],
    sides: Sequence[tuple[Floats, Floats]],
    conversations: Integers,
    rows: Integers,
    binary: set[str],
) -> Iterator[Comparison]:
    """The comparisons of one kind and subset, without their families. `sides`: columns of the arm and its baseline."""
    if not contrasts:
        return
    after, before = (np.column_stack([side[i][rows] for side in sides]) for i in (0, 1))
    values = after - before
    clusters = conversations[rows]
    where = contrasts[0].kind if contrasts[0].subset == EVERY else f"{contrasts[0].kind}/{contrasts[0].subset}"
    means = bootstrap_means(values, clusters, samples=results.samples, rng=resamples_of(results.seed, where))
    counted = np.array([each.metric in binary for each in contrasts])
    flipped, clustered = _flipped(values, clusters, counted, results, where)
    for i, (each, difference) in enumerate(zip(contrasts, estimates_of(means), strict=True)):
        both = ~np.isnan(values[:, i])
        known = (values[both, i], after[both, i], before[both, i])
        yield replace(
            _tested(each, difference, known, bool(counted[i]), float(flipped[i])),
            bca=(_number(means.bca_low[i]), _number(means.bca_high[i])),
            cluster_bca=(_number(means.cluster_bca_low[i]), _number(means.cluster_bca_high[i])),
            cluster_p=float(clustered[i]) if difference.clusters > 1 else None,
            detectable=_detectable(means.error[i]),
            cluster_detectable=_detectable(means.cluster_error[i]),
        )


def _flipped(
    values: Floats, clusters: Integers, counted: NDArray[np.bool_], results: Results, where: str
) -> tuple[Floats, Floats]:
    """(c,) p of flipping the signs of questions, NaN for rates, and of whole conversations."""
    rng = resamples_of(results.seed, f"signs of {where}")
    flipped = np.full(values.shape[1], np.nan)
    flipped[~counted] = sign_flip(values[:, ~counted], samples=results.samples, rng=rng)
    codes = np.unique(clusters)
    summed = [np.nansum(values[clusters == code], axis=0) for code in codes]
    sums = np.array(summed).reshape(len(codes), values.shape[1])  # also of no question
    return flipped, sign_flip(sums, samples=results.samples, rng=rng)


def _tested(
    contrast: Contrast, difference: Estimate, known: tuple[Floats, Floats, Floats], is_rate: bool, flipped: float
) -> Comparison:
    """What the defined pairs alone tell: means, wins, test and effect size. `known`: differences, after, before."""
    values, after, before = known
    wins, losses = int((values > ROUNDING).sum()), int((values < -ROUNDING).sum())
    one, other = mean(after), mean(before)
    p = mcnemar(wins, losses) if is_rate else flipped
    return Comparison(
        contrast,
        difference,
        before=other,
        after=one,
        wins=wins,
        losses=losses,
        test="mcnemar" if is_rate else "sign-flip",
        p=p if len(values) else None,
        cohen_h=cohen_h(one, other) if is_rate and one is not None and other is not None else None,
        odds_ratio=odds_ratio(wins, losses) if is_rate else None,
        d_z=None if is_rate else _standardised(values),
    )


def declared(results: Results) -> dict[Contrast, str]:
    """What the protocol said beforehand that it is about: each contrast over all questions → its family."""
    beside = {Contrast(arm, baseline, ALL, measure): SECONDARY for arm, baseline, measure in results.secondary}
    if not results.primary:
        return beside
    first = Contrast(results.primary[1], results.primary[0], ALL, results.metric)
    return {first: DECLARED, **{each: family for each, family in beside.items() if each != first}}


def _in_families(found: Sequence[Comparison], declared: Mapping[Contrast, str]) -> list[Comparison]:
    """The comparisons with Holm's p, each adjusted within its own family."""
    return _adjusted([replace(each, family=_family(each.contrast, declared)) for each in found])


def _family(contrast: Contrast, declared: Mapping[Contrast, str]) -> str:
    within = "" if contrast.subset == EVERY else f", {contrast.subset}"
    if family := declared.get(contrast._replace(subset=EVERY)):
        return f"{family}{within}"
    if contrast.kind != ALL:
        return f"kinds of {contrast.arm} against {contrast.baseline}, {contrast.metric}{within}"
    return f"arms against {contrast.baseline}, {contrast.metric}{within}"


def _run_family(contrast: Contrast, name: str) -> str:
    if contrast.kind != ALL:
        return f"kinds of {contrast.arm} against {name}, {contrast.metric}"
    return f"arms against {name}, {contrast.metric}"


def _adjusted(found: Sequence[Comparison]) -> list[Comparison]:
    members: dict[str, list[int]] = {}
    for place, each in enumerate(found):
        members.setdefault(each.family, []).append(place)
    adjusted = list(found)
    for places in members.values():
        ps = [found[place].p for place in places]
        tests = sum(p is not None for p in ps)
        for place, p in zip(places, holm(ps), strict=True):
            adjusted[place] = replace(found[place], holm=p, tests=tests)
    return adjusted


def _asked(results: Results, ids: pl.DataFrame) -> Results:
    """The run over these questions alone, in their order."""
    questions = ids.join(results.questions, on="question_id", maintain_order="left")
    cells, verdicts = (frame.join(ids, on="question_id", how="semi") for frame in (results.cells, results.verdicts))
    return replace(results, questions=questions, cells=cells, verdicts=verdicts)


def _standardised(column: Floats) -> float | None:
    """Mean over standard deviation; None where nothing varies."""
    spread = float(column.std(ddof=1)) if len(column) > 1 else 0.0
    return float(column.mean()) / spread if spread > ROUNDING else None


def _detectable(error: float) -> float | None:
    return None if np.isnan(error) or error <= ROUNDING else detectable(float(error))


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)

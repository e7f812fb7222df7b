"""What did this run find where the papers print a number?"""

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.coordinates import METRICS, Coordinates, label, read
from reports.grid import ALL
from reports.intervals import Integers, bootstrap_means
from reports.paper_lookup import Lookup, Ran, Values
from reports.published import FIRST_SET, Printed
from reports.results import Results
from reports.significance import mcnemar
from reports.tables import Estimate, estimates_of

UNPUBLISHED = "not published"
OFFLINE_ANSWERS = "answers of an offline program: no difference is taken"


@dataclass(frozen=True)
class PaperCell:
    """One number of ours beside a published one, in the paper's unit.

    `why`: what there is to say of a number that lacks, or of a difference that is not taken. `arm`: whose it is.
    """

    ours: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    published: float | None = None
    why: str = ""
    arm: str = ""
    comparable: bool = True

    @property
    def difference(self) -> float | None:
        """Ours less theirs; None where either lacks or the two are not of a kind."""
        known = self.ours is not None and self.published is not None and self.comparable
        return self.ours - self.published if known else None  # type: ignore[operator]


@dataclass(frozen=True)
class PaperTable:
    """`rows`: (label, a cell for each of `heads`). `differs`: (what, in the paper, here)."""

    name: str
    title: str
    source: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[PaperCell, ...]], ...]
    differs: tuple[tuple[str, str, str], ...]

    @property
    def cells(self) -> Iterator[PaperCell]:
        """All cells, row by row."""
        return (cell for _, cells in self.rows for cell in cells)


def build(ran: Ran, tables: Sequence[Printed]) -> list[PaperTable]:
    """Every table with this run's numbers. Intervals resample questions, or conversations where the paper did.

    Resamples depend on the run's seed and on which questions a cell is about.
    """
    lookup = Lookup(ran)
    asked = {
        (table.name, i, j): read(str(table.setting.get("benchmark", "")), table.of, words, column)
        for table in tables
        for i, (words, _) in enumerate(table.rows)
        for j, column in enumerate(table.columns)
    }
    found = {key: lookup.find(at) for key, at in asked.items()}
    estimates = _estimates(ran.results, {key: own for key, own in found.items() if isinstance(own, Values)})

    def cell(key: tuple[str, int, int], printed: float | None) -> PaperCell:
        own = found[key]
        if isinstance(own, Values):
            return _cell(ran, asked[key], own, estimates[key], printed)
        return PaperCell(own.ours, None, None, own.n, printed, own.why, own.arm, own.comparable)

    return [
        PaperTable(
            table.name,
            table.title,
            table.source,
            tuple(map(label, table.columns)),
            rows := tuple(
                (label(words), tuple(cell((table.name, i, j), number) for j, number in enumerate(numbers)))
                for i, (words, numbers) in enumerate(table.rows)
            ),
            tuple(_differs(ran, table, asked, rows)),
        )
        for table in tables
    ]


def _cell(ran: Ran, at: Coordinates, own: Values, found: Estimate, printed: float | None) -> PaperCell:
    scale = METRICS[at.metric].scale
    ends = {"low": found.low, "high": found.high, "cluster-low": found.cluster_low, "cluster-high": found.cluster_high}
    value = ends.get(at.statistic, found.value)
    if value is None:
        return PaperCell(published=printed, why=_undefined(at, own.rows), arm=own.arm)
    low, high = (None if end is None or at.statistic else end * scale for end in (found.low, found.high))
    why = _unlike(ran, at, own, found.n)
    return PaperCell(
        mcnemar(int((own.values > 0).sum()), int((own.values < 0).sum())) if at.statistic == "p" else value * scale,
        low,
        high,
        n=found.n,
        published=printed,
        why=why,
        arm=own.arm,
        comparable=not why,
    )


def _unlike(ran: Ran, at: Coordinates, own: Values, n: int) -> str:
    """Why a number may not be set against the paper's; empty where it may."""
    source = METRICS[at.metric].source
    if source == "answers" and ran.offline_answers:
        return OFFLINE_ANSWERS
    gold = ran.results.questions["gold_turn_ids"].list.len().fill_null(0).to_numpy() > 0
    annotated = source == "evidence" and at.metric not in ("turn_hit", "replaced")
    expected = int(gold[own.rows].sum()) if annotated else len(own.rows)
    if n < expected and source != "panel":  # what a panel finds uncertain leaves the denominator
        return f"known for {n:,} of {expected:,} questions: no difference is taken of a part"
    return ""


def _undefined(at: Coordinates, rows: Integers) -> str:
    if at.statistic:
        return "too few questions or conversations for an interval"
    return "not computed yet: `suffice run` it" if len(rows) else "no such questions in this run"


def _estimates(
    results: Results, found: Mapping[tuple[str, int, int], Values]
) -> Mapping[tuple[str, int, int], Estimate]:
    """All cells about the same questions see the same resamples."""
    codes = {c: i for i, c in enumerate(results.questions["conversation_id"].unique(maintain_order=True))}
    conversations = np.array([codes[c] for c in results.questions["conversation_id"]], dtype=np.int64)
    groups: dict[bytes, list[tuple[str, int, int]]] = {}
    for key, own in found.items():
        groups.setdefault(own.rows.tobytes(), []).append(key)
    estimates: dict[tuple[str, int, int], Estimate] = {}
    for keys in groups.values():
        rows = found[keys[0]].rows
        rng = np.random.default_rng([results.seed, zlib.crc32(ALL.encode())])
        values = np.column_stack([found[key].values for key in keys])
        means = bootstrap_means(values, conversations[rows], samples=results.samples, rng=rng)
        estimates |= dict(zip(keys, estimates_of(means), strict=True))
    return estimates


def _differs(
    ran: Ran,
    table: Printed,
    asked: Mapping[tuple[str, int, int], Coordinates],
    rows: Sequence[tuple[str, Sequence[PaperCell]]],
) -> Iterator[tuple[str, str, str]]:
    """What was not the same, as far as this run has numbers: questions, store, encoder, answerer, judges, arms."""
    known = [
        (asked[table.name, i, j], METRICS[asked[table.name, i, j].metric].source, cell)
        for i, (_, cells) in enumerate(rows)
        for j, cell in enumerate(cells)
        if cell.ours is not None
    ]
    used = {source for _, source, _ in known}
    counts = [cell.n for _, source, cell in known if source not in ("bench", "count")]
    stores = dict.fromkeys(arm.store for arm in ran.results.arms)
    answered = bool(used & {"answers", "judge"})
    ours = {
        "questions": f"{max(counts):,}" if counts else "",
        "store": "; ".join(dict.fromkeys(ran.stores.get(name, name) for name in stores)) if counts else "",
        "encoder": "; ".join(dict.fromkeys(ran.encoders.values())) if counts else "",
        "answerer": ran.answerer if answered else "",
        "judge": ran.judge if "judge" in used else "",
        "panel": ran.panel if "panel" in used else "",
        "machine": "this machine, one thread" if "bench" in used else "",
    }
    for what, here in ours.items():
        there = table.setting.get(what, "not said")
        there = f"{there:,}" if isinstance(there, int) else str(there)
        if here and here.casefold() != there.casefold():
            yield what, there, here
    told = {
        (_as_the_paper(at), cell.arm) for at, source, cell in known if cell.arm and source not in ("bench", "pursuit")
    }
    yield from (("arm", wanted, arm) for wanted, arm in sorted(told) if wanted != arm)


def _as_the_paper(at: Coordinates) -> str:
    """The arms of a cell as this project would print what the paper ran; its completion begins with `FIRST_SET`."""
    budget = f"@{at.budget}" if at.budget else ""
    arms = [own if "@" in own else own + budget for own in at.arms]
    return " - ".join(re.sub(r"^(bfr_\w+)(?=@)", rf"\1(init={FIRST_SET})", own) for own in arms)

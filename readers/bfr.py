"""The readers of BFR: a first set of evidence, completed in rounds under a budget."""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from readers.completion import (
    Action,
    Policy,
    Schedule,
    State,
    by_name,
    by_rank,
    by_session,
    by_time,
    by_words,
    complete,
)
from readers.decomposition import by_model, by_rules
from readers.requirements import Requirement
from readers.router import Router, read_note, share, words
from readers.types import Access, Budget, Evidence, Note, Pool, Query, Reader, asks_model

_SOURCE = "Li et al. 2026, Relevance Is Not Sufficiency (arXiv 2610.09348)"
_CUE = 180
_MONTH = 15.0

Needs = tuple[Requirement, ...]


@dataclass(frozen=True)
class BfrText:
    """The next `page` records that a first set lacks, page after page, until the budget ends: BFR-Text.

    `init`: the reader of the first set, one that takes no parameters and spends no calls. `init_records`: its
    records; the paper grounds FCA-MS to ten turns. `page`: records kept a round; `depth`: records a read returns, at
    least `page`. `view`: `text` reads the store's text view with the question; `ranking` pages through the
    order of `init` itself, so that the evidence is the top of that order, whatever the page.
    Raises `ValueError` for an unknown or completing `init`, an unknown `view` or a bound out of range.
    Inferred, because no source says: the paper's point C6 names three rounds but realises four pages of eight, cut to
    30, so the points of `tasks.arms` give as many rounds as calls; a triple such as `r3c6n30` sets them apart.
    """

    init: str = "hybrid"
    init_records: int = 10
    page: int = 8
    depth: int = 12
    view: str = "text"

    completes: ClassVar[bool] = True
    title: ClassVar[str] = "A first set, then further pages of a text search for the question"
    source: ClassVar[str] = f"{_SOURCE}, §4.4 and Algorithm 2: BFR-Text"

    def __post_init__(self) -> None:
        _check(self, init_records=self.init_records, page=self.page, depth=self.depth)
        if self.view not in ("text", "ranking"):
            raise ValueError(f"view (text or ranking) expected, {self.view!r} found")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        first = first_set(self, query, pool, budget, access)
        schedule: Schedule = (question,)
        if self.view == "ranking":
            page = by_rank(self.init, init_of(self).read(query, pool, Budget(), access).ids)
            schedule = (lambda state: page,)
        policy = Policy(_fixed(schedule), lambda state, found: found[: self.page], max(self.depth, self.page))
        return complete(query, first, self.init, policy, budget, access)


@dataclass(frozen=True)
class BfrMv:
    """A first set, then rounds of text, entity and session reads, kept by relevance and novelty: BFR-MV.

    `init`, `init_records`, `depth`: as in BFR-Text. The entity is the first person that the question names, the
    session that of the record appended last when the round began; without one the read is skipped and is no call.
    Raises `ValueError` for an unknown or completing `init` or a bound out of range.
    Inferred, because the paper keeps "at most k_keep" a round but its sizes grow by up to 20: `keep` is k_keep, the
    quota of the router's first two tiers, and `keep_hard` the cap of a round. The router's weights of coverage and
    bridge are 0, as in the release's Q-Fixed. C9 holds 50 new records (the point in `tasks.arms`).
    """

    init: str = "hybrid"
    init_records: int = 10
    keep: int = 8
    keep_hard: int = 20
    depth: int = 12

    completes: ClassVar[bool] = True
    title: ClassVar[str] = "A first set, then text, entity and session reads in fixed turn"
    source: ClassVar[str] = f"{_SOURCE}, §4.4 and Algorithm 2: BFR-MV"

    def __post_init__(self) -> None:
        _check(self, init_records=self.init_records, keep=self.keep, keep_hard=self.keep_hard, depth=self.depth)

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        first = first_set(self, query, pool, budget, access)
        router = Router(self.keep, self.keep_hard, coverage=0.0, bridge=0.0)

        def retain(state: State, found: tuple[Note, ...]) -> list[Note]:
            return router.retain(state.question, (), state.evidence, found)

        policy = Policy(_fixed((question, first_person, latest_session)), retain, self.depth)
        return complete(query, first, self.init, policy, budget, access)


@dataclass(frozen=True)
class BfrState:
    """BFR-MV whose text cue names what is still missing, kept also by missing coverage and bridges: BFR-State.

    `covered`: a requirement is covered by one record that holds this share of its words. Other parameters as in
    BFR-MV. Requirements come from rules (`readers.requirements`).
    Raises `ValueError` for an unknown or completing `init` or a bound out of range.
    Inferred, because the release has switches and no arm of this name: the schedule is fixed and never stops early
    (`BfrAdaptive` chooses and stops). `keep_hard` as in BFR-MV.
    """

    init: str = "hybrid"
    init_records: int = 10
    keep: int = 8
    keep_hard: int = 20
    depth: int = 12
    covered: float = 0.25

    completes: ClassVar[bool] = True
    title: ClassVar[str] = "A first set, then fixed reads steered by the requirements still missing"
    source: ClassVar[str] = f"{_SOURCE}, appendix I: BFR-State"

    def __post_init__(self) -> None:
        _check(self, init_records=self.init_records, keep=self.keep, keep_hard=self.keep_hard, depth=self.depth)
        _check_share("covered", self.covered)

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        first, needs = first_set_and_needs(self, query, pool, budget, access)
        router = Router(self.keep, self.keep_hard)

        def retain(state: State, found: tuple[Note, ...]) -> list[Note]:
            return router.retain(state.question, missing(state, needs, self.covered), state.evidence, found)

        def question_and_missing(state: State) -> Action:
            return by_words(" ".join([state.question, *missing(state, needs, self.covered)[:1]])[:_CUE])

        policy = Policy(_fixed((question_and_missing, first_person, latest_session)), retain, self.depth)
        return complete(query, first, self.init, policy, budget, access)


@dataclass(frozen=True)
class BfrAdaptive:
    """BFR-State that chooses its reads by the evidence and stops when nothing is missing: BFR-Adaptive.

    `hypotheses`: reads chosen a round, of at most eight proposed from the question, the missing requirement and the
    evidence, by confidence + .2 · the share of the question's words they hold + .1 if evidence suggested them.
    `passes`: each round also reads the entity and the session views. `certain`: from the second round on, stop where
    nothing is missing and the uncertainty is below this. Other parameters as in BFR-State.
    Raises `ValueError` for an unknown or completing `init` or a bound out of range.
    Inferred, because the paper names the variant and the release has switches: all of them are on (`passes`). The
    release's hybrid view fuses several reads in one call; here such a hypothesis reads the text view with its words.
    Its temporal hypothesis reads the records within 15 days of the first dated record of the evidence, for the
    release's same month. Its uncertainty counts contradictions and the entropy of beliefs; see `uncertainty`.
    """

    init: str = "hybrid"
    init_records: int = 10
    keep: int = 8
    keep_hard: int = 20
    depth: int = 12
    covered: float = 0.25
    hypotheses: int = 2
    passes: bool = True
    certain: float = 0.20

    completes: ClassVar[bool] = True
    title: ClassVar[str] = "A first set, then reads chosen by the evidence, until nothing seems missing"
    source: ClassVar[str] = f"{_SOURCE}, appendix I: BFR-Adaptive"

    def __post_init__(self) -> None:
        _check(
            self,
            init_records=self.init_records,
            keep=self.keep,
            keep_hard=self.keep_hard,
            depth=self.depth,
            hypotheses=self.hypotheses,
        )
        _check_share("covered", self.covered)
        _check_share("certain", self.certain)

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        first, needs = first_set_and_needs(self, query, pool, budget, access)
        router = Router(self.keep, self.keep_hard)

        def plan(state: State) -> Iterator[Action | None]:
            yield from chosen(state, missing(state, needs, self.covered), self.hypotheses)
            if self.passes:
                yield first_person(state)
                yield likely_session(state)

        def retain(state: State, found: tuple[Note, ...]) -> list[Note]:
            return router.retain(state.question, missing(state, needs, self.covered), state.evidence, found)

        def satisfied(state: State) -> bool:
            lacking = missing(state, needs, self.covered)
            return state.round > 0 and not lacking and uncertainty(state, needs, lacking) < self.certain

        return complete(query, first, self.init, Policy(plan, retain, self.depth, satisfied), budget, access)


# Cues ----------------------------------------------------------------------------------------------------


def question(state: State) -> Action:
    """The text view with the question's own words."""
    return by_words(state.question)


def first_person(state: State) -> Action | None:
    """The entity view of the first person that the question names."""
    named = persons(state.question)
    return by_name(named[0]) if named else None


def latest_session(state: State) -> Action | None:
    """The session of the record that was appended last."""
    return by_session(state.evidence[-1].id) if state.evidence else None


def likely_session(state: State) -> Action | None:
    """The session of the first of eight records that names a person of the question, else of the last appended."""
    named = [person.lower() for person in persons(state.question)]
    for note in state.evidence[:8]:
        if any(person in f"{note.text} {note.speaker}".lower() for person in named):
            return by_session(note.id)
    return latest_session(state)


def chosen(state: State, lacking: Sequence[str], most: int) -> list[Action]:
    """The `most` best of at most eight hypothetical reads; ties go to the one proposed first."""
    asked = frozenset(_content(state.question))
    ranked = sorted(
        list(_hypotheses(state, lacking))[:8],
        key=lambda each: -(each[0] + 0.2 * share(asked, frozenset(_content(each[2].cue))) + 0.1 * each[1]),
    )
    return [action for _, _, action in ranked[:most]]


def _hypotheses(state: State, lacking: Sequence[str]) -> Iterator[tuple[float, bool, Action]]:
    """Reads with their confidence, and whether the evidence suggested them."""
    named, focus = persons(state.question)[:2], _content(state.question)
    needed = _content(lacking[0])[:4] if lacking else []
    yield 0.90, False, by_words(state.question[:_CUE])
    yield 0.91, False, _joined(named, focus[:5])
    if needed:
        yield 0.88, False, _joined(named, focus[:3], needed)
    for name in named:
        yield 0.70, False, by_name(name)
    if state.evidence:
        first = state.evidence[0]
        said = [word for word in _content(first.text) if word not in focus][:2]
        yield 0.92, True, _joined([first.speaker], focus[:2], said, needed[:2])
        yield 0.86, True, _joined([first.speaker], focus[:3])
        yield from ((0.80, True, by_time(note.time, _MONTH)) for note in _dated(state.evidence)[:1])
        yield 0.75, True, by_session(first.id)


def _joined(*parts: Sequence[str]) -> Action:
    return by_words(" ".join(word for part in parts for word in part)[:_CUE])


def _dated(evidence: Sequence[Note]) -> list[Note]:
    return [note for note in evidence if not math.isnan(note.time)]


# What is missing -----------------------------------------------------------------------------------------

_NO_NAMES = frozenset(
    re.findall(
        r"\w+",
        """
    What Which When Where Who Whom Whose How Why Does Did Has Have Had Are Was Were The And But For Can Could Would
    Should Will Shall May Might Must Not From With About After Before During Since Until Speaker Image January February
    March April June July August September October November December Monday Tuesday Wednesday Thursday Friday Saturday
    Sunday
        """,
    )
)
_PLAIN = frozenset(
    re.findall(
        r"\w+",
        """
    the and for with that this from have been were what when where which about into your their they them said says
    just like also does will would could should really keep yeah okay hey wow both how who why did was are you got any
        """,
    )
)


def persons(asked: str) -> list[str]:
    """The capitalised words of a question that may be names, in order."""
    return [word for word in dict.fromkeys(re.findall(r"\b[A-Z][a-z]{2,}\b", asked)) if word not in _NO_NAMES]


def missing(state: State, needs: Needs, covered: float) -> list[str]:
    """The texts of the requirements of which no one record holds the share `covered` of the words."""
    return [need.text for need in needs if _held(need.text, state.evidence) < covered]


def uncertainty(state: State, needs: Needs, lacking: Sequence[str]) -> float:
    """.35 · missing share + .25 · (1 − confidence) + .20 · gaps / 6 + .10, in [0, 1].

    confidence = .45 · covered share + .35 · the mean overlap of the eight records nearest to the question
    + .20 · records / 10 − .25 · missing share. Gaps are the missing requirements and the persons that no record
    names. The .10 stands for the release's entropy of beliefs, which is near its maximum; contradictions are left
    out.
    """
    lacked = len(lacking) / len(needs)
    asked = frozenset(words(state.question))
    nearest = sorted((share(asked, read_note(note).words) for note in state.evidence), reverse=True)[:8]
    near = sum(nearest) / len(nearest) if nearest else 0.0
    confidence = 0.45 * (1 - lacked) + 0.35 * near + 0.20 * min(len(state.evidence) / 10, 1.0) - 0.25 * lacked
    text = " ".join(f"{note.text} {note.speaker}" for note in state.evidence).lower()
    gaps = len(lacking) + sum(person.lower() not in text for person in persons(state.question))
    return min(1.0, 0.35 * lacked + 0.25 * (1 - max(0.0, confidence)) + 0.20 * min(gaps / 6, 1.0) + 0.10)


def _held(need: str, evidence: Sequence[Note]) -> float:
    wanted = frozenset(words(need))
    return max((share(wanted, read_note(note).words) for note in evidence), default=0.0)


def _content(text: str) -> list[str]:
    return [word for word in words(text) if word not in _PLAIN]


# The first set -------------------------------------------------------------------------------------------


def first_set(reader: Any, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
    """What the reader's `init` selects, at most its `init_records`."""
    most = reader.init_records if budget.records is None else min(reader.init_records, budget.records)
    return init_of(reader).read(query, pool, Budget(records=most, tokens=budget.tokens), access)


def first_set_and_needs(
    reader: Any, query: Query, pool: Pool, budget: Budget, access: Access
) -> tuple[Evidence, Needs]:
    """The first set, with the fallback of the decomposition if there was one, and the question's requirements."""
    first = first_set(reader, query, pool, budget, access)
    needs = by_model(query.text, access) if asks_model(reader) and len(pool) else by_rules(query.text)
    trace = tuple(dict.fromkeys((*needs.steps, *first.trace)))
    return replace(first, trace=trace), needs.requirements


def init_of(reader: Any) -> Reader:
    """The reader of the first set, with its defaults and the model, if any, of the reader that completes it."""
    # Not at the top: the table of all readers names those of this module too.
    from readers import READERS

    init: Any = READERS[reader.init]
    made: Reader = init(model=reader.model) if asks_model(init) else init()
    return made


def _fixed(schedule: Schedule) -> Callable[[State], Iterator[Action | None]]:
    return lambda state: (cue(state) for cue in schedule)


def _check(reader: Any, **counts: int) -> None:
    from readers import READERS

    known = [
        name
        for name, each in READERS.items()
        if not (getattr(each, "completes", False) or getattr(each, "searches", False))
        and (asks_model(reader) or not asks_model(each))
    ]
    if reader.init not in known:
        raise ValueError(f"init: one of {', '.join(known)} expected, {reader.init!r} found")
    for name, count in counts.items():
        least = 0 if name == "init_records" else 1
        if count < least:
            raise ValueError(f"{name} of at least {least} expected, {count} found")


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} ({value}) must be in [0, 1]")

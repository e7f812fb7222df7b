"""How much of BEAM's rubric a reply meets, or how well it orders the rubric's events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from math import sqrt
from statistics import fmean
from typing import ClassVar

from storage.records import Gold, Question
from tasks.asking import Asking
from tasks.judges.asked import Ask, Told, first_requests, told
from tasks.judges.deciding import averaged
from tasks.judges.replies import grade, order
from tasks.llm import Request
from tasks.outcomes import Verdict
from tasks.prompts import load
from tasks.provenance import code

Items = Sequence[tuple[Question, Gold, str | None]]

GRADES = (0.0, 0.5, 1.0)


@dataclass(frozen=True)
class Beam:
    """A model judge that grades every rubric item 0, 0.5 or 1, each in a request of its own; the score is their mean.

    Event ordering: the model matches what the reply lists to the rubric's events, and the score is `order_score`.
    `arithmetic`: `exact`, or `official`, which cuts 0.5 to 0 as the release does in the nine graded types.
    `repeats`: how often each reply is judged; the score is the mean. It gives no label. One item that cannot be read
    leaves its repeat without a score, never with a 0. A missing or blank reply scores 0; a gold without rubric is
    `failed`. Source: mohammadtavakoli78/BEAM, src/evaluation; deviations: the question is in the prompt, the reply is
    matched in one request and not line by line in pairs. Raises `ValueError` for another arithmetic or repeats below 1.
    """

    name: ClassVar[str] = "beam"
    title: ClassVar[str] = "a model, by BEAM's rubric items and event order"
    offline: ClassVar[bool] = False

    model: str
    arithmetic: str = "exact"
    repeats: int = 1

    def __post_init__(self) -> None:
        if self.arithmetic not in ("exact", "official") or self.repeats < 1:
            raise ValueError(
                f"arithmetic must be exact or official and repeats at least 1, not {self.arithmetic} and {self.repeats}"
            )

    def spec(self) -> dict[str, object]:
        """The prompts' digests and the code that reads replies."""
        return {
            "prompts": [load("judging", name).digest for name in ("beam_item", "beam_order")],
            "code": code("tasks.judges.beam", "tasks.judges.asked", "tasks.judges.deciding", "tasks.judges.replies"),
        }

    def judge_many(self, items: Items, asking: Asking) -> Iterator[Verdict | None]:
        asks = [self._asks(*item) for item in items]
        flat = [ask for of_item in asks for ask in of_item]
        votes = iter(told(asking, asking.model(self.model), flat, repeats=self.repeats, purpose="judge"))
        for of_item, (_, gold, _) in zip(asks, items, strict=True):
            if of_item:
                yield self._verdict([next(votes) for _ in of_item])
            else:
                yield Verdict(0.0, None, "ok") if gold.rubric else Verdict(None, None, "failed")

    def requests(self, items: Items, asking: Asking) -> list[Request]:
        """What is sent for `items`, but for repairs: one request a rubric item, one for an order."""
        asks = [ask for item in items for ask in self._asks(*item)]
        return first_requests(asking.model(self.model), asks, self.repeats, "judge")

    def _asks(self, question: Question, gold: Gold, reply: str | None) -> list[Ask[float]]:
        if reply is None or not reply.strip():
            return []
        if question.kind.replace("_", "-") == "event-ordering" and gold.rubric:
            return [_ordering(question, gold.rubric, reply)]
        return [self._grading(question, item, reply) for item in gold.rubric]

    def _grading(self, question: Question, item: str, reply: str) -> Ask[float]:
        prompt = load("judging", "beam_item", ("question", "item", "reply"))
        return Ask(
            messages=prompt.render(question=question.text, item=item, reply=reply),
            prompt=prompt.digest,
            read=lambda text, cut: self._credit(grade(text, GRADES, cut=cut)),
            again="Reply with the score alone: 0, 0.5 or 1.",
        )

    def _credit(self, given: float | None) -> float | None:
        return float(int(given)) if given is not None and self.arithmetic == "official" else given

    def _verdict(self, votes: Sequence[Sequence[Told[float] | None]]) -> Verdict | None:
        """`votes`: for every item its repeats."""
        scores = []
        for repeat in zip(*votes, strict=True):
            values = [vote.value for vote in repeat if vote is not None and vote.value is not None]
            scores.append(fmean(values) if len(values) == len(repeat) else None)
        return averaged([vote for of_item in votes for vote in of_item], scores, decides=False)


def _ordering(question: Question, events: Sequence[str], reply: str) -> Ask[float]:
    def read(text: str | None, cut: bool) -> float | None:
        found = None if cut else order(text, len(events))
        return None if found is None else order_score(found, len(events))

    prompt = load("judging", "beam_order", ("question", "events", "reply"))
    numbered = "\n".join(f"{number}. {event}" for number, event in enumerate(events, 1))
    return Ask(
        messages=prompt.render(question=question.text, events=numbered, reply=reply),
        prompt=prompt.digest,
        read=read,
        again="Reply with the list of numbers alone, in square brackets, such as [2, 0, 1].",
    )


def order_score(found: Sequence[int], events: int) -> float:
    """(tau-b + 1) / 2 in [0, 1] of a reply that lists the events `found`, of `events` numbered from 1 in true order.

    A 0 in `found` is something that is no event. Kendall's tau-b runs over all events and all such things; an event
    that the reply lacks is tied last in the reply's ranks, a thing that is no event is tied last in the true ranks.
    A reply that lists no event scores 0. One event alone, of several, scores well above 0.5: so the official score has
    it, as ties cost little. A rubric of one event scores 1 if it is listed alone.
    """
    if not any(found):
        return 0.0
    extra = count(events + 1)
    said = [each or next(extra) for each in found]
    union = [*range(1, events + 1), *(each for each in said if each > events)]
    last = len(union) + 1
    true_ranks = [each if each <= events else last for each in union]
    ranks = {each: place for place, each in enumerate(said, 1)}
    tau = kendall_tau_b(true_ranks, [ranks.get(each, last) for each in union])
    return 1.0 if tau is None else (tau + 1) / 2


def kendall_tau_b(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Kendall's tau-b of two rankings of the same things, in [-1, 1]; None where one of them is all ties.

    (C - D) / sqrt((C + D + ties in one alone) · (C + D + ties in the other alone)). Source: Kendall 1945.
    """
    agree = untied_one = untied_other = 0
    for (a, b), (c, d) in combinations(zip(one, other, strict=True), 2):
        left, right = (a > c) - (a < c), (b > d) - (b < d)
        agree += left * right
        untied_one += left != 0
        untied_other += right != 0
    return agree / sqrt(untied_one * untied_other) if untied_one and untied_other else None

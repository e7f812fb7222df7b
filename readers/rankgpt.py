"""In which order does a model put the candidates, a window at a time?"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from readers.replies import numbers, shown
from readers.types import Access, Budget, Evidence, Pool, Query, Step, fallback, selected


@dataclass(frozen=True)
class RankGpt:
    """RankGPT: a model permutes windows of `window` candidates, from the back of the pool to its front by `step`.

    One ask a window: 19 for 200 candidates. `depth`: only so many of the best are ranked, the rest keep their native
    order behind them. Records that a reply leaves out follow those it names, in the order they had; a reply that names
    none leaves the window as it was, and the trace says so (`fallback`).
    Deviations from the release, which asks nothing about a pool smaller than the window and leaves the head unranked
    where the windows do not end there: here the last window always begins with the first record.
    Raises `ValueError` for a parameter out of range.
    """

    model: str = ""
    window: int = 20
    step: int = 10
    depth: int = 200

    prompts: ClassVar[tuple[str, ...]] = ("rankgpt",)
    title: ClassVar[str] = "Listwise permutations by a model, in windows from the back to the front"
    source: ClassVar[str] = "Sun et al. 2023, Is ChatGPT Good at Search?, EMNLP (arXiv 2304.09542)"

    def __post_init__(self) -> None:
        if not 1 <= self.step <= self.window:
            raise ValueError(f"step ({self.step}) must be at least 1 and at most window ({self.window})")
        if self.depth < 1:
            raise ValueError(f"depth ({self.depth}) must be at least 1")

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        if not len(pool):
            return Evidence((), "empty_pool")
        order = list(range(len(pool)))
        steps: list[Step] = []
        for start, end in windows(min(self.depth, len(pool)), self.window, self.step):
            shuffled = order[start:end]
            ids = tuple(pool.ids[place] for place in shuffled)
            said = access.ask("rankgpt", question=query.text, count=str(len(ids)), records=shown(access.notes(ids)))
            named = numbers(said, len(ids))
            if not named:
                steps.append(fallback(f"no ranking of {start + 1} to {end} in the reply: left as it was", ids))
                continue
            first = [shuffled[number - 1] for number in named]
            order[start:end] = first + [place for place in shuffled if place not in first]
        evidence = selected(pool, np.array(order, np.intp), budget)
        taken = Step("select", "", evidence.ids, evidence.ids)
        return replace(evidence, trace=(*steps, taken) if steps else ())


def windows(size: int, window: int, step: int) -> Iterator[tuple[int, int]]:
    """(start, end) of each window, from the back; the last starts at 0."""
    end = size
    while end > window:
        yield end - window, end
        end -= step
    if end > 0:
        yield 0, end

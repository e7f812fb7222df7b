"""Views over a conversation are what they say, counted, and bounded by the budget."""

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from readers.types import Access, Budget, Evidence, Note, OverBudget, Pool, Query
from storage.errors import InputError
from tasks.access import Library, QuestionAccess
from tasks.arms import Arm, arms, budget
from tasks.compose import read_of

DAY = 86_400.0
TEXTS = [
    ("Ada", "Ada: I adopted a parrot called Kiwi.", 0, 0.0),
    ("Bo", "Bo: Kiwi is a fine name, kiwi!", 0, 0.0),
    ("Ada", "Ada: The double bass is out of tune.", 1, 10 * DAY),
    ("Bo", "Bo: I miss the parrot.", 1, 10 * DAY),
    ("Ada", "Ada: So do I.", 2, float("nan")),
]
LIBRARY = Library(
    [Note(f"r{i}", text, who, session, i, time, 4) for i, (who, text, session, time) in enumerate(TEXTS)],
    lambda texts: np.zeros((len(texts), 3), np.float32),
)


def _access(**limits: int) -> QuestionAccess:
    return QuestionAccess(LIBRARY, Budget(**limits))


def _ids(notes: tuple[Note, ...]) -> list[str]:
    return [note.id for note in notes]


def test_the_text_view_ranks_by_shared_words_as_worked_out_by_hand() -> None:
    one = 1 + math.log(2)
    assert LIBRARY.by_words("parrot KIWI") == [0, 1, 3]
    parrot, kiwi = math.log(1 + 5 / 3), math.log(1 + 5 / 3)
    scores = {0: one * parrot + one * kiwi, 1: (1 + math.log(3)) * kiwi, 3: one * parrot}
    assert sorted(scores, key=lambda place: -scores[place]) == [0, 1, 3]
    assert LIBRARY.by_words("zzz a") == []


@pytest.mark.parametrize("cue", ["parrot kiwi", "the Parrot is fine", "Ada misses Bo", "I", ""])
def test_the_text_view_agrees_with_a_count_record_by_record(cue: str) -> None:
    words = [f"{text} {who}".lower() for who, text, _, _ in TEXTS]
    held = [re.findall("[a-z0-9]{2,}", line) for line in words]
    scores = dict.fromkeys(range(len(TEXTS)), 0.0)
    for token in dict.fromkeys(re.findall("[a-z0-9]{2,}", cue.lower())):
        number = sum(token in own for own in held)
        for place, own in enumerate(held):
            if token in own:
                scores[place] += (1 + math.log(1 + own.count(token))) * math.log(1 + len(TEXTS) / (1 + number))
    assert LIBRARY.by_words(cue) == sorted((p for p in scores if scores[p]), key=lambda p: (-scores[p], p))


def test_the_entity_view_counts_names_and_prefers_who_bears_them() -> None:
    assert _ids(_access().entity("kiwi", 9, ())) == ["r1", "r0"]
    assert _ids(_access().entity("Bo", 9, ())) == ["r1", "r3"]


def test_the_session_view_is_in_time_order_and_needs_a_known_anchor() -> None:
    assert _ids(_access().session("r3", 9, ())) == ["r2", "r3"]
    assert _access().session("nowhere", 9, ()) == ()


def test_the_time_view_is_nearest_first_and_leaves_unknown_times_out() -> None:
    assert _ids(_access().time(9 * DAY, 2, 9, ())) == ["r2", "r3"]
    assert _ids(_access().time(8 * DAY, 9, 9, ())) == ["r2", "r3", "r0", "r1"]


def test_views_leave_out_what_is_held_and_return_at_most_what_is_asked() -> None:
    assert _ids(_access().text("parrot kiwi", 1, {"r0"})) == ["r1"]


def test_calls_are_counted_and_one_too_many_is_refused() -> None:
    access = _access(calls=2)
    access.everything()
    access.notes(["r0"])
    access.text("parrot", 1, ())
    access.session("r0", 1, ())
    assert access.calls == 2
    with pytest.raises(OverBudget, match="at most 2 retrieval calls"):
        access.entity("Bo", 1, ())
    assert access.calls == 2


@dataclass(frozen=True)
class _Greedy:
    """A reader that pays no heed to its budget."""

    asks: int = 0

    def read(self, query: Query, pool: Pool, budget: Budget, access: Access) -> Evidence:
        for _ in range(self.asks):
            access.text("parrot", 1, ())
        return Evidence(ids=("r0", "r1", "r2"), stop_reason="budget", calls=0)


def _cell(reader: Any, limits: str) -> Evidence:
    empty: Any = np.zeros(0)
    pool = Pool((), empty, empty, empty, np.zeros((0, 3)), empty, empty, empty, empty, empty)
    return read_of(Arm(reader, limits, "turns"))(Query("q", "q", np.zeros(3)), pool, LIBRARY)


def test_a_reader_that_exceeds_its_budget_is_cut_and_its_cell_says_so() -> None:
    assert _cell(_Greedy(), "k3").stop_reason == "budget"
    for limits, kept in (("k2", ("r0", "r1")), ("t7", ("r0",))):
        cut = _cell(_Greedy(), limits)
        assert (cut.ids, cut.stop_reason) == (kept, "over_budget")


def test_calls_are_those_that_were_metered_not_those_that_were_claimed() -> None:
    assert _cell(_Greedy(asks=2), "all").calls == 2
    stopped = _cell(_Greedy(asks=3), "r9c2n9")
    assert (stopped.ids, stopped.calls, stopped.stop_reason) == ((), 2, "over_budget")


def test_completion_budgets_are_points_or_triples_and_do_not_fit_plain_readers() -> None:
    assert budget("C6") == Budget(calls=6, rounds=6, new_records=30)
    assert budget("r3c6n30") == Budget(calls=6, rounds=3, new_records=30)
    assert budget("C6k40") == Budget(calls=6, rounds=6, new_records=30, records=40)
    assert budget("r3c6n30t2000") == Budget(calls=6, rounds=3, new_records=30, tokens=2000)
    for broken in ("", "C5", "C6r3c6n30", "C6all", "k10t5"):
        with pytest.raises(InputError, match="k<records>, t<tokens>"):
            budget(broken)
    with pytest.raises(InputError, match="a budget of records or tokens"):
        arms(["hybrid@C6"], [], ["turns"])

"""What an arm is: reader, parameters, budget and store, with a printed form that parses back."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from readers import READERS
from readers.types import Budget
from storage.errors import InputError
from tasks import specs

ORACLE = "oracle"
_BUDGET = re.compile(
    r"(?P<point>C\d+)?(?:r(?P<rounds>\d+)c(?P<calls>\d+)n(?P<new>\d+))?(?:k(?P<records>\d+)|t(?P<tokens>\d+))?|all"
)

# BFR's budget points: completion calls, one a round for a schedule of one view. The paper publishes the points'
# realised sizes; 30 new records hold up to C6, and C9's mean size of 59.2 needs 50.
POINTS = {
    f"C{calls}": Budget(calls=calls, rounds=calls, new_records=50 if calls == 9 else 30)
    for calls in (0, 1, 2, 3, 4, 6, 9)
}
_ARM = re.compile(r"(?P<reader>[^@]+?)(?:@(?P<budget>[\w.]+))?(?::(?P<store>[\w-]+))?")


@dataclass(frozen=True)
class Oracle:
    """Gold turns first, then the pool's order: the ceiling. It sees gold, so it is no reader and never ranked."""

    title = "gold turns first, then the pool's order (sees gold: the ceiling, not a reader)"
    source = "this project"


ARM_READERS: dict[str, type[Any]] = {**READERS, ORACLE: Oracle}


@dataclass(frozen=True)
class Arm:
    """One arm. `str(arm)` is its identity: `mmr(trade=0.7)@k10`, with `:store` where the store is not the first."""

    reader: Any
    budget: str
    store: str
    default_store: bool = True

    def __str__(self) -> str:
        suffix = "" if self.default_store else f":{self.store}"
        return f"{self.name}@{self.budget}{suffix}"

    @property
    def name(self) -> str:
        """The reader's printed form, without the budget."""
        return specs.printed(ARM_READERS, self.reader)

    @property
    def uses_gold(self) -> bool:
        """Whether the arm is assembled where gold may be seen."""
        return isinstance(self.reader, Oracle)

    @property
    def model(self) -> str | None:
        """The protocol's name of the model that the reader asks; None for one that asks none."""
        name: str | None = getattr(self.reader, "model", None)
        return name

    @property
    def prompts(self) -> tuple[str, ...]:
        """The prompts that the reader may ask its model."""
        names: tuple[str, ...] = getattr(self.reader, "prompts", ())
        return names

    @property
    def learns(self) -> bool:
        """Whether the reader has weights that are still to be fitted, on other conversations' gold."""
        return bool(getattr(self.reader, "learns", False))

    @property
    def limits(self) -> Budget:
        """The budget that the reader is held to."""
        return budget(self.budget)


def arms(
    forms: Sequence[str], budgets: Sequence[str], stores: Sequence[str], models: Collection[str] = ()
) -> list[Arm]:
    """All arms that `forms` name, in order, without repeats.

    A form without a budget is taken at each of `budgets`, one without a store over the first of `stores`.
    Raises `InputError` for what cannot be parsed, an unknown reader, parameter, budget, store or model.
    """
    found: dict[str, Arm] = {}
    for form in forms:
        match = _ARM.fullmatch(form.strip())
        if not match:
            raise InputError(f"arms: the form reader(parameter=value)@budget:store expected, {form!r} found")
        store = match["store"] or stores[0]
        if store not in stores:
            raise InputError(f"arm {form!r}: one of the stores {', '.join(stores)} expected, {store!r} found")
        reader = specs.make(ARM_READERS, match["reader"], "reader")
        _check_model(form, reader, models)
        if not match["budget"] and not budgets:
            raise InputError(f"arm {form!r}: a budget expected, none found; write {form}@k10 or set budgets")
        for text in [match["budget"]] if match["budget"] else budgets:
            _check_fit(form, reader, budget(text))
            arm = Arm(reader, text, store, store == stores[0])
            found.setdefault(str(arm), arm)
    return list(found.values())


def budget(text: str) -> Budget:
    """`k10`: ten records; `t2000`: 2,000 tokens; `all`: no bound; `C6`, `r3c6n30`: completion after a first set.

    The latter bound rounds, retrieval calls and new records; `C6k40` and `C6t2000` bound the whole evidence too, so
    that a reader that completes stands beside one that does not. Raises `InputError` for anything else.
    """
    match = _BUDGET.fullmatch(text)
    point = match["point"] if match else None
    if not match or not text or (point and (point not in POINTS or match["rounds"])):
        raise InputError(
            f"budget: k<records>, t<tokens>, all, r<rounds>c<calls>n<new records> or one of {', '.join(POINTS)}, "
            f"the last two also with k<records> or t<tokens> behind, expected, {text!r} found"
        )
    number = {name: int(match[name]) for name in ("records", "tokens", "rounds", "calls") if match[name]}
    steps = POINTS[point] if point else Budget(new_records=int(match["new"]) if match["new"] else None)
    return replace(steps, **number)


def _check_model(form: str, reader: Any, models: Collection[str]) -> None:
    """A reader that asks a model names one of the protocol's."""
    name = getattr(reader, "model", None)
    if name is not None and name not in models:
        wanted = f"one of the models {', '.join(models)}" if models else "a [models.NAME] table in the protocol"
        raise InputError(f"arm {form!r}: {wanted} expected, named as (model=NAME); {name or 'no name'!r} found")


def _check_fit(form: str, reader: Any, limits: Budget) -> None:
    """A completion budget is for a reader that completes, and such a reader needs one."""
    completes = getattr(reader, "completes", False)
    if completes and limits.rounds is None:
        raise InputError(f"arm {form!r}: a completion budget such as C6 expected, one of records or tokens found")
    if not completes and limits.rounds is not None:
        raise InputError(f"arm {form!r}: a budget of records or tokens such as k10 expected, a completion budget found")

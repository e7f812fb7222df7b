"""Which settings of a reader does a grid name?"""

from collections.abc import Sequence
from itertools import product

from storage.errors import InputError
from tasks.arms import arms


def settings(reader: str, grid: Sequence[str]) -> tuple[str, ...]:
    """Every combination of a grid's values (`rho=0,0.25,0.5`) as printed forms of `reader`, the first parameter
    slowest. Raises `InputError` for a form, a parameter or a value that the reader does not take.
    """
    axes = [_axis(text) for text in grid]
    if not axes:
        raise InputError("tune: --grid 'parameter=value,value,…' expected, none found")
    name, _, fixed = reader.strip().partition("(")
    held = [part for part in [fixed.rstrip().removesuffix(")").strip()] if part]
    forms = [f"{name}({', '.join([*held, *values])})" for values in product(*axes)]
    return tuple(dict.fromkeys(arms([form], ["all"], ["x"])[0].name for form in forms))


def _axis(text: str) -> list[str]:
    name, equals, values = text.partition("=")
    given = [value.strip() for value in values.split(",") if value.strip()]
    if not equals or not name.strip() or not given:
        raise InputError(f"--grid: parameter=value,value,… expected, {text!r} found")
    return [f"{name.strip()}={value}" for value in given]

"""How the printed form of a part (`mmr(trade=0.7)`) becomes the part, and back."""

import difflib
import math
import re
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from storage.errors import InputError

_FORM = re.compile(r"\s*([A-Za-z_][\w-]*)\s*(?:\((.*)\))?\s*", re.DOTALL)
_PARAMETER = re.compile(r"""\s*(\w+)\s*=\s*("(?:[^"\\]|\\.)*"|[^,"]*)\s*(?:,|$)""")
_BARE = re.compile(r"[A-Za-z_./:][\w./:@-]*")


def make(table: Mapping[str, type[Any]], text: str, what: str) -> Any:
    """The part that `text` names: `name` or `name(parameter=value, …)`.

    `table` maps names to frozen dataclasses whose fields are the parameters; `what` names the table in
    messages. Raises `InputError` for an unknown name or parameter, a value of the wrong type or a broken form.
    """
    match = _FORM.fullmatch(text)
    if not match:
        raise InputError(f"{what}: the form name(parameter=value, …) expected, {text!r} found")
    name = match[1]
    if name not in table:
        raise InputError(f"{what}: {_known(name, table)} expected, {name!r} found")
    known = {field.name: field for field in _parameter_fields(table[name])}
    hints = typing.get_type_hints(table[name])
    arguments: dict[str, Any] = {}
    for key, value in _parameters(match[2] or "", text, what):
        if key not in known:
            raise InputError(f"{what} {name}: {_known(key, known)} expected, parameter {key!r} found")
        if key in arguments:
            raise InputError(f"{what} {name}: {key} once expected, found twice")
        arguments[key] = _value(value, hints[key], f"{what} {name}: {key}")
    needed = [key for key, field in known.items() if field.default is MISSING and field.default_factory is MISSING]
    for key in needed:
        if key not in arguments:
            raise InputError(f"{what} {name}: parameter {key} expected, none found; write {name}({key}=…)")
    try:
        return table[name](**arguments)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} {name}: {error}") from error


def printed(table: Mapping[str, type[Any]], part: Any) -> str:
    """The shortest form that `make` turns into `part` again: parameters at their default are left out."""
    name = next(key for key, value in table.items() if value is type(part))
    given = [
        f"{field.name}={_print(getattr(part, field.name))}"
        for field in _parameter_fields(part)
        if getattr(part, field.name) != field.default
    ]
    return f"{name}({', '.join(given)})" if given else name


def parameters(part: Any) -> dict[str, Any]:
    """All parameters of a part with their values, defaults included."""
    return {field.name: getattr(part, field.name) for field in _parameter_fields(part)}


def _parameter_fields(part: Any) -> list[Field[Any]]:
    return [field for field in fields(part) if field.init]


def _parameters(text: str, whole: str, what: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while at < len(text):
        match = _PARAMETER.match(text, at)
        if not match:
            raise InputError(f"{what}: parameter=value expected at {text[at:]!r} in {whole!r}")
        found.append((match[1], match[2].strip()))
        at = match.end()
    return found


def _value(text: str, hint: Any, where: str) -> Any:
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    if text == "none" and type(None) in options:
        return None
    if text in ("true", "false") and bool in options:
        return text == "true"
    for kind in (int, float):
        if kind in options:
            try:
                number = kind(text)
            except ValueError:
                continue
            if math.isfinite(number):
                return number
    if str in options and text.startswith('"'):
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    if str in options and text:
        return text
    expected = " or ".join("none" if option is type(None) else option.__name__ for option in options)
    raise InputError(f"{where}: {expected} expected, {text!r} found")


def _print(value: object) -> str:
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and not (_BARE.fullmatch(value) and value not in ("none", "true", "false")):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return value if isinstance(value, str) else repr(value)


def _known(name: str, table: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, table, 1)
    listed = ", ".join(table) or "no parameter"
    return f"one of {listed}" + (f" (did you mean {close[0]}?)" if close else "")

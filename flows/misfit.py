"""What does not fit in a protocol, as one line."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError


def misfit(error: ValidationError, whole: type[BaseModel]) -> str:
    """The first thing that does not fit; a key that there is not comes before what may lack because of it.

    What several keys together do not fit says itself where. Values are shown where they cannot be a secret.
    """
    errors = error.errors()
    first = next((each for each in errors if each["type"] == "extra_forbidden"), errors[0])
    return ": ".join([*filter(None, [".".join(map(str, first["loc"]))]), _told(first, whole)])


def _told(first: Mapping[str, Any], whole: type[BaseModel]) -> str:
    match first["type"]:
        case "value_error":
            return str(first["msg"]).removeprefix("Value error, ")
        case "extra_forbidden":
            *table, key = first["loc"]
            keys = _keys(whole, table)
            close = difflib.get_close_matches(str(key), keys, 1)
            return f"one of {', '.join(keys)}{f' (did you mean {close[0]}?)' if close else ''} expected, {key!r} found"
        case "missing":
            return "one expected, none found"
        case "tuple_type":
            return f"a list expected, {first['input']!r} found"
        case "too_short":
            return "one or more expected, none found"
        case "model_type":
            return f"a table expected, {type(first['input']).__name__} found"
    plain = isinstance(first["input"], int | float) or first["type"].endswith("_parsing")
    return str(first["msg"]) + (f", {first['input']!r} found" if plain else "")


def _keys(whole: type[BaseModel], table: Iterable[str | int]) -> list[str]:
    """The keys of the table at `table`, steps from the whole protocol; numbers and names of one's own are no keys."""
    model, own = whole, False
    for step in table:
        if isinstance(step, int) or own:
            own = False
            continue
        kind = model.model_fields[step].annotation
        model, own = _table(kind) or model, getattr(kind, "__origin__", None) is dict
    return list(model.model_fields)


def _table(kind: Any) -> type[BaseModel] | None:
    """The table that a key of this type holds, one or several of; None where it holds plain values."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    return next(filter(None, map(_table, get_args(kind))), None)

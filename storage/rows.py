"""How the dataclasses of `storage.records` become table rows, and back."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from typing import Any, TypeVar

import polars as pl

from storage.records import Gold, Membership, Question, Record

Row = TypeVar("Row", Membership, Record, Question, Gold)


def to_rows(items: Iterable[Membership | Record | Question | Gold], **columns: Iterable[Any]) -> list[dict[str, Any]]:
    """One dict an item; `columns` add aligned values. Raises `ValueError` if a column's length differs."""
    rows = [asdict(item) for item in items]
    for name, values in columns.items():
        for row, value in zip(rows, values, strict=True):
            row[name] = value
    return rows


def from_frame(kind: type[Row], frame: pl.DataFrame) -> list[Row]:
    """The items of a table's frame, in the frame's order; columns that the dataclass lacks are passed over."""
    names = [field.name for field in fields(kind)]
    return [kind(**_frozen(row)) for row in frame.select(names).iter_rows(named=True)]


def _frozen(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}

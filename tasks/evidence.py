"""What the answerer is shown of records: their order, their form and its address."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from storage.digests import digest
from storage.records import Record


def line(record: Record) -> str:
    """A record as it is shown: its date where known, then its text."""
    return f"{shown_date(record.said_at)} {record.text}" if record.said_at else record.text


def shown_date(said_at: datetime) -> str:
    """What stands before the text of a record of known date."""
    return f"[{spoken(said_at)}]"


def rendered(records: Iterable[Record]) -> str:
    """The evidence text: one record a line, in the given order (oldest first)."""
    return "\n".join(line(record) for record in records)


def line_digest(record: Record) -> str:
    """The address of a record's id and shown form."""
    return digest([record.id, line(record)])


def evidence_hash(ids: Sequence[str], line_digests: Mapping[str, str]) -> str:
    """The address of an evidence text: its records' ids and shown forms, in presentation order."""
    return digest([line_digests[id] for id in ids])


def spoken(time: datetime) -> str:
    """`1:56 pm on 8 May, 2023`; a midnight is a date whose time of day is not known: `15 March, 2024`."""
    if not (time.hour or time.minute):
        return f"{time.day} {time:%B}, {time.year}"
    return f"{time:%I:%M} {'am' if time.hour < 12 else 'pm'} on {time.day} {time:%B}, {time.year}".removeprefix("0")

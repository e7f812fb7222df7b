"""Which readers there are, with parameters, defaults and sources, as plain rows."""

from dataclasses import fields

from tasks.arms import ARM_READERS


def readers() -> list[dict[str, str]]:
    """One row a reader: `name, title, parameters, source`."""
    return [
        {
            "name": name,
            "title": reader.title,
            "parameters": ", ".join(f"{field.name}={_shown(field.default)}" for field in fields(reader)) or "none",
            "source": reader.source,
        }
        for name, reader in ARM_READERS.items()
    ]


def _shown(value: object) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)

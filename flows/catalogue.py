"""Which readers there are, with parameters, defaults and sources, as plain rows."""

from dataclasses import fields

from tasks.arms import ARM_READERS


def readers() -> list[dict[str, str]]:
    """One row a reader: `name, title, parameters, source`."""
    return [
        {
            "name": name,
            "title": reader.title,
            "parameters": ", ".join(f"{field.name}={_shown(field.name, field.default)}" for field in fields(reader))
            or "none",
            "source": reader.source,
        }
        for name, reader in ARM_READERS.items()
    ]


def _shown(name: str, value: object) -> str:
    if name == "model" and not value:
        return "NAME"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)

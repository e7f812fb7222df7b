"""The options that commands share, and the protocol they make together."""

import re
from typing import Annotated

import typer

from flows import protocol as protocols
from flows.protocol import Protocol
from flows.stages import STAGES
from storage.errors import InputError
from storage.lake import Lake
from tasks.sealed import OPEN, StillSealed, Unsealing

ProtocolName = Annotated[str, typer.Argument(help="A protocol's TOML file, or the bare name of a shipped one.")]
DataOption = Annotated[str | None, typer.Option("--data", help="The benchmark's file or its folder.")]
LakeOption = Annotated[
    str,
    typer.Option("--lake", envvar="SUFFICE_LAKE", help="The folder, or s3:// place, of all tables and reports."),
]
OnlyOption = Annotated[str | None, typer.Option("--only", help=f"Run this stage alone: {', '.join(STAGES)}.")]
UntilOption = Annotated[str | None, typer.Option("--until", help="Run the stages up to and with this one.")]
ArmsOption = Annotated[
    list[str] | None,
    typer.Option("--arms", help="Run these arms instead of the protocol's: hybrid@k10,'mmr(trade=0.7)'."),
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", help="Run this many questions, taken from all conversations in turn.")
]
ConversationsOption = Annotated[
    list[str] | None, typer.Option("--conversations", help="Run these conversations: conv-26,conv-30.")
]
MaxCallsOption = Annotated[
    int | None, typer.Option("--max-calls", min=0, help="Stop after this many calls to models; run again to go on.")
]
MaxCostOption = Annotated[
    float | None, typer.Option("--max-cost", min=0, help="Stop before models cost more US dollars than this.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a key of the protocol: stores.0.pool.size=100, seed=7."),
]
SplitOption = Annotated[
    str | None, typer.Option("--split", help="The split to run: open or sealed; the protocol's if not given.")
]
FreezeOption = Annotated[
    str | None, typer.Option("--freeze", help="The manifest under which a sealed split is opened.")
]
IdentityOption = Annotated[
    str | None, typer.Option("--identity", help="The age identity file that opens a sealed split.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Show Prefect's log.")]


def chosen_protocol(
    name: str,
    data: str | None,
    arms: list[str] | None,
    limit: int | None,
    conversations: list[str] | None,
    changes: list[str] | None,
    *,
    sealed: str | None = None,
    lake: str | None = None,
) -> Protocol:
    """The protocol with the command line's changes made, so that its digest tells them.

    `sealed` names the split. For a sealed split, and where something is sealed in `lake`, the data need not be there.
    Raises `InputError` where the protocol does not hold or its data are not there.
    """
    from tasks.sources import locate

    said = changed_protocol(name, data, arms, limit, conversations, changes, sealed=sealed)
    needless = said.data.split != OPEN or (lake is not None and Lake(lake).sealed.is_dir())
    if said.data.path or not needless:
        locate(said.data.benchmark, said.data.path)
    return said


def refuse_closed(said: Protocol, freeze: str | None = None, identity: str | None = None) -> None:
    """Raises `StillSealed` for the sealed split without a freeze and an identity, before any server is started."""
    if said.data.split != OPEN and Unsealing.by(freeze, identity) is None:
        raise StillSealed(said.data.benchmark)


def changed_protocol(
    name: str,
    data: str | None,
    arms: list[str] | None,
    limit: int | None,
    conversations: list[str] | None,
    changes: list[str] | None,
    *,
    sealed: str | None = None,
) -> Protocol:
    """As `chosen_protocol`, but its data need not be there."""
    made = dict(protocols.setting(change) for change in changes or [])
    given = {
        "data.path": data,
        "arms": _some(arms, "--arms"),
        "data.limit": limit,
        "data.conversations": _some(conversations, "--conversations"),
        "data.split": sealed,
    }
    made |= {key: value for key, value in given.items() if value is not None}
    return protocols.load(name, made)


def _some(values: list[str] | None, option: str) -> list[str] | None:
    """The items of an option, None where it is not given. Raises `InputError` where it is given and names nothing."""
    items = listed(values)
    if values and not items:
        raise InputError(f"{option}: a name or several with commas between expected, none found")
    return items or None


def listed(values: list[str] | None) -> list[str]:
    """Comma-separated items, commas within parentheses left alone."""
    return [item.strip() for value in values or [] for item in re.split(r",(?![^()]*\))", value) if item.strip()]

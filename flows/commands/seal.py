"""`suffice seal`."""

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.options import JsonOption, LakeOption
from flows.commands.screen import console, print_json
from storage.errors import InputError
from storage.lake import Lake


def seal(
    benchmark: Annotated[str, typer.Argument(help="The benchmark's format: locomo.")],
    data: Annotated[str, typer.Option("--data", help="The benchmark's file or its folder.")],
    lake: LakeOption = "lake",
    split: Annotated[
        str,
        typer.Option(
            "--split",
            help="What to seal: whole, 'conversations(ids=\"conv-48,conv-49\")', 'fraction(share=0.5, seed=7)' of each "
            "kind, 'ids(file=\"ids.txt\")'.",
        ),
    ] = "whole",
    recipient: Annotated[
        str | None, typer.Option("--recipient", help="Seal to this age public key, whose identity somebody else holds.")
    ] = None,
    identity_out: Annotated[
        Path | None, typer.Option("--identity-out", help="Make a new age identity, write it here, and seal to it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Encrypt the questions and gold of a split, so that nothing reads them before a protocol is frozen.

    Conversations are written in the clear. Then take the raw file away: runs need it no more.
    """
    from storage.seal import new_identity
    from tasks.sealing import seal_split

    if (recipient is None) == (identity_out is None):
        found = "neither" if recipient is None else "both"
        raise InputError(f"seal: one of --recipient and --identity-out expected, {found} found")
    place = Lake.open(lake)
    to = recipient or new_identity(identity_out or Path(), place)
    try:
        made = seal_split(str(place.root), benchmark, data, split, to)
    except BaseException:
        if identity_out:
            identity_out.unlink(missing_ok=True)
        raise
    if as_json:
        print_json({"seal": made.id, "rule": made.rule, "recipient": to, "facts": dict(made.facts)})
        return
    out = console()
    counted = ", ".join(f"{value:,} {name}" for name, value in made.facts.items() if isinstance(value, int))
    out.print(f"Sealed {benchmark} ({made.rule}) to {to}.", highlight=False, markup=False, soft_wrap=True)
    out.print(f"In the clear: {counted}. Seal {made.id[:16]}, line in {place.ledger}.", highlight=False, soft_wrap=True)
    if identity_out:
        out.print(f"The identity is in {identity_out}; hand it to somebody who does not tune.", highlight=False)
    out.print("Take the raw file away from here: it tells what was sealed.", highlight=False)

"""`suffice freeze`, and `suffice verify`: whether a freeze still holds."""

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.options import DataOption, JsonOption, LakeOption, ProtocolName, SetOption, chosen_protocol
from flows.commands.screen import console, print_json
from storage.lake import Lake
from storage.places import place


def freeze(
    protocol: ProtocolName,
    data: DataOption = None,
    lake: LakeOption = "lake",
    set_: SetOption = None,
    allow_dirty: Annotated[
        bool, typer.Option("--allow-dirty", help="Freeze uncommitted changes; every report shows their digest.")
    ] = False,
    vouch: Annotated[
        list[str] | None, typer.Option("--vouch", help="Take this model's name as versioned, on your word.")
    ] = None,
    sign: Annotated[
        Path | None, typer.Option("--sign", help="Sign with this Ed25519 private key (PEM). Needs the extra `sign`.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Fix a protocol, with the digests of all that it depends on, before its sealed split is opened."""
    from flows.freeze import freeze as frozen

    said = chosen_protocol(protocol, data, None, None, None, set_, lake=lake)
    made = frozen(said, str(Lake.open(lake).root), allow_dirty=allow_dirty, vouched=vouch or (), key=sign)
    if as_json:
        print_json({"manifest": str(made.path), "digest": made.manifest.digest, "changes": made.manifest.notes["diff"]})
        return
    out = console()
    out.print(f"Frozen {said.name}: {made.manifest.digest[:16]}", highlight=False)
    if made.manifest.notes["diff"]:
        out.print(f"with uncommitted changes {made.manifest.notes['diff'][:16]}", highlight=False)
    out.print(f"Manifest: {made.path}", highlight=False, soft_wrap=True)
    out.print(
        f"Open the sealed split with: suffice run {protocol} --lake {lake} --split sealed --freeze {made.path} "
        "--identity FILE",
        highlight=False,
        soft_wrap=True,
    )


def verify(
    manifest: Annotated[str, typer.Argument(help="A manifest of `suffice freeze`.")],
    lake: LakeOption = "lake",
    public_key: Annotated[
        Path | None, typer.Option("--public-key", help="Check the signature by this Ed25519 public key (PEM).")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Derive everything that a manifest fixes anew, and show what is not as it was. Exit code 1 if anything is."""
    from flows.freeze import differences

    found = differences(place(manifest), str(Lake.open(lake).root), public_key)
    if as_json:
        print_json(
            {"differences": [{"field": each.field, "frozen": each.frozen, "present": each.present} for each in found]}
        )
    else:
        out = console()
        for each in found:
            out.print(str(each), highlight=False, markup=False, soft_wrap=True)
        out.print("Nothing differs." if not found else f"{len(found)} fields differ.", highlight=False)
    raise typer.Exit(1 if found else 0)

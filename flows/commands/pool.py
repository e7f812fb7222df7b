"""`suffice pool`."""

from typing import Annotated

import typer

from flows.commands.options import (
    DataOption,
    FreezeOption,
    IdentityOption,
    JsonOption,
    LakeOption,
    MaxCallsOption,
    MaxCostOption,
    SetOption,
    SplitOption,
    chosen_protocol,
)
from flows.commands.screen import console, print_json
from storage.errors import InputError
from tasks.llm.budget import budget
from tasks.sealed import Unsealing


def pool(
    what: Annotated[str, typer.Argument(help="What to do: import or export.")],
    source: Annotated[
        str, typer.Argument(help="A pool's Parquet file or folder, with --from a dump; of export the system: mem0.")
    ],
    protocol: Annotated[str, typer.Option("--protocol", help="The protocol whose questions the pool is for.")],
    data: DataOption = None,
    lake: LakeOption = "lake",
    form: Annotated[str, typer.Option("--from", help="The dump is of this system: lightmem, simplemem, a_mem, …")] = "",
    to: Annotated[str, typer.Option("--to", help="The folder to write the pool to.")] = "",
    run: Annotated[str, typer.Option("--run", help="Keep this run of the pool, or name the dump's.")] = "",
    size: Annotated[int, typer.Option("--size", min=1, help="Of export: candidates a question at most.")] = 200,
    model: Annotated[
        str, typer.Option("--model", help="Of export: let the system extract facts with this model of the protocol.")
    ] = "",
    max_calls: MaxCallsOption = None,
    max_cost: MaxCostOption = None,
    split: SplitOption = None,
    freeze: FreezeOption = None,
    identity: IdentityOption = None,
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check candidates that another memory system found, and say how a protocol names them.

    Every row is checked; the first that does not hold is named with its column. With --from, JSON lines of the
    system's search results become a pool first. `export` lets mem0 search the protocol's own records, on this machine
    alone but for calls to --model.
    """
    from flows.pools import export_pool, import_pool

    if what not in ("import", "export"):
        raise InputError(f"pool: import or export expected, {what!r} found")
    chosen = chosen_protocol(protocol, data, None, None, None, set_, sealed=split, lake=lake)
    unsealing = Unsealing.by(freeze, identity)
    if what == "export":
        with budget(lake, max_calls=max_calls, max_cost=max_cost):
            told = export_pool(chosen, lake, source, to, size, run, unsealing, model)
    else:
        told = import_pool(chosen, lake, source, form, to, run, unsealing)
    if as_json:
        print_json(told)
        return
    screen = console()
    for name, value in told.items():
        screen.print(f"{name:28} {value}", markup=False, highlight=False)
    if told["rows without an embedding"]:
        screen.print("No vectors for all: every candidate is embedded by the store's encoder.", highlight=False)
    if told["rows without source turns"]:
        screen.print("Evidence with a candidate of unknown sources has no evidence metrics.", highlight=False)
    screen.print("\nA protocol names it so:\n", highlight=False)
    print(f'[[stores]]\nname = "{told["system"].split()[0].lower()}"\npools = "{told["pools"]}"')
    print(f'encoder = "{told["encoder"]}"\npool = {{size = {told["largest pool"]}}}')

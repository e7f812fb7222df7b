"""How the questions and the gold of a sealed split are read: under a freeze, with an identity, or not at all."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from storage import seal
from storage.errors import InputError
from storage.lake import Lake
from storage.places import place, spelled
from storage.seal import Opened
from tasks.frozen import fields

if TYPE_CHECKING:
    from tasks.plan import Plan

OPEN, SEALED = "open", "sealed"
_ALONE = Lock()


@dataclass(frozen=True)
class Unsealing:
    """By what a sealed split may be read: the files of a manifest and of an age identity.

    `look`: the hash of the ledger line that this run's unsealing has; empty where it is yet to be made. Holds names
    alone, so that it can travel where plans do.
    """

    manifest: str
    identity: str
    look: str = ""

    @classmethod
    def by(cls, freeze: str | None, identity: str | None) -> "Unsealing | None":
        """The unsealing that two files ask for, None without them. Raises `InputError` if one of them is missing."""
        if not freeze and not identity:
            return None
        if not freeze or not identity:
            alone = "--identity" if identity else "--freeze"
            raise InputError(f"--freeze and --identity: both expected to open a sealed split, {alone} alone found")
        return cls(spelled(freeze), str(Path(identity).resolve()))


class StillSealed(InputError):
    """A sealed split was asked for without a freeze and an identity."""

    def __init__(self, benchmark: str) -> None:
        super().__init__(
            f"the sealed split of {benchmark}: a freeze and an identity expected, none given; first, where nothing is "
            f"sealed yet, `suffice seal {benchmark}`; then `suffice run PROTOCOL --split open`, "
            "`suffice freeze PROTOCOL`, `suffice run PROTOCOL --split sealed --freeze MANIFEST --identity FILE`; "
            "--split open alone runs all that is not sealed"
        )


def opened(plan: "Plan") -> Opened:
    """The sealed split's frames in memory: the one door to them.

    Everything that the plan, this code and this installation would do is compared with the manifest, and the ledger
    gets its line, before a question is seen. Raises `InputError` as `storage.seal.unseal` does, and `StillSealed`.
    """
    with _ALONE:
        look = plan.unsealing.look if plan.unsealing else ""
        return _opened_before(plan) if look else _opened(plan)  # without a look it is a new one, each time


def _opened(plan: "Plan") -> Opened:
    leave = plan.unsealing
    if leave is None:
        raise StillSealed(plan.benchmark)
    present = fields(plan)
    return seal.unseal(
        Lake(plan.lake), present["splits"]["seal"], present, place(leave.manifest), Path(leave.identity), leave.look
    )


_opened_before = lru_cache(maxsize=8)(_opened)

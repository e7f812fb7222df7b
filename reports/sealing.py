"""What must be known beside a sealed split's numbers?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

SHOWN = "complete_evidence"


@dataclass(frozen=True)
class Optimism:
    """How much better an arm did where its protocol was made: open minus sealed, fractions.

    `low, high`: 95 % percentile bootstrap over questions of either split, drawn apart; None where a split has fewer
    than two questions with a value. Conversations are not resampled: splits may share them.
    """

    arm: str
    metric: str
    open: float | None
    sealed: float | None
    difference: float | None
    low: float | None
    high: float | None
    open_n: int
    sealed_n: int


@dataclass(frozen=True)
class Sealing:
    """Under what freeze a sealed split was looked at, and what the ledger had before.

    `changes`: the digest of uncommitted changes at the freeze, None for a clean tree. `vouched`: models that the freeze
    took as versioned on its author's word. `declared`: (arm, against, metric), the primary one first.
    """

    rule: str
    freeze: str
    frozen_at: str
    signer: str
    changes: str | None
    vouched: Sequence[str]
    freezes_before: int
    unsealings_before: int
    clock_behind: bool
    ledger_lines: int
    ledger_head: str
    declared: Sequence[tuple[str, str, str]]
    optimism: Sequence[Optimism] = ()

    def is_declared(self, arm: str, against: str) -> bool:
        """Whether this pair of arms was to be compared before anything was seen."""
        return any({arm, against} == {first, second} for first, second, _ in self.declared)

    def lines(self) -> list[str]:
        """What a report prints, in plain sentences."""
        first = "the first look at it" if not self.unsealings_before else "not the first look at it"
        said = [
            f"Sealed split ({self.rule}); {first}: {_count(self.unsealings_before, 'unsealing')} and "
            f"{_count(self.freezes_before, 'freeze')} came before this freeze's run.",
            f"Freeze {self.freeze[:16]} of {self.frozen_at[:19]}Z; every digest of it equals what ran.",
            f"The ledger's chain holds over {self.ledger_lines} lines; its last hash is {self.ledger_head[:16]}.",
        ]
        if self.signer:
            said.append(
                f"The freeze is signed by the holder of the Ed25519 key {self.signer}, and the signature holds."
            )
        if self.changes:
            said.append(f"Frozen with uncommitted changes, digest {self.changes[:16]}: no commit names this code.")
        if self.vouched:
            said.append(f"Taken as versioned on the author's word: {', '.join(self.vouched)}.")
        if self.clock_behind:
            said.append("A clock was set back between lines of the ledger: times of the ledger are in doubt.")
        said += [
            f"{'Primary' if not place else 'Declared'} comparison: {arm} against {against} on {metric}."
            for place, (arm, against, metric) in enumerate(self.declared)
        ]
        said.append("Every other comparison on this page is exploratory.")
        return said + [_sentence(row) for row in self.optimism if row.metric == SHOWN]


def _sentence(row: Optimism) -> str:
    shown = f"{row.arm}, {row.metric}: open {_percent(row.open)} (n = {row.open_n:,}), "
    shown += f"sealed {_percent(row.sealed)} (n = {row.sealed_n:,})"
    if row.difference is None:
        return shown + "."
    interval = "" if row.low is None or row.high is None else f" [{100 * row.low:+.1f}, {100 * row.high:+.1f}]"
    return f"{shown}; optimism {100 * row.difference:+.1f} points{interval}."


def _percent(value: Any) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"

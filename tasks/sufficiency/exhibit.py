"""What a judge of sufficiency is shown, and nothing else."""

from dataclasses import dataclass

from storage.records import Question

LABELS = ("sufficient", "insufficient", "uncertain")


@dataclass(frozen=True)
class Exhibit:
    """A question without id and kind, its reference answer, and the evidence text, oldest record first, without ids."""

    question: Question
    reference: str
    evidence: str

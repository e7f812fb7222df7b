"""Whether a model finds that evidence suffices, told nothing of where the evidence comes from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tasks.asking import Asking
from tasks.evidence import spoken
from tasks.judges.asked import Ask, Told, first_requests, told
from tasks.judges.replies import label, words
from tasks.llm import Request
from tasks.prompts import Prompt, load
from tasks.provenance import code
from tasks.sufficiency.exhibit import LABELS, Exhibit

OFFERS = ("question", "reference", "evidence", "reference_date", "sufficient", "insufficient", "uncertain")


@dataclass(frozen=True)
class Blinded:
    """A model judge of sufficiency.

    `prompt`: a shipped prompt's name (`blinded`, or `adjudicate` for the third judge) or a file with any of the
    variables `OFFERS`. `words`: what the model is to say for sufficient, insufficient and uncertain. Empty evidence is
    judged like any other. Source: the BFR paper's LLM-Suff@Set (arXiv 2610.09348, section 3); the prompts are this
    project's. Raises `ValueError` for words that do not fit.
    """

    name: ClassVar[str] = "blinded"
    title: ClassVar[str] = "a model that sees question, reference and evidence alone"
    offline: ClassVar[bool] = False

    model: str
    prompt: str = "blinded"
    words: str = "sufficient/insufficient/uncertain"

    def __post_init__(self) -> None:
        words(LABELS, self.words)
        self._prompt()

    def spec(self) -> dict[str, object]:
        """The prompt's digest and the code that reads replies."""
        return {
            "prompt": self._prompt().digest,
            "code": code("tasks.sufficiency.blinded", "tasks.judges.asked", "tasks.judges.replies", "tasks.evidence"),
        }

    def judge_many(self, items: Sequence[Exhibit], asking: Asking) -> Iterator[Told[str] | None]:
        for (vote,) in told(asking, asking.model(self.model), self._asks(items), purpose="sufficiency"):
            yield vote

    def requests(self, items: Sequence[Exhibit], asking: Asking) -> list[Request]:
        """What is sent for `items`, but for repairs."""
        return first_requests(asking.model(self.model), self._asks(items), 1, "sufficiency")

    def _asks(self, items: Sequence[Exhibit]) -> list[Ask[str]]:
        prompt, known = self._prompt(), words(LABELS, self.words)
        own = {name: same[0] for name, same in known.items()}
        return [
            Ask(
                messages=prompt.fill(own | _shown(exhibit)),
                prompt=prompt.digest,
                read=lambda text, cut: label(text, known, cut=cut),
                again=f"Reply with one word and nothing else: {', '.join(own.values())}.",
            )
            for exhibit in items
        ]

    def _prompt(self) -> Prompt:
        return load("sufficiency", self.prompt, OFFERS, needs=("question", "evidence"))


def _shown(exhibit: Exhibit) -> dict[str, str]:
    asked_at = exhibit.question.asked_at
    return {
        "question": exhibit.question.text,
        "reference": exhibit.reference,
        "evidence": exhibit.evidence or "(no records)",
        "reference_date": spoken(asked_at) if asked_at else "an unknown date",
    }

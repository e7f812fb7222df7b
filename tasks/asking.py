"""What a part that asks a model is handed: the protocol's models, and the ledger that keeps their replies."""

from collections.abc import Sequence
from dataclasses import dataclass

from storage.errors import InputError
from tasks.llm import Model, Reply, Request, ask


@dataclass(frozen=True)
class Asking:
    """`lake` holds the ledger; `models` are the protocol's. It knows no questions and no gold."""

    lake: str
    models: tuple[Model, ...] = ()

    def model(self, name: str) -> Model:
        """The model of that name. Raises `InputError` where there is none."""
        for model in self.models:
            if model.name == name:
                return model
        named = ", ".join(model.name for model in self.models) or "a [models.NAME] table in the protocol"
        raise InputError(f"model: {named} expected, {name!r} found")

    def ask(self, requests: Sequence[Request]) -> list[Reply]:
        """One reply a request, in order; those that the ledger holds are not asked again."""
        return ask(self.lake, requests)

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
        named = {model.name: model for model in self.models}
        if name not in named:
            raise InputError(f"model: one of {', '.join(named) or 'the [models] table'} expected, {name!r} found")
        return named[name]

    def ask(self, requests: Sequence[Request]) -> list[Reply]:
        """One reply a request, in order; those that the ledger holds are not asked again."""
        return ask(self.lake, requests)

"""Which requirements does a model see in a question?"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from readers.replies import json_list, text_of
from readers.requirements import Requirement, rules
from readers.types import Access, Step, fallback

PROMPT = "requirements"
KINDS = (
    "entity_anchor",
    "answer_bearing_fact",
    "entity_bridge",
    "temporal_bridge",
    "speaker_bridge",
    "event_bridge",
    "relation_object",
    "list_item",
    "coreference",
    "event_context",
    "temporal_context",
)
MOST = 8
"""Requirements of a question at most; 2^8 concepts bound what follows."""


@dataclass(frozen=True)
class Decomposition:
    """A question's requirements, at least one. `steps`: the fallback where a model's reply could not be used."""

    requirements: tuple[Requirement, ...]
    steps: tuple[Step, ...] = ()


def by_rules(question: str) -> Decomposition:
    """The requirements without a model."""
    return Decomposition(rules(question))


def by_model(question: str, access: Access) -> Decomposition:
    """The requirements that the model names, at most 8, once each; those by rules, and a step that says so, else.

    An unknown kind counts as `answer_bearing_fact`. Source: Li et al. 2026, arXiv 2610.09348v1, §4.1; the prompt is
    this project's own. Inferred: the bound of 8.
    """
    items = json_list(access.ask(PROMPT, question=question), "requirements")
    needs = dict.fromkeys(_needs(items or []))
    if not needs:
        return Decomposition(rules(question), (fallback("no requirements in the reply: those by rules"),))
    named = [Requirement(f"R{place}", text, kind) for place, (text, kind) in enumerate(list(needs)[:MOST], 1)]
    return Decomposition(tuple(named))


def _needs(items: list[Any]) -> Iterator[tuple[str, str]]:
    """(text, kind) of what can be read."""
    for item in items:
        said = item if isinstance(item, dict) else {"description": item}
        text = text_of(said.get("description") or said.get("text"))
        kind = text_of(said.get("type"))
        if text:
            yield text, kind if kind in KINDS else "answer_bearing_fact"

"""The only room for the openai package: every call to a model goes through here."""

from tasks.llm.ask import ask, ledger
from tasks.llm.budget import BudgetStop, budget
from tasks.llm.embed import embed
from tasks.llm.model import KEY_VARIABLE, Message, Model, Reply, Request
from tasks.outcomes import EndpointError

__all__ = [
    "KEY_VARIABLE",
    "BudgetStop",
    "EndpointError",
    "Message",
    "Model",
    "Reply",
    "Request",
    "ask",
    "budget",
    "embed",
    "ledger",
]

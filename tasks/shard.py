"""How a function over one shard of work becomes a Prefect task."""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from prefect import Task, task
from prefect.cache_policies import NO_CACHE

P = ParamSpec("P")
R = TypeVar("R")


def shard(name: str, function: Callable[P, R]) -> Task[P, R]:
    """A task that runs `function`. Prefect caches and persists nothing: the lake's keys decide what is done."""
    options: dict[str, Any] = {"cache_policy": NO_CACHE, "persist_result": False, "log_prints": False}
    return task(name=name, **options)(function)

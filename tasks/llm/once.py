"""How is a thing that a process has one of made once, whichever of its threads ask first?"""

from collections.abc import Callable
from functools import cache, wraps
from threading import RLock
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def once(make: Callable[P, R]) -> Callable[P, R]:
    """`make`, whose result is kept for its arguments, as by `functools.cache`, which lets two threads make two."""
    kept, making = cache(make), RLock()

    @wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> R:
        with making:
            return kept(*args, **kwargs)  # type: ignore[arg-type]

    return made

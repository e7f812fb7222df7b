"""How many replies this process waits for."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass
class Replies:
    """Replies that were asked for since the process began, and those that came. What the ledger held is in neither."""

    wanted: int = 0
    had: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @contextmanager
    def awaited(self, count: int) -> Iterator[Callable[[], None]]:
        """Within the block `count` replies are awaited; call what it gives for each that came."""
        came = 0

        def tell() -> None:
            nonlocal came
            with self._lock:
                came += 1
                self.had += 1

        with self._lock:
            self.wanted += count
        try:
            yield tell
        finally:
            with self._lock:
                self.wanted -= count - came


REPLIES = Replies()
"""Of all asks of this process."""

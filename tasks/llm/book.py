"""How replies reach the ledger from an event loop."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from storage.calls import Ledger


class Book:
    """Writes each row to a ledger at once and syncs it in a thread: one sync serves all that have gathered."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._thread = ThreadPoolExecutor(1, "suffice-ledger")
        self._unsynced: list[asyncio.Future[None]] = []
        self._writer: asyncio.Task[None] | None = None

    async def keep(self, row: dict[str, Any]) -> None:
        """Return once the row is on the disk. Raises what the disk raises."""
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ledger.write([row])
        self._unsynced.append(kept)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._sync())
        await kept

    async def _sync(self) -> None:
        while self._unsynced:
            waiting, self._unsynced = self._unsynced, []
            try:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._ledger.sync)
            except Exception as error:
                for kept in waiting:
                    kept.set_exception(error)
            else:
                for kept in waiting:
                    kept.set_result(None)

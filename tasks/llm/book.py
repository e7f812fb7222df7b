"""How replies reach the ledger from an event loop."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from storage.calls import Ledger


class Book:
    """Writes rows to a ledger in a thread, all that have gathered at a time: one sync serves them together."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._thread = ThreadPoolExecutor(1, "suffice-ledger")
        self._rows: list[tuple[dict[str, Any], asyncio.Future[None]]] = []
        self._writer: asyncio.Task[None] | None = None

    async def keep(self, row: dict[str, Any]) -> None:
        """Return once the row is on the disk. Raises what the disk raises."""
        kept: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._rows.append((row, kept))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        await kept

    async def _write(self) -> None:
        while self._rows:
            batch, self._rows = self._rows, []
            try:
                await asyncio.get_running_loop().run_in_executor(
                    self._thread, self._ledger.append, [row for row, _ in batch]
                )
            except Exception as error:
                for _, kept in batch:
                    kept.set_exception(error)
            else:
                for _, kept in batch:
                    kept.set_result(None)

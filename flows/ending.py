"""How a run ends when it is told to: at once, shown as cancelled, with nothing left running."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from uuid import UUID

SECONDS = 4.0


@contextmanager
def ends_at_once() -> Iterator[None]:
    """Within the block SIGINT and SIGTERM end the process within seconds, whatever its threads are doing.

    That loses nothing: the lake's files are written whole or not at all, and replies of models are kept as they come.
    Prefect alone would wait for every shard under way. Only the main thread can be told; elsewhere nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _end) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):  # the terminal may be closed
        sys.stderr.write("\nsuffice: interrupted; what was computed is kept, run again to go on\n")
        sys.stderr.flush()
    telling = threading.Thread(target=_cancel, args=(_flow_run(),), daemon=True)
    telling.start()
    telling.join(SECONDS)
    _stop_embedded_server()
    os._exit(128 + number)


def _flow_run() -> UUID | None:
    from prefect.context import FlowRunContext

    context = FlowRunContext.get()
    return context.flow_run.id if context and context.flow_run else None


def _cancel(flow_run: UUID | None) -> None:
    """Show the run as cancelled; a server that is gone is told nothing."""
    from prefect.client.orchestration import get_client
    from prefect.states import Cancelled

    with suppress(Exception):
        if flow_run:
            with get_client(sync_client=True) as client:
                client.set_flow_run_state(flow_run, Cancelled(message="interrupted; run again to go on"), force=True)


def _stop_embedded_server() -> None:
    started = sys.modules.get("prefect.server.api.server")  # seconds of imports where this process started none
    if started is None:
        return
    for server in list(started.SubprocessASGIServer._instances.values()):
        if server.server_process:
            server.server_process.kill()

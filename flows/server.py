"""How the embedded Prefect server is set up, before Prefect is imported, and how it ends with its run."""

import os
import subprocess
from pathlib import Path
from typing import Any

_QUIET = {
    "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED": "error",
    "DO_NOT_TRACK": "1",
    "LANCEDB_LOG": "error",
    "PREFECT_LOGGING_TO_API_ENABLED": "false",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_BATCH_SIZE": "500",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "200",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
}


def configure(home: Path, *, verbose: bool = False) -> None:
    """Set what the environment leaves open: a home inside the lake, quiet logs, patient start.

    A `PREFECT_API_URL` in the environment is used as it is; then no server is started. One that is started ends with
    this process, even if that is killed.
    """
    defaults = {
        **_QUIET,
        "PREFECT_HOME": str(home.resolve()),
        "PREFECT_LOGGING_LEVEL": "INFO" if verbose else "CRITICAL",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING" if verbose else "CRITICAL",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    if "PREFECT_API_URL" not in os.environ:
        _end_servers_with_us()


def _end_servers_with_us() -> None:
    """Have the server that Prefect will start for this process watched."""
    from prefect.server.api.server import SubprocessASGIServer

    class Watched(SubprocessASGIServer):
        def _run_uvicorn_command(self) -> "subprocess.Popen[Any]":
            process = super()._run_uvicorn_command()
            ends_with_us(process.pid)
            return process

    Watched()  # there is one of a process, the first that is made


_WATCH = """read -r _
{ cat "/proc/$1/cmdline" 2>/dev/null || ps -o args= -p "$1"; } | grep -aq prefect.server && kill -9 "$1" """


def ends_with_us(server: int) -> None:
    """Kill the process `server`, if it is a Prefect server still, once this process has ended, however it ends.

    A small shell waits at a pipe of which only this process holds the other end: the system closes it in any case.
    """
    watch = subprocess.Popen(
        ["sh", "-c", _WATCH, "sh", str(server)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _WATCHES.append(watch)


_WATCHES: "list[subprocess.Popen[bytes]]" = []

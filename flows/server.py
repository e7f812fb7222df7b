"""How the embedded Prefect server is set up, before Prefect is imported."""

import os
from pathlib import Path

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

    A `PREFECT_API_URL` in the environment is used as it is; then no server is started.
    """
    defaults = {
        **_QUIET,
        "PREFECT_HOME": str(home.resolve()),
        "PREFECT_LOGGING_LEVEL": "INFO" if verbose else "CRITICAL",
        "PREFECT_SERVER_LOGGING_LEVEL": "WARNING" if verbose else "CRITICAL",
    }
    for name, value in defaults.items():
        os.environ.setdefault(name, value)

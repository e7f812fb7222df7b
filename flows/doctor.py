"""What is installed, which models and endpoints answer, and how to get what is missing."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import httpx

from storage.errors import InputError
from tasks.encoders.minilm import MiniLm
from tasks.llm import KEY_VARIABLE

_PACKAGES = (
    "prefect",
    "lancedb",
    "pyarrow",
    "polars",
    "numpy",
    "numba",
    "onnxruntime",
    "openai",
    "vl-convert-python",
)


class Check(NamedTuple):
    """One thing that was looked at. `remedy` is empty where it is well."""

    ok: bool
    name: str
    found: str
    remedy: str


def checks(endpoints: Sequence[str]) -> list[Check]:
    """Python, packages, the offline encoder, a Prefect server and a key if the environment names them, endpoints."""
    rows = [_python(), *map(_package, _PACKAGES), _encoder(), _key()]
    server = os.environ.get("PREFECT_API_URL")
    if server:
        rows.append(_answers("Prefect server", f"{server.rstrip('/')}/health", lambda reply: "healthy"))
    rows += [_endpoint(url) for url in endpoints]
    return rows


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    return Check(sys.version_info >= (3, 11), "Python 3.11 or newer", found, "")


def _package(name: str) -> Check:
    try:
        return Check(True, name, version(name), "")
    except PackageNotFoundError:
        return Check(False, name, "not installed", f"pip install {name}")


def _encoder() -> Check:
    try:
        width = MiniLm().encode(["a test"]).shape[1]
        return Check(True, "offline encoder minilm", f"answers, {width} dimensions", "")
    except InputError as error:
        return Check(False, "offline encoder minilm", str(error), "reinstall Suffice with its constraints file")


def _key() -> Check:
    given = "set" if os.environ.get(KEY_VARIABLE) else "not set (offline parts need none)"
    return Check(True, f"key in {KEY_VARIABLE}", given, "")


def _endpoint(url: str) -> Check:
    def models(reply: httpx.Response) -> str:
        names: Iterator[str] = (str(item["id"]) for item in reply.json()["data"])
        return ", ".join(names) or "no models"

    return _answers(f"endpoint {url}", f"{url.rstrip('/')}/models", models)


def _answers(name: str, url: str, read: Callable[[httpx.Response], str]) -> Check:
    key = os.environ.get(KEY_VARIABLE)
    try:
        reply = httpx.get(url, timeout=10.0, headers={"Authorization": f"Bearer {key}"} if key else {})
        reply.raise_for_status()
        return Check(True, name, read(reply), "")
    except httpx.HTTPStatusError as error:
        return Check(
            False,
            name,
            f"status {error.response.status_code}",
            f"check the key in {KEY_VARIABLE} and the URL",
        )
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        return Check(False, name, f"no usable reply ({type(error).__name__})", "start it, or check the URL")

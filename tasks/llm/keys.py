"""Where an endpoint is and which key opens it."""

import os
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from storage.errors import InputError
from tasks.llm.local import LOCAL, local_url
from tasks.llm.model import Model

PUBLIC = "https://api.openai.com/v1"
_BLOCK = "prefect:"


def address(base_url: str) -> str:
    """The base URL that is asked: the given one, else OPENAI_BASE_URL, else the public API.

    `local` starts the model of this process. Raises `InputError` where its extra is not installed.
    """
    if base_url == LOCAL:
        return local_url()
    return (base_url or os.environ.get("OPENAI_BASE_URL") or PUBLIC).rstrip("/")


def shown(base_url: str) -> str:
    """A base URL without user, password or query, as it may be kept and shown."""
    parts = urlsplit(base_url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def key(model: Model) -> str:
    """The key of a model's endpoint, from the environment or a Prefect secret block; "none" where none is set.

    Raises `InputError` where the public API is asked without a key or the block cannot be read.
    """
    name = model.key_variable
    found = _secret(model.name, name.removeprefix(_BLOCK)) if name.startswith(_BLOCK) else os.environ.get(name)
    if not found and address(model.base_url) == PUBLIC:
        raise InputError(f"model {model.name}: a key in the environment variable {name} expected, none found")
    return found or "none"


@cache
def _secret(model: str, block: str) -> str:
    """What a block holds, read once a process."""
    from prefect.blocks.system import Secret

    kind: Any = Secret
    try:
        return str(kind.load(block, _sync=True).get())
    except Exception as error:
        raise InputError(
            f"model {model}: a Prefect secret block {block!r} expected, none read ({type(error).__name__}); "
            f"create it, or name an environment variable in key_variable"
        ) from None

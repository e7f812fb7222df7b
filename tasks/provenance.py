"""Which source made a value: digests of the code behind a stage."""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from storage.digests import tree_digest


@cache
def code(*modules: str) -> str:
    """The digest of the sources of modules and of whole packages, whatever folder they are installed in.

    A stage whose code changed has another address and is computed anew; nothing stale is served.
    """
    files: list[tuple[str, Path]] = []
    for name in modules:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"no source of {name}", name=name)
        origin = Path(spec.origin)
        if origin.name == "__init__.py":
            root = origin.parent
            files += [(f"{name}/{path.relative_to(root).as_posix()}", path) for path in root.rglob("*.py")]
        else:
            files.append((name, origin))
    return tree_digest(files)

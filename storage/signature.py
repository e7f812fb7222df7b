"""Who stands by a manifest: Ed25519 signatures of its digest. Needs the extra `sign`."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from storage.errors import InputError


def sign(digest: str, key: Path) -> str:
    """The signature of a digest, in hex, by an Ed25519 private key in PEM. Raises `InputError` for another file."""
    return str(_private(key).sign(digest.encode("ascii")).hex())


def signer(key: Path) -> str:
    """Who signs with a private key: its public key, in hex. Raises `InputError` as `sign` does."""
    return str(_private(key).public_key().public_bytes_raw().hex())


def check_signer(digest: str, signature: str | None, public: str | None) -> None:
    """Raises `InputError` unless a digest that names its signer (`public`, hex) is signed by it, and no other is."""
    if public is None and signature is None:
        return
    if public and signature:
        _need()
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(
                bytes.fromhex(signature), digest.encode("ascii")
            )
        except (InvalidSignature, ValueError, TypeError):
            pass
        else:
            return
    expected = (
        f"a signature by the key {public[:16]}…" if public else "no signature, since the manifest names no signer,"
    )
    raise InputError(
        f"freeze: {expected} expected, {'another' if signature else 'none'} found; "
        "use the manifest as it was written, or freeze anew with --sign KEY"
    )


def check(digest: str, signature: str | None, key: Path) -> None:
    """Raises `InputError` unless the signature is that of the digest by the holder of a public key in PEM."""
    _need()
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    found = _loaded(key, "public", load_pem_public_key)
    if not isinstance(found, Ed25519PublicKey):
        raise InputError(f"--public-key: an Ed25519 public key expected in {key}, another kind found")
    try:
        found.verify(bytes.fromhex(signature or ""), digest.encode("ascii"))
    except (InvalidSignature, ValueError) as error:
        what = "another" if signature else "none"
        raise InputError(f"verify: a signature by the key in {key} expected, {what} found") from error


def _private(key: Path) -> Any:
    _need()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    found = _loaded(key, "private", lambda data: load_pem_private_key(data, None))
    if not isinstance(found, Ed25519PrivateKey):
        raise InputError(f"--sign: an Ed25519 private key expected in {key}, another kind found")
    return found


def _need() -> None:
    if find_spec("cryptography") is None:
        raise InputError("signatures: the package cryptography expected, none found; pip install 'suffice[sign]'")


def _loaded(path: Path, what: str, load: Any) -> Any:
    try:
        return load(path.read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"a {what} key (PEM, Ed25519, no passphrase) expected in {path}, none found") from error

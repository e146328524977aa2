"""Signs records with Ed25519 keys from PKCS#8 PEM files: base64 signatures of their
canonical JSON.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from cardsync.platform import errors

KEY_FILE = "release-key.pem"
# The signed bytes of a workflow pack begin with this prefix, the signed bytes of a release never
# do. So no signature is valid both for a release and for a pack.
PACK_DOMAIN = b"cardsync workflow pack v1\n"


def canonical(record: Mapping[str, object]) -> bytes:
    """Return the record as JSON with sorted keys, no spaces, in UTF-8."""
    return json.dumps(
        record,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    ).encode()


def sign(key: Ed25519PrivateKey, data: bytes) -> str:
    return base64.b64encode(key.sign(data)).decode()


def public_key_of(key: Ed25519PrivateKey) -> str:
    """Return the public key that agents pin."""
    return base64.b64encode(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()


def make_key(folder: Path) -> tuple[Path, str]:
    """Make a new key file that only its owner can read, and return it with its public key.

    An existing file is never overwritten.
    """
    key = Ed25519PrivateKey.generate()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / KEY_FILE
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise errors.CommandError(
            f"{path} exists; a key that agents pin is never overwritten"
        ) from None
    with os.fdopen(handle, "wb") as file:
        file.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        file.flush()
        os.fsync(file.fileno())
    return path, public_key_of(key)


def load_key(path: Path) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise errors.CommandError(
            f"{path} is not an unencrypted private key in PEM format; `cardsync admin release keygen` creates one"
        ) from None
    if not isinstance(key, Ed25519PrivateKey):
        raise errors.CommandError(f"{path} is not an Ed25519 key")
    return key

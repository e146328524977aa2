"""Reads or creates the installation's secret, and derives keys from it.

Whoever has the secret can sign in as anybody: it must stay out of the database, of logs and of
answers.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cardsync.platform.settings import Settings


def secret_key(settings: Settings) -> bytes:
    """Return SECRET_KEY, or else 32 random bytes that are created once and stored in DATA_DIR. Two
    processes that start together get the same bytes.
    """
    if settings.secret_key:
        return settings.secret_key.encode()
    path = key_file(settings)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _make(path)
    return path.read_bytes()


def key_file(settings: Settings) -> Path:
    """Return the file of the secret, which is used if SECRET_KEY is not set."""
    return settings.data_dir / "secret.key"


def former_file(settings: Settings) -> Path:
    """Return the file of the previous secret during a rotation."""
    return settings.data_dir / "secret.key.former"


def former_secrets(settings: Settings) -> list[bytes]:
    """Return the previous secret if some data may still be sealed with the previous secret. The
    previous secret unseals data and has no other use.
    """
    found = settings.former_secret_key.encode() if settings.former_secret_key else b""
    if not settings.secret_key:
        with suppress(FileNotFoundError):
            found = former_file(settings).read_bytes()
    return [found] if found and found != secret_key(settings) else []


def begin_rotation(settings: Settings, announce: Callable[[bytes], None]) -> None:
    """Replace the secret in its file; the new secret's seal is announced first. A killed rotation
    continues where it stopped.
    """
    path, former = key_file(settings), former_file(settings)
    new = path.with_name("secret.key.next")
    if not former_secrets(settings):
        secret_key(settings)
        if not new.exists():
            _make(new)
        announce(seal_of(new.read_bytes()))
        former.unlink(missing_ok=True)
        os.link(path, former)
    if new.exists():
        new.replace(path)


def end_rotation(settings: Settings) -> None:
    """Delete the previous secret."""
    former_file(settings).unlink(missing_ok=True)


def _make(path: Path) -> None:
    draft = path.with_name(f".secret-{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def set_up_token(settings: Settings) -> str:
    """Return the token that opens the set-up if the settings have none."""
    return derived(settings, "set-up").hex()[:40]


def seal(settings: Settings) -> bytes:
    """Return the key by which the database recognizes a process of this installation."""
    return seal_of(secret_key(settings))


def seal_of(secret: bytes) -> bytes:
    return _derived(secret, "seal")


def derived(settings: Settings, use: str) -> bytes:
    """Return the key for one use; the keys of other uses cannot be derived from it."""
    return _derived(secret_key(settings), use)


def derived_before(settings: Settings, use: str) -> list[bytes]:
    """Return the keys for this use from previous secrets."""
    return [_derived(former, use) for former in former_secrets(settings)]


def _derived(secret: bytes, use: str) -> bytes:
    return hmac.digest(secret, f"cardsync {use}".encode(), "sha256")

"""Reads or makes the installation's secret, and derives keys from it.

Whoever knows the secret can sign in as anybody: it stays out of the database, of logs and of
answers.
"""

from __future__ import annotations

import hmac
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cardsync.settings import Settings


def secret_key(settings: Settings) -> bytes:
    """Return SECRET_KEY, else 32 random bytes made once and kept in DATA_DIR; two processes that
    start at once agree.
    """
    if settings.secret_key:
        return settings.secret_key.encode()
    path = key_file(settings)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        _make(path)
    return path.read_bytes()


def key_file(settings: Settings) -> Path:
    """Return the file that keeps the secret where SECRET_KEY is not set."""
    return settings.data_dir / "secret.key"


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
    """Return the token that opens the set-up where the settings name none."""
    return derived(settings, "set-up").hex()[:40]


def seal(settings: Settings) -> bytes:
    """Return the key by which the database knows that a process of this installation asks it."""
    return derived(settings, "seal")


def derived(settings: Settings, use: str) -> bytes:
    """Return the key of one use, which tells nothing of those of others."""
    return hmac.digest(secret_key(settings), f"cardsync {use}".encode(), "sha256")

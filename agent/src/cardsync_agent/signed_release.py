"""Checks an offered update against the pinned keys: returns a Release that a pinned key signed, or
raises Untrusted with the reason. Pure.

There are two signatures: with only a signature of the bytes, a person who controls the server could
serve an old signed build. The record binds version, platform, expiry and the bytes' SHA-256
together.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from packaging.version import InvalidVersion, Version

from cardsync_agent.client import Offer

# Python, Go, Docker, Windows and Apple use these names for the same machines; the server compares
# by the same table.
_ALIASES = {
    "x86_64": "amd64",
    "x64": "amd64",
    "aarch64": "arm64",
    "i686": "386",
    "i386": "386",
    "x86": "386",
    "macos": "darwin",
    "osx": "darwin",
    "win32": "windows",
}


class Untrusted(Exception):
    """The update, or the workflow pack, must not be used; the message gives the reason."""


@dataclass(frozen=True)
class Release:
    version: Version
    platform: str
    sha256: str
    min_from: Version | None
    expires_at: datetime


def read_key(text: str) -> Ed25519PublicKey:
    """Parse a pinned key as `cardsync admin release keygen` prints it. Raises ValueError."""
    return Ed25519PublicKey.from_public_bytes(base64.b64decode(text.strip(), validate=True))


def same_platform(platform: str) -> str:
    return "/".join(_ALIASES.get(part, part) for part in platform.strip().lower().split("/"))


def trusted(
    offer: Offer, keys: Sequence[Ed25519PublicKey], installed: str, platform: str, now: datetime
) -> Release:
    """Return the offered release, if a pinned key signed its record and the record fits this
    installation.
    """
    # Nothing of the record is used before its signature is verified.
    if not is_signed(keys, offer.record_signature, canonical(offer.record)):
        raise Untrusted("no pinned key has signed its record")
    release, current = _read(offer.record), Version(installed)
    if release.version <= current:
        raise Untrusted(f"it is version {release.version}, which is not newer than {current}")
    if same_platform(release.platform) != same_platform(platform):
        raise Untrusted(f"it is for {release.platform}, and this is {platform}")
    if release.expires_at <= now:
        raise Untrusted(f"its record expired at {release.expires_at.isoformat()}")
    if release.min_from is not None and current < release.min_from:
        raise Untrusted(f"it can only be installed over {release.min_from} or newer")
    if release.sha256 != offer.sha256:
        raise Untrusted("its record is about other bytes")
    return release


def check_bytes(
    release: Release, offer: Offer, keys: Sequence[Ed25519PublicKey], content: bytes
) -> None:
    if hashlib.sha256(content).hexdigest() != release.sha256:
        raise Untrusted("the bytes that came are not those of its record (SHA-256)")
    if not is_signed(keys, offer.signature, content):
        raise Untrusted("no pinned key has signed its bytes")


def is_signed(keys: Sequence[Ed25519PublicKey], signature: str, data: bytes) -> bool:
    try:
        raw = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return False
    return any(_verifies(key, raw, data) for key in keys)


def _verifies(key: Ed25519PublicKey, signature: bytes, data: bytes) -> bool:
    try:
        key.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def canonical(record: dict[str, Any]) -> bytes:
    """Format a record or a pack with sorted keys, without spaces, in UTF-8. Raises Untrusted."""
    try:
        return json.dumps(
            record, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        ).encode()
    except ValueError as trouble:  # the text contains half a surrogate pair
        raise Untrusted("a part of it is no text") from trouble


def _read(record: dict[str, Any]) -> Release:
    """Parse a signed record, which may still have an unexpected form."""
    try:
        min_from = record.get("min_from")
        expires_at = datetime.fromisoformat(record["expires_at"])
        release = Release(
            version=Version(record["version"]),
            platform=str(record["platform"]),
            sha256=str(record["sha256"]),
            min_from=None if min_from is None else Version(min_from),
            expires_at=expires_at if expires_at.tzinfo else expires_at.replace(tzinfo=UTC),
        )
    except (KeyError, TypeError, ValueError, InvalidVersion) as trouble:
        raise Untrusted(f"its record cannot be read ({type(trouble).__name__})") from trouble
    if not re.fullmatch("[0-9a-f]{64}", release.sha256):
        raise Untrusted("its record names no SHA-256")
    return release

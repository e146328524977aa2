"""Signs webhooks according to the Standard Webhooks specification, and makes and seals their
secrets.

Secrets are stored encrypted (sealed), so that a copy of the database is not enough to sign
messages. The encryption key is derived from the installation's secret (`platform/secret.py`).
"""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from cardsync.platform.secret import derived, derived_before
from cardsync.platform.settings import Settings

_PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_USE: Final = "webhooks"


class Unsealed(Exception):
    """A secret can't be decrypted, because it was sealed with another installation secret."""


def new_secret() -> str:
    return _PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def new_message_id() -> str:
    return f"msg_{secrets.token_hex(16)}"


def signed_headers(
    valid: Sequence[str],
    message_id: str,
    timestamp: int,
    body: bytes,
) -> dict[str, str]:
    """Return the headers of a message, with one signature for each of the secrets `valid`.
    `timestamp` is in seconds.
    """
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(
            _signature(secret, message_id, timestamp, body) for secret in valid
        ),
    }


def _signature(
    secret: str,
    message_id: str,
    timestamp: int,
    body: bytes,
) -> str:
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    return f"v1,{base64.b64encode(hmac.digest(key, signed, 'sha256')).decode()}"


def sealed(
    settings: Settings,
    seller_id: int,
    secret: str,
) -> bytes:
    nonce = secrets.token_bytes(_NONCE_BYTES)
    box = AESGCM(derived(settings, _USE))
    return nonce + box.encrypt(nonce, secret.encode(), str(seller_id).encode())


def unsealed(
    settings: Settings,
    seller_id: int,
    kept: bytes,
) -> str:
    """Return the decrypted secret. Raises Unsealed."""
    nonce, rest = kept[:_NONCE_BYTES], kept[_NONCE_BYTES:]
    for key in (derived(settings, _USE), *derived_before(settings, _USE)):
        with suppress(InvalidTag):
            return AESGCM(key).decrypt(nonce, rest, str(seller_id).encode()).decode()
    raise Unsealed

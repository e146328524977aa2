"""Makes, checks, revokes and lists API keys. A key is shown once; only its hash is stored.

A key consists of `csk_`, 32 random base62 characters, and the base62 CRC-32 of both. So a mistyped
key is refused without a query.
"""

from __future__ import annotations

import hashlib
import secrets
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import sealed
from cardsync.access.models import ApiKey
from cardsync.platform import clock
from cardsync.platform.database.read_sources import Source, rows_as

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PREFIX = "csk_"
_RANDOM = 32
_CHECK = 6
LENGTH = len(PREFIX) + _RANDOM + _CHECK


def base62(number: int, width: int) -> str:
    digits = ""
    while number:
        number, rest = divmod(number, 62)
        digits = ALPHABET[rest] + digits
    return digits.rjust(width, "0")


def checksum(head: str) -> str:
    return base62(zlib.crc32(head.encode()), _CHECK)


def new_key() -> str:
    return new_secret(PREFIX)


def new_secret(prefix: str) -> str:
    head = prefix + "".join(secrets.choice(ALPHABET) for _ in range(_RANDOM))
    return head + checksum(head)


def is_well_formed(key: str, prefix: str = PREFIX) -> bool:
    head, check = key[:-_CHECK], key[-_CHECK:]
    return (
        len(key) == LENGTH and key.startswith(prefix) and key.isascii() and checksum(head) == check
    )


def key_hash(key: str) -> bytes:
    # A key has 190 random bits, so one SHA-256 is enough. A slow hash would only slow down the
    # agents' polls.
    return hashlib.sha256(key.encode()).digest()


@dataclass(frozen=True)
class MintedKey:
    key_id: int
    api_key: str


async def mint(session: AsyncSession, seller_id: int, name: str) -> MintedKey:
    key = new_key()
    return MintedKey(await sealed.add_key(session, seller_id, name, key_hash(key)), key)


async def replace(
    session: AsyncSession, seller_id: int, key_id: int, ends_at: datetime
) -> MintedKey | None:
    """Make a key with the same name as the old key. The old key works until the first use of the
    new one, and until `ends_at` at most. Return None if the old key is revoked or is already being
    replaced.
    """
    key = new_key()
    made = await sealed.replace_key(session, seller_id, key_id, key_hash(key), ends_at)
    return None if made is None else MintedKey(made, key)


async def revoke(session: AsyncSession, key_id: int) -> bool:
    """Revoke the key and return whether it exists. A second revocation keeps the first timestamp."""
    seller_id = await session.scalar(select(ApiKey.seller_id).where(ApiKey.id == key_id))
    if seller_id is None:
        return False
    await sealed.end_keys(session, seller_id, clock.now(), key_id)
    return True


class ListedKey(NamedTuple):
    """A key in the seller's list. A key that was replaced and has ended counts as revoked, so
    `ends_at` is set only if it is in the future. The loss limits do not count the changes of an
    `own_script`.
    """

    key_id: int
    name: str
    created_at: datetime
    revoked_at: datetime | None
    ends_at: datetime | None
    own_script: bool


async def listed(source: Source, seller_id: int) -> list[ListedKey]:
    """Return a seller's keys, oldest first."""
    now = clock.now()
    rows = await rows_as(source, ApiKey, seller_id, "ORDER BY id")
    return [_listed(key, now) for key in rows]


def _listed(key: ApiKey, now: datetime) -> ListedKey:
    ended = key.ends_at is not None and key.ends_at <= now
    revoked_at = key.revoked_at or (key.ends_at if ended else None)
    ends_at = None if revoked_at else key.ends_at
    return ListedKey(key.id, key.name, key.created_at, revoked_at, ends_at, key.own_script)

"""Finds the caller of a token that an assistant or a script sends, and mints, revokes and lists
tokens. A token is shown once and never stored.

A token looks like a key with another prefix. As with keys, a process remembers only whose token it
is; each request reads whether the token is still valid.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock, errors
from cardsync.access import keys, sealed
from cardsync.access.caller import Caller, Identity, KeyRing, caller_query, read_row
from cardsync.access.known_seller import known_seller
from cardsync.access.models import AccessToken
from cardsync.database.session import Database

PREFIX: Final = "cst_"
READ: Final = "mcp:read"
WRITE: Final = "mcp:write"
SCOPES: Final = (READ, WRITE)
OWNER_SQL: Final = "SELECT seller_id, id FROM access_token WHERE token_hash = %s"
TOKEN_CALLER = caller_query(
    "token_caller",
    "JOIN access_token t ON t.seller_id = a.seller_id AND t.id = $2 AND t.revoked_at IS NULL",
    "t.scopes",
    "t.expires_at",
)


def tokens_of(database: Database) -> KeyRing:
    """Which token a text is."""
    return KeyRing(database, sql=OWNER_SQL)


def of_header(header: str | None) -> str | None:
    """The token from an Authorization header, if it holds one that is well formed."""
    scheme, _, text = (header or "").partition(" ")
    text = text.strip()
    well_formed = scheme.lower() == "bearer" and keys.is_well_formed(text, PREFIX)
    return text if well_formed else None


async def owner_of_token(ring: KeyRing, token: str) -> tuple[int, int]:
    """(seller, token id); the token may be revoked since. Raises Unauthorized."""
    owner = await ring.owner(token)
    if owner is None:
        raise errors.Unauthorized.challenge(credentials_sent=True)
    return owner


async def caller_with_token(database: Database, seller_id: int, token_id: int) -> Caller:
    """Raises Unauthorized for a token that was revoked or has expired, and AccountSuspended."""
    row = await database.polled.first_row(seller_id, TOKEN_CALLER, token_id)
    if row is None:
        raise errors.Unauthorized.challenge(credentials_sent=True)
    account, state, (scopes, expires_at) = read_row(row)
    if expires_at is not None and clock.now() >= expires_at:
        raise errors.Unauthorized.challenge(credentials_sent=True)
    if account.suspended:
        raise errors.AccountSuspended
    identity = Identity(seller_id, "token", token_id, scopes=frozenset(scopes))
    return Caller(identity, account, state)


class MintedToken(NamedTuple):
    token_id: int
    token: str


async def mint(
    session: AsyncSession,
    seller_id: int,
    name: str,
    scopes: Iterable[str],
    now: datetime,
    days: int | None = None,
) -> MintedToken:
    """A token that is valid for `days`, or until it is revoked. Raises for an unknown seller."""
    await known_seller(session, seller_id)
    token = keys.new_secret(PREFIX)
    expires_at = None if days is None else now + timedelta(days=days)
    token_id = await sealed.add_token(
        session, seller_id, name, keys.key_hash(token), sorted(set(scopes)), now, expires_at
    )
    return MintedToken(token_id, token)


async def revoke(session: AsyncSession, token_id: int, now: datetime) -> bool:
    """True when the token exists; revoking twice keeps the first time."""
    seller_id = await session.scalar(
        select(AccessToken.seller_id).where(AccessToken.id == token_id)
    )
    if seller_id is None:
        return False
    await sealed.end_tokens(session, seller_id, now, token_id)
    return True


async def listed(session: AsyncSession, seller_id: int) -> list[AccessToken]:
    """A seller's tokens, oldest first."""
    await known_seller(session, seller_id)
    query = select(AccessToken).where(AccessToken.seller_id == seller_id)
    return list(await session.scalars(query.order_by(AccessToken.id)))


def need_scope(scopes: Collection[str], needed: str) -> None:
    """Raises InsufficientScope."""
    if needed not in scopes:
        raise errors.InsufficientScope.of(needed)

"""Finds the caller of a token that an assistant or a script sends, and makes, revokes and lists
tokens. A token is shown once; only its hash is stored.

A token looks like an API key with another prefix. As with keys, a process caches only which seller
and grant a token belongs to; each request reads whether the token is still valid. When a grant
ends, or the owner who gave it loses that role, the same transaction ends the grant's tokens. So a
request with a token reads no more rows than one with a key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import keys, sealed
from cardsync.access.caller import Caller, Identity, KeyRing, caller_query, read_row
from cardsync.access.each_seller import known_seller
from cardsync.access.entitlements import is_paid
from cardsync.access.grant_models import OAuthGrant
from cardsync.access.models import AccessToken
from cardsync.platform import clock, errors
from cardsync.platform.database.session import Database

PREFIX: Final = "cst_"
OWNER_SQL: Final = "SELECT seller_id, id, grant_id FROM access_token WHERE token_hash = %s"
TOKEN_CALLER = caller_query(
    "token_caller",
    "JOIN access_token t ON t.seller_id = a.seller_id AND t.id = $2 AND t.revoked_at IS NULL",
    "t.scopes",
    "t.expires_at",
    "t.grant_id",
    "t.audience",
    "t.buyer_data",
    "t.last_used_at",
)
# The least time between two writes of a grant's last use.
_NOTED: Final = timedelta(seconds=60)


class TokenOwner(NamedTuple):
    """The seller and grant of a token. All tokens of a grant share its rate limits."""

    seller_id: int
    token_id: int
    grant_id: int | None


def tokens_of(database: Database) -> KeyRing:
    """Return the cache of tokens, by the hash of their text."""
    return KeyRing(database, sql=OWNER_SQL)


def of_header(header: str | None) -> str | None:
    """Return the token of an Authorization header, if it is well formed."""
    scheme, _, text = (header or "").partition(" ")
    text = text.strip()
    well_formed = scheme.lower() == "bearer" and keys.is_well_formed(text, PREFIX)
    return text if well_formed else None


async def owner_of_token(ring: KeyRing, token: str) -> TokenOwner:
    """Return the seller and grant of a token, which may have been revoked. Raises Unauthorized."""
    owner = await ring.row(token)
    if owner is None:
        raise errors.Unauthorized.challenge(credentials_sent=True)
    return TokenOwner(*owner)


async def caller_with_token(
    database: Database, seller_id: int, token_id: int, audience: str
) -> Caller:
    """Return the caller of a token. `audience` is the address by which the request reached this
    service (see `audience.py`).

    Raises Unauthorized if the token is revoked, expired or for another audience, or if its grant
    ended. Raises AccountSuspended. Raises PaidPlanRequired for a grant's token if the account is
    not on a paid plan.
    """
    row = await database.polled.first_row(seller_id, TOKEN_CALLER, token_id)
    if row is None:
        raise errors.Unauthorized.challenge(credentials_sent=True)
    account, state, columns = read_row(row)
    scopes, expires_at, grant_id, its_audience, buyer_data, last_used_at = columns
    now = clock.now()
    past = expires_at is not None and now >= expires_at
    if past or (grant_id is not None and its_audience != audience):
        raise errors.Unauthorized.challenge(credentials_sent=True)
    if account.suspended:
        raise errors.AccountSuspended
    if grant_id is None:
        identity = Identity(seller_id, "token", token_id, scopes=frozenset(scopes))
        return Caller(identity, account, state)
    if not is_paid(account.plan, account.trial_ends_at, now):
        raise errors.PaidPlanRequired(
            "assistants need a paid plan, and this account does not have one"
        )
    if last_used_at is None or now - last_used_at >= _NOTED:
        await _note_use(database, seller_id, token_id, grant_id, now)
    identity = Identity(
        seller_id,
        "token",
        token_id,
        scopes=frozenset(scopes),
        grant_id=grant_id,
        sees_buyers=buyer_data,
    )
    return Caller(identity, account, state)


async def _note_use(
    database: Database, seller_id: int, token_id: int, grant_id: int, now: datetime
) -> None:
    async with database.tenant(seller_id) as session:
        for used, id in ((AccessToken, token_id), (OAuthGrant, grant_id)):
            query = update(used).where(used.seller_id == seller_id, used.id == id)
            await session.execute(query.values(last_used_at=func.greatest(used.last_used_at, now)))


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
    """Make a token that is valid for `days`, or until it is revoked. Raises CommandError for an
    unknown seller.
    """
    await known_seller(session, seller_id)
    token = keys.new_secret(PREFIX)
    expires_at = None if days is None else now + timedelta(days=days)
    token_id = await sealed.add_token(
        session, seller_id, name, keys.key_hash(token), sorted(set(scopes)), now, expires_at
    )
    return MintedToken(token_id, token)


async def revoke(session: AsyncSession, token_id: int, now: datetime) -> bool:
    """Revoke the token and return whether it exists. A second revocation keeps the first timestamp."""
    seller_id = await session.scalar(
        select(AccessToken.seller_id).where(AccessToken.id == token_id)
    )
    if seller_id is None:
        return False
    await sealed.end_tokens(session, seller_id, now, token_id)
    return True


async def listed(session: AsyncSession, seller_id: int) -> list[AccessToken]:
    """Return a seller's tokens that do not belong to a grant, oldest first."""
    await known_seller(session, seller_id)
    query = select(AccessToken).where(
        AccessToken.seller_id == seller_id, AccessToken.grant_id.is_(None)
    )
    return list(await session.scalars(query.order_by(AccessToken.id)))


def need_scope(scopes: Collection[str], needed: str, metadata_url: str) -> None:
    """Check the scopes of a token. Raises InsufficientScope, which names the address of the
    metadata.
    """
    if needed not in scopes:
        raise errors.InsufficientScope.of(needed, metadata_url)

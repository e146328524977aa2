"""Lists a shop's grants for its owner, sets their permission modes, and revokes grants. Deletes
expired codes, tokens and clients, and unused grants.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import sealed
from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.grant_models import OAuthGrant, RefreshToken
from cardsync.access.models import Member
from cardsync.assistant.oauth import clients
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, each_of, rows_as
from cardsync.platform.database.session import Database
from cardsync.platform.read_json import read
from cardsync.prices.loss.decide import Mode
from cardsync.prices.plans import permissions
from cardsync.prices.plans.actions import ActionType

Modes = dict[ActionType, Mode]


class ModesGiven(msgspec.Struct):
    """Permission modes by kind of action. Null resets one to the mode of all tokens."""

    modes: dict[ActionType, Mode | None]


class NamedGrant(NamedTuple):
    """A valid grant, the name of the owner who gave it, and the grant's own permission modes."""

    grant: OAuthGrant
    member_name: str
    modes: Modes


async def listed(source: Source, caller: Caller) -> list[NamedGrant]:
    """Return the valid grants, newest first. Raises OwnerRequired."""
    caller.must_be_owner()
    valid = "AND revoked_at IS NULL ORDER BY id DESC"
    grants, members = await each_of(
        source,
        rows_as(source, OAuthGrant, caller.seller_id, valid),
        rows_as(source, Member, caller.seller_id, "AND role = 'owner'"),
    )
    names: dict[int | None, str] = {member.id: member.name for member in members}
    known = [grant for grant in grants if grant.member_id in names]
    modes = await each_of(
        source,
        *(permissions.grant_modes(source, caller.seller_id, grant.id) for grant in known),
    )
    return [
        NamedGrant(grant, names[grant.member_id], own)
        for grant, own in zip(known, modes, strict=True)
    ]


async def change_modes(
    session: AsyncSession,
    caller: Caller,
    grant_id: int,
    body: Mapping[str, object],
    now: datetime,
) -> Modes:
    """Set the permission modes of a grant that the body names. The value None resets a mode to the
    mode of all tokens. Return the grant's own modes. Raises OwnerRequired, InvalidPayload,
    NotFound.
    """
    caller.must_be_owner()
    modes = read(body, ModesGiven).modes
    await _locked(session, caller, grant_id)
    return await permissions.change_grant(session, caller, grant_id, modes, now)


async def _locked(session: AsyncSession, caller: Caller, grant_id: int) -> OAuthGrant:
    caller.must_be_owner()
    own = (OAuthGrant.seller_id == caller.seller_id) & (OAuthGrant.id == grant_id)
    grant = await session.scalar(select(OAuthGrant).where(own).with_for_update())
    if grant is None:
        raise errors.NotFound(f"there is no assistant {grant_id}")
    return grant


async def revoke(session: AsyncSession, caller: Caller, grant_id: int, now: datetime) -> None:
    """Revoke a grant. From the next request on, every process refuses the grant's tokens. A second
    revocation changes nothing. Raises OwnerRequired, NotFound.
    """
    grant = await _locked(session, caller, grant_id)
    if grant.revoked_at is None:
        await sealed.end_grants(session, caller.seller_id, now, grant_id)
        summary = f"grant {grant_id} revoked"
        note(session, caller, "assistant.revoked", summary, now, risk="medium")


# A used code is stored for this time, so that a second use is recognized.
_CODES_ARE_KEPT: Final = timedelta(days=1)
_CODES: Final = "DELETE FROM oauth_code WHERE expires_at <= :before RETURNING 1"
_TOKENS: Final = """
    DELETE FROM access_token WHERE grant_id IS NOT NULL AND expires_at <= :now RETURNING 1
"""
_REFRESH: Final = "DELETE FROM refresh_token WHERE seller_id = :seller AND expires_at <= :now"
_GRANTS: Final = """
    DELETE FROM oauth_grant g
     WHERE g.seller_id = :seller AND NOT EXISTS (
           SELECT FROM refresh_token r WHERE r.seller_id = g.seller_id AND r.grant_id = g.id)
    RETURNING 1
"""


async def drop_past(database: Database, now: datetime) -> int:
    """Delete expired codes, tokens and clients, and grants all of whose refresh tokens have
    expired. Return the number of deleted rows.
    """
    async with database.shared() as session:
        gone = len((await session.execute(text(_TOKENS), {"now": now})).all())
        before = {"before": now - _CODES_ARE_KEPT}
        gone += len((await session.execute(text(_CODES), before)).all())
        gone += await clients.drop_past(session, now)
        past = select(RefreshToken.seller_id).where(RefreshToken.expires_at <= now).distinct()
        sellers = list(await session.scalars(past))
    for seller_id in sellers:
        async with database.tenant(seller_id) as session:
            values = {"seller": seller_id, "now": now}
            await session.execute(text(_REFRESH), values)
            gone += len((await session.execute(text(_GRANTS), {"seller": seller_id})).all())
    return gone

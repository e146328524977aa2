"""Lists the members of a seller account, changes their roles, and removes them.

An account keeps at least one owner who has joined.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import sealed
from cardsync.access.models import Member
from cardsync.platform.database.read_sources import Source, rows_as
from cardsync.platform.database.session import enter_tenant
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.settings import Settings
from cardsync.shop.accounts import invitations
from cardsync.shop.accounts.invitations import Link, MemberError
from cardsync.shop.accounts.schemas import RosterBody

RESET_LINK_IS_GOOD: Final = timedelta(days=1)


async def listed(source: Source, seller_id: int) -> list[RosterBody]:
    """Return the account's members, oldest first."""
    rows = await rows_as(source, Member, seller_id, "ORDER BY id")
    return [struct_of(RosterBody, row) for row in rows]


async def change_role(session: AsyncSession, member_id: int, role: str) -> None:
    """Change a member's role. It applies from the member's next request on, in all sessions."""
    member = await _member(session, member_id)
    if role != "owner":
        await _keep_an_owner(session, member)
    await sealed.set_role(session, member.seller_id, member_id, role)


async def remove(session: AsyncSession, member_id: int) -> None:
    """Remove a member, and the member's sessions, invitation and private contributions."""
    # This import is slow, because it imports polars, and only this function needs it.
    from cardsync.stock.contributions.promote import retire_private

    member = await _member(session, member_id)
    await _keep_an_owner(session, member)
    await enter_tenant(session, member.seller_id)
    await retire_private(session, member.seller_id, member_id)
    await session.delete(member)


async def reset_password(session: AsyncSession, settings: Settings, member_id: int) -> Link:
    """Make a link with which the member can choose a password. The old password is valid until
    then. If the member has joined, the link is valid for only one day, because it opens an account
    in use.
    """
    member = await _member(session, member_id)
    good_for = RESET_LINK_IS_GOOD if member.password_hash else None
    return await invitations.link(session, settings, member_id, good_for)


async def _member(session: AsyncSession, member_id: int) -> Member:
    """Lock the account's members, so that concurrent callers change them one after the other, and
    return the member. Raises MemberError.
    """
    lock = text(
        "SELECT FROM seller WHERE id = (SELECT seller_id FROM member WHERE id = :id) FOR NO KEY UPDATE"
    )
    await session.execute(lock, {"id": member_id})
    member = await session.get(Member, member_id, with_for_update=True)
    if member is None:
        raise MemberError(
            f"there is no member {member_id}; `cardsync admin member list SELLER_ID` shows them"
        )
    return member


async def _keep_an_owner(session: AsyncSession, leaving: Member) -> None:
    others = select(Member.id).where(
        Member.seller_id == leaving.seller_id,
        Member.id != leaving.id,
        Member.role == "owner",
        Member.password_hash.is_not(None),
    )
    if (
        leaving.role == "owner"
        and leaving.password_hash
        and await session.scalar(others.limit(1)) is None
    ):
        raise MemberError(
            f"{leaving.email} is the only owner who has joined; make someone else an owner first"
        )

"""Manages the members of an account, for its owner. Each change adds an entry to the activity feed.

`cardsync admin member` has the same operations for all accounts (`roster.py`, `invitations.py`).
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import sessions
from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.models import Member
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source
from cardsync.platform.limits import ROLES
from cardsync.platform.settings import Settings
from cardsync.shop.accounts import invitations, roster
from cardsync.shop.accounts.invitations import Link, MemberError
from cardsync.shop.accounts.schemas import RosterBody


class Invited(NamedTuple):
    """An invited member. `link` is the path of the invitation's page, which works once within
    `days`.
    """

    member_id: int
    link: Link
    days: int


async def members(source: Source, caller: Caller) -> list[RosterBody]:
    """Return the account's members, oldest first. Raises OwnerRequired."""
    caller.must_be_owner()
    return await roster.listed(source, caller.seller_id)


async def invite(
    session: AsyncSession, caller: Caller, settings: Settings, email: str, role: str, now: datetime
) -> Invited:
    """Invite a person. A person who was invited before and has not joined yet gets a new link,
    which replaces the earlier link. Raises OwnerRequired, InvalidPayload.
    """
    caller.must_be_owner()
    _known_role(role)
    try:
        found = await invitations.invite(session, settings, caller.seller_id, email, role)
    except MemberError as e:
        raise errors.InvalidPayload(f"email: {e}") from e
    summary = f"member {found[0]} invited as {role}"
    note(session, caller, "member.invited", summary, now, risk=_risk(role))
    return Invited(*found, settings.invitation_days)


async def new_link(
    session: AsyncSession, caller: Caller, settings: Settings, member_id: int, now: datetime
) -> Invited:
    """Make a link with which the member can choose a password. Raises OwnerRequired, NotFound."""
    member = await _own(session, caller, member_id)
    link = await roster.reset_password(session, settings, member_id)
    summary = f"password link created for member {member_id}"
    note(session, caller, "member.link_made", summary, now, risk=_risk(member.role))
    days = roster.RESET_LINK_IS_GOOD.days if member.password_hash else settings.invitation_days
    return Invited(member_id, link, days)


async def change_role(
    session: AsyncSession, caller: Caller, member_id: int, role: str, now: datetime
) -> None:
    """Change a member's role. Raises OwnerRequired, NotFound, InvalidPayload."""
    member = await _own(session, caller, member_id)
    _known_role(role)
    was = member.role
    if was == role:
        return
    try:
        await roster.change_role(session, member_id, role)
    except MemberError as e:
        raise errors.InvalidPayload(f"role: {e}") from e
    entry = note(session, caller, "member.changed", f"member {member_id} is {role}", now)
    entry.before, entry.after, entry.risk = {"role": was}, {"role": role}, _risk(role)


async def remove(
    session: AsyncSession,
    caller: Caller,
    member_id: int,
    now: datetime,
) -> None:
    """Remove a member, whose sessions end. Raises OwnerRequired, NotFound, InvalidPayload."""
    await _own(session, caller, member_id)
    try:
        await roster.remove(session, member_id)
    except MemberError as e:
        raise errors.InvalidPayload(str(e)) from e
    note(session, caller, "member.removed", f"member {member_id} removed", now, risk="medium")


async def sign_out(
    session: AsyncSession,
    caller: Caller,
    member_id: int,
    now: datetime,
) -> None:
    """End all sessions of a member. Raises OwnerRequired, NotFound."""
    await _own(session, caller, member_id)
    await sessions.end_all(session, caller.seller_id, member_id)
    summary = f"member {member_id} signed out on all devices"
    note(session, caller, "member.signed_out", summary, now)


def _risk(role: str) -> str:
    return "high" if role == "owner" else "medium"


def _known_role(role: str) -> None:
    if role not in ROLES:
        raise errors.InvalidPayload(f"role: must be one of {', '.join(ROLES)}")


async def _own(session: AsyncSession, caller: Caller, member_id: int) -> Member:
    """Return a member of the caller's account. Raises OwnerRequired, NotFound."""
    caller.must_be_owner()
    own = select(Member).where(Member.seller_id == caller.seller_id, Member.id == member_id)
    member = await session.scalar(own)
    if member is None:
        raise errors.NotFound(f"there is no member {member_id}")
    return member

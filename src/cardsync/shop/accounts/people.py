"""Manages the people of an account, for its owner: each change has an entry in the activity feed,
and an invitation gives a link to hand over.

The command line does the same for every account (`roster.py`, `invitations.py`).
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
from cardsync.platform.limits import ROLES
from cardsync.platform.settings import Settings
from cardsync.shop.accounts import invitations, roster
from cardsync.shop.accounts.invitations import Link, MemberError
from cardsync.shop.accounts.schemas import RosterBody


class Invited(NamedTuple):
    """`link` is the path of a page that works once, within the given days."""

    member_id: int
    link: Link
    days: int


async def members(session: AsyncSession, caller: Caller) -> list[RosterBody]:
    """Return the account's members, oldest first. Raises OwnerRequired."""
    caller.must_be_owner()
    return await roster.listed(session, caller.seller_id)


async def invite(
    session: AsyncSession, caller: Caller, settings: Settings, email: str, role: str, now: datetime
) -> Invited:
    """Invite a person; one who has not joined yet gets a new link in place of the earlier one.
    Raises OwnerRequired, InvalidPayload.
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
    """Make a link with which the member chooses a password. Raises OwnerRequired, NotFound."""
    member = await _own(session, caller, member_id)
    link = await roster.reset_password(session, settings, member_id)
    summary = f"password link created for member {member_id}"
    note(session, caller, "member.link_made", summary, now, risk=_risk(member.role))
    days = roster.RESET_LINK_IS_GOOD.days if member.password_hash else settings.invitation_days
    return Invited(member_id, link, days)


async def change_role(
    session: AsyncSession, caller: Caller, member_id: int, role: str, now: datetime
) -> None:
    """Raises OwnerRequired, NotFound, InvalidPayload."""
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
    """End a member's access, in all sessions. Raises OwnerRequired, NotFound,
    InvalidPayload.
    """
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
    """Return the member if it is one of the caller's account."""
    caller.must_be_owner()
    own = select(Member).where(Member.seller_id == caller.seller_id, Member.id == member_id)
    member = await session.scalar(own)
    if member is None:
        raise errors.NotFound(f"there is no member {member_id}")
    return member

"""Changes a member's own name, address and password.

A new address or password requires the current password. If the installation sends mail, the change
is reported to the previous address. A new password ends the member's other sessions.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import passwords, sealed
from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.member_models import Invitation, MemberSession
from cardsync.access.models import Member
from cardsync.platform import errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.shop.accounts import invitations
from cardsync.shop.accounts.invitations import MemberError
from cardsync.shop.limits import EMAIL_CHARACTERS
from cardsync.shop.notices.news import NewsItem
from cardsync.shop.notices.record_notices import tell_at

KIND = "sign_in_changed"
Password = Annotated[str, msgspec.Meta(max_length=limits.PASSWORD_CHARACTERS_MOST)]


class OwnAccountChange(msgspec.Struct, forbid_unknown_fields=True):
    """The fields to set. A new address or password needs `current_password`."""

    name: Annotated[str, msgspec.Meta(max_length=1_000)] | None = None
    """The member's name"""
    email: Annotated[str, msgspec.Meta(max_length=EMAIL_CHARACTERS)] | None = None
    current_password: Password | None = None
    """The member's current password"""
    new_password: Password | None = None


async def change(
    database: Database,
    settings: Settings,
    caller: Caller,
    wanted: OwnAccountChange,
    now: datetime,
) -> list[str]:
    """Change the caller's own account, and return the names of the changed fields.

    Raises InvalidPayload.
    """
    async with database.tenant(caller.seller_id) as session:
        before = await _own(session, caller)
        stored, was = before.password_hash, before.email
    name, email = _name(wanted.name, before.name), _address(wanted.email, was)
    password_hash = None
    if email is not None or wanted.new_password is not None:
        if wanted.new_password is not None:
            passwords.acceptable(wanted.new_password)
        if not await passwords.is_right(stored, wanted.current_password or ""):
            raise errors.InvalidPayload("current_password: this is not your present password")
        if wanted.new_password is not None:
            password_hash = await passwords.hashed(wanted.new_password)
    async with database.tenant(caller.seller_id) as session:
        member = await _own(session, caller, locked=True)
        # The password was checked before the row was locked. If password or address have changed
        # since, the check is void.
        if (email or password_hash) and (member.password_hash, member.email) != (stored, was):
            raise errors.InvalidPayload(
                "current_password: your account has just changed; try again"
            )
        changed = []
        if name is not None:
            member.name = name
            changed.append("name")
        if email is not None:
            if not await sealed.set_email(session, caller.seller_id, member.id, email):
                raise errors.InvalidPayload("email: another account has this address")
            changed.append("email")
        if password_hash is not None:
            await sealed.set_password(session, member.id, password_hash)
            await _end_others(session, caller)
            changed.append("password")
        if email or password_hash:
            # A link that the member got earlier could still set another password, so it ends.
            await session.execute(delete(Invitation).where(Invitation.member_id == member.id))
            secured = [one for one in changed if one != "name"]
            await _tell(session, settings, caller, was, secured, now)
        if changed:
            summary = f"member {member.id} changed their {', '.join(changed)}"
            risk = "medium" if email or password_hash else "low"
            note(session, caller, "member.self_changed", summary, now, risk=risk)
    return changed


async def _own(session: AsyncSession, caller: Caller, *, locked: bool = False) -> Member:
    query = select(Member).where(
        Member.seller_id == caller.seller_id, Member.id == caller.member_id
    )
    member = await session.scalar(query.with_for_update() if locked else query)
    if member is None:
        raise errors.SessionRequired
    return member


def _name(wanted: str | None, present: str) -> str | None:
    """Return the name to set, or None if it does not change. Raises InvalidPayload."""
    if wanted is None:
        return None
    name = " ".join(wanted.split())
    if not 1 <= len(name) <= limits.MEMBER_NAME_CHARACTERS:
        raise errors.InvalidPayload(f"name: use 1 to {limits.MEMBER_NAME_CHARACTERS} characters")
    return None if name == present else name


def _address(wanted: str | None, present: str) -> str | None:
    """Return the address to set, or None if it does not change. Raises InvalidPayload."""
    if wanted is None:
        return None
    try:
        email = invitations.address(wanted)
    except MemberError as e:
        raise errors.InvalidPayload(f"email: {e}") from e
    return None if email == present else email


async def _end_others(session: AsyncSession, caller: Caller) -> None:
    """End all sessions of the member except the session of the request."""
    theirs = (
        MemberSession.seller_id == caller.seller_id,
        MemberSession.member_id == caller.member_id,
    )
    await session.execute(
        delete(MemberSession).where(*theirs, MemberSession.id != caller.identity.credential_id)
    )


async def _tell(
    session: AsyncSession,
    settings: Settings,
    caller: Caller,
    to: str,
    changed: list[str],
    now: datetime,
) -> None:
    were = "was" if len(changed) == 1 else "were"
    sentence = (
        f"Your {' and '.join(changed)} {were} changed."
        " If that wasn't you, tell the shop's owner right away."
    )
    assert caller.member_id is not None
    found = NewsItem(
        KIND,
        f"{KIND}:{caller.member_id}:{now.timestamp()}",
        "warn",
        sentence,
        "Your account",
        "/account",
        owner_only=False,
        is_event=True,
    )
    await tell_at(session, settings, caller.seller_id, caller.member_id, to, found, now)

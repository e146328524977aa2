"""Invites a person by email address and role. The person joins by the invitation's link and chooses
a name and a password. A link works once.

A member who has forgotten the password gets such a link, too. Only the newest link of a member
works, and using it ends the member's sessions.
"""

from __future__ import annotations

import re
from datetime import timedelta

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import passwords, sealed, sessions, tokens
from cardsync.access.activity import note_by
from cardsync.access.each_seller import known_seller
from cardsync.access.member_models import Invitation
from cardsync.access.models import Member, Seller
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.shop.limits import EMAIL_CHARACTERS

_ADDRESS = re.compile(r"[^\s@\x00-\x1f\x7f]+@[^\s@\x00-\x1f\x7f]+")


class MemberError(errors.CommandError):
    """A member can't be invited, changed or found."""


class Link(str):
    """The path of an invitation's page, with its token. It must not be logged."""


async def invite(
    session: AsyncSession,
    settings: Settings,
    seller_id: int,
    email: str,
    role: str,
) -> tuple[int, Link]:
    """Invite a person, and return (member id, link). If the person was invited before and has not
    joined yet, set the role and replace the link.
    """
    email = address(email)
    await known_seller(session, seller_id)
    # One statement adds or changes the member, so that two invitations of the same person at the
    # same time add only one member.
    member_id = await sealed.put_member(session, seller_id, email, role, email)
    if member_id is None:
        raise MemberError(
            f"{email} belongs to a member who has already joined; each member needs their own address"
        )
    return member_id, await link(session, settings, member_id)


async def link(
    session: AsyncSession,
    settings: Settings,
    member_id: int,
    good_for: timedelta | None = None,
) -> Link:
    """Return a new link for a member, which replaces an earlier link. It is valid for `good_for`,
    by default for the `invitation_days` of the settings.
    """
    now = clock.now()
    token = tokens.new_token()
    expires_at = now + (good_for or timedelta(days=settings.invitation_days))
    await sealed.put_invitation(session, member_id, tokens.token_hash(token), now, expires_at)
    return Link(f"/invitations/{token}")


async def invited(session: AsyncSession, token: str) -> tuple[Member, str]:
    """Return the member of a link's token, and the seller's name. Raises NotFound."""
    query = (
        select(Member, Seller.name)
        .join(Invitation, Invitation.member_id == Member.id)
        .join(Seller, Seller.id == Member.seller_id)
        .where(
            Invitation.token_hash == tokens.token_hash(token), Invitation.expires_at > clock.now()
        )
    )
    row = (await session.execute(query)).first()
    if row is None:
        raise errors.NotFound(
            "this invitation is unknown, used, replaced or expired; ask for a new one"
        )
    return row[0], row[1]


async def accept(
    database: Database,
    settings: Settings,
    token: str,
    name: str | None,
    password: str,
) -> sessions.SignedIn:
    """Let the member of a link join or choose a new password, and sign the member in.

    If two people use the link at the same time, only one of them succeeds.
    """
    password = passwords.acceptable(password)
    async with database.shared() as session:
        member, _ = await invited(session, token)
    name = _name(name, member)
    password_hash = await passwords.hashed(password)
    async with database.shared() as session:
        # The member's row is locked first, as everywhere, so that transactions do not deadlock.
        await session.execute(select(Member.id).where(Member.id == member.id).with_for_update())
        member, _ = await invited(session, token)
        await session.execute(delete(Invitation).where(Invitation.member_id == member.id))
        await sessions.end_all(session, member.seller_id, member.id)
        member.name = name
        await sealed.set_password(session, member.id, password_hash)
        await session.flush()
        signed_in = await sessions.begin(session, settings, member)
        summary = f"member {member.id} chose a password and joined as {member.role}"
        actor = f"member {member.id}"
        note_by(session, member.seller_id, actor, "member.joined", summary, clock.now())
        return signed_in


def address(text: str) -> str:
    """Return an email address without surrounding spaces. Raises MemberError if it is none."""
    stripped = text.strip()
    if len(stripped) > EMAIL_CHARACTERS or not _ADDRESS.fullmatch(stripped):
        raise MemberError(f"{text!r} is not an email address")
    return stripped


def _name(given: str | None, member: Member) -> str:
    name = " ".join((given or "").split())
    if not name and member.password_hash:
        # A member who only chooses a new password keeps the name.
        return member.name
    if not 1 <= len(name) <= limits.MEMBER_NAME_CHARACTERS:
        raise errors.InvalidPayload(f"name: use 1 to {limits.MEMBER_NAME_CHARACTERS} characters")
    return name

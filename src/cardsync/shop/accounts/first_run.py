"""Sets up the first seller of an installation: a person with the set-up link enters the owner and
the store, and is signed in as the owner. The seller begins in Review Mode.

If two people submit the form at the same time, one creates the seller, and the other is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import exists, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import passwords, sessions
from cardsync.access.activity import note_by
from cardsync.access.models import Account, Member, Seller
from cardsync.platform import clock, errors, limits
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.shop.accounts import invitations, sellers


@dataclass(frozen=True)
class NewOwner:
    store_name: str
    name: str
    email: str
    password: str


async def is_open(session: AsyncSession) -> bool:
    """Return whether the installation has no seller yet."""
    return not await session.scalar(select(exists(select(Seller.id))))


def _readable(given: NewOwner) -> NewOwner:
    """Return the owner's data in their stored form. Raises InvalidPayload."""
    store, name = (" ".join(each.split()) for each in (given.store_name, given.name))
    for field, value, most in (
        ("store_name", store, limits.STORE_NAME_CHARACTERS),
        ("name", name, limits.MEMBER_NAME_CHARACTERS),
    ):
        if not 1 <= len(value) <= most:
            raise errors.InvalidPayload(f"{field}: use 1 to {most} characters")
    try:
        email = invitations.address(given.email)
    except invitations.MemberError as e:
        raise errors.InvalidPayload(f"email: {e}") from e
    return NewOwner(store, name, email, passwords.acceptable(given.password))


async def set_up(database: Database, settings: Settings, given: NewOwner) -> sessions.SignedIn:
    """Create the first seller with its owner, and begin the owner's session. Raises InvalidPayload,
    and NotFound if the installation already has a seller.
    """
    owner = _readable(given)
    password_hash = await passwords.hashed(owner.password)
    async with database.shared() as session:
        await locked(session, Lock.FIRST_SELLER)
        if not await is_open(session):
            raise errors.NotFound("this installation is already set up; sign in instead")
        made = await sellers.create_seller(
            session,
            name=owner.store_name,
            email=owner.email,
            plan=settings.default_plan,
            lines=[],
            sync_mode="read_only",
            password_hash=password_hash,
            with_key=False,
        )
        member = (
            await session.scalars(select(Member).where(Member.seller_id == made.seller_id))
        ).one()
        member.name = owner.name
        account = await session.get_one(Account, made.seller_id)
        account.store_name = owner.store_name
        summary = "store set up in Review Mode"
        actor = f"member {member.id}"
        note_by(session, made.seller_id, actor, "account.made", summary, clock.now())
        await session.flush()
        return await sessions.begin(session, settings, member)

"""Deletes an account at its owner's request. Sessions and keys end immediately; after seven days, a
worker removes all rows and stored objects of the seller.

Until the removal begins, the owner, who may still sign in, or the operator can cancel the deletion.
The removal deletes table by table in short transactions. If a worker is killed, the mark in
`work_due` stays, and the next worker removes the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog
from sqlalchemy import Table, delete, select, text, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import sealed
from cardsync.access.activity import OPERATOR, note, note_by
from cardsync.access.caller import Caller
from cardsync.access.each_seller import known_seller
from cardsync.access.grant_models import OAuthCode
from cardsync.access.member_models import AccountDeletion, Invitation, MemberSession
from cardsync.access.models import Account, Member
from cardsync.network import exposure
from cardsync.platform import clock, errors
from cardsync.platform.database.read_sources import Source, rows_as
from cardsync.platform.database.session import Database, enter_tenant
from cardsync.platform.errors import CommandError
from cardsync.platform.work.jobs import Work, WorkDue, mark_due_by
from cardsync.shop.accounts import left_objects, sellers

log = structlog.get_logger(__name__)

STREAM: Final = "deletion"
CAN_BE_TAKEN_BACK_FOR: Final = timedelta(days=7)
ROWS_AT_ONCE: Final = 10_000


async def pending(source: Source, seller_id: int) -> AccountDeletion | None:
    """Return the account's deletion if one was requested, else None."""
    return next(iter(await rows_as(source, AccountDeletion, seller_id, "")), None)


async def asked(source: Source, caller: Caller) -> AccountDeletion | None:
    """Return the deletion of the caller's account if one was requested, else None. Raises
    OwnerRequired.
    """
    caller.must_be_owner()
    return await pending(source, caller.seller_id)


async def ask(
    session: AsyncSession,
    caller: Caller,
    typed: str,
    now: datetime,
) -> AccountDeletion:
    """Request the deletion of the account. As a confirmation, `typed` must be the owner's email
    address. All sessions, keys, tokens and invitations end immediately. Raises OwnerRequired,
    InvalidPayload.
    """
    caller.must_be_owner()
    email = await session.scalar(
        select(Member.email).where(
            Member.seller_id == caller.seller_id,
            Member.id == caller.member_id,
        )
    )
    if email is None or typed.strip().lower() != email.lower():
        raise errors.InvalidPayload("confirm: type your own email address to delete the account")
    due_at = now + CAN_BE_TAKEN_BACK_FOR
    written = insert(AccountDeletion).values(
        seller_id=caller.seller_id,
        asked_at=now,
        due_at=due_at,
    )
    made = await session.scalar(
        written.on_conflict_do_nothing().returning(AccountDeletion.seller_id)
    )
    if made is not None:
        await mark_due_by(session, caller.seller_id, STREAM, due_at)
    await end_access(session, caller.seller_id, now)
    await exposure.hide(session, caller.seller_id)
    summary = "account deletion scheduled"
    note(session, caller, "account.deletion_asked", summary, now, risk="critical")
    found = await pending(session, caller.seller_id)
    assert found is not None
    return found


async def end_access(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """End all sessions, keys, tokens, grants and invitations of the account."""
    for gone in (MemberSession, Invitation, OAuthCode):
        await session.execute(delete(gone).where(gone.seller_id == seller_id))
    await sealed.end_keys(session, seller_id, now)
    await sealed.end_tokens(session, seller_id, now)
    await sealed.end_grants(session, seller_id, now)


async def restore(session: AsyncSession, caller: Caller, now: datetime) -> None:
    """Cancel the deletion of the caller's account. Keys stay revoked. Raises OwnerRequired,
    NotFound.
    """
    caller.must_be_owner()
    if not await _forget(session, caller.seller_id):
        raise errors.NotFound("this account is not scheduled for deletion")
    note(
        session,
        caller,
        "account.deletion_taken_back",
        "account deletion canceled",
        now,
        risk="high",
    )


async def keep(session: AsyncSession, seller_id: int, now: datetime) -> None:
    """Cancel an account's deletion on the operator's behalf. Raises CommandError."""
    await known_seller(session, seller_id)
    await enter_tenant(session, seller_id)
    if not await _forget(session, seller_id):
        raise CommandError(
            f"seller {seller_id} is not scheduled for deletion, or is already being removed"
        )
    summary = "account deletion canceled"
    note_by(session, seller_id, OPERATOR, "account.deletion_taken_back", summary, now)


async def _forget(session: AsyncSession, seller_id: int) -> bool:
    waiting = (AccountDeletion.seller_id == seller_id) & AccountDeletion.begun_at.is_(None)
    gone = delete(AccountDeletion).where(waiting).returning(AccountDeletion.seller_id)
    if await session.scalar(gone) is None:
        return False
    await _unmark(session, seller_id)
    account = await session.get_one(Account, seller_id)
    await exposure.follow(session, account, clock.now())
    return True


async def _unmark(session: AsyncSession, seller_id: int) -> None:
    mark = (WorkDue.seller_id == seller_id) & (WorkDue.stream == STREAM)
    await session.execute(delete(WorkDue).where(mark))


async def remove(
    work: Work,
    seller_id: int,
    tables: Sequence[Table],
    shared: Collection[str],
) -> bool:
    """Remove an account if its deletion is due, and return whether it was removed. `tables` are the
    tenant's tables, ordered so that tables that refer to others are first; `shared` are shared
    tables that refer to sellers.
    """
    if not await _begin(work.database, seller_id):
        return False
    # The state row and the account are deleted last, because running work of the seller reads them.
    for table in tables:
        if table.name not in ("sync_state", "account"):
            while await _remove_some(work.database, seller_id, table):
                pass
    names = [*(table.name for table in tables), *shared]
    await left_objects.sweep_objects(work.store, seller_id)
    await sellers.delete_seller(work.database, work.store, seller_id, names)
    log.info("account_removed", seller_id=seller_id)
    return True


async def _begin(database: Database, seller_id: int) -> bool:
    """Mark the removal as begun, unless the deletion was canceled or is not due; return whether it
    is marked. Afterwards no member can sign in, and running imports can't commit rows.
    """
    now = clock.now()
    async with database.tenant(seller_id) as session:
        begun = await session.scalar(
            update(AccountDeletion)
            .where(AccountDeletion.seller_id == seller_id, AccountDeletion.due_at <= now)
            .values(begun_at=text("coalesce(begun_at, :now)").bindparams(now=now))
            .returning(AccountDeletion.seller_id)
        )
        if begun is None:
            if await pending(session, seller_id) is None:
                await _unmark(session, seller_id)
            return False
        await end_access(session, seller_id, now)
        await session.execute(
            text("UPDATE sync_state SET lease_token = NULL WHERE seller_id = :seller"),
            {"seller": seller_id},
        )
    return True


async def _remove_some(database: Database, seller_id: int, table: Table) -> bool:
    """Delete up to `ROWS_AT_ONCE` rows of a table, and return whether there may be more."""
    own = table.c.seller_id == seller_id
    key = list(table.primary_key.columns)
    some = select(*key).where(own).limit(ROWS_AT_ONCE)
    statement = delete(table).where(own, tuple_(*key).in_(some)).returning(table.c.seller_id)
    async with database.tenant(seller_id) as session:
        gone = (await session.execute(statement)).all()
    return len(gone) == ROWS_AT_ONCE

"""Creates, changes, shows and deletes sellers, for `cardsync admin seller …`."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import structlog
from sqlalchemy import delete, select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import keys, passwords, sealed
from cardsync.access.activity import OPERATOR, Activity, note, note_by
from cardsync.access.caller import Caller
from cardsync.access.entitlements import is_paid
from cardsync.access.models import SETTINGS, Account, Member, Seller
from cardsync.agents.agentwork import price_tasks
from cardsync.agents.seller_state.models import SyncState
from cardsync.catalog.product_lines import NAMES
from cardsync.network import exposure
from cardsync.platform import clock
from cardsync.platform.database.session import Database, enter_tenant
from cardsync.platform.declared_fields import from_text
from cardsync.platform.derived.kept_figures import Figure, mark
from cardsync.platform.errors import CommandError
from cardsync.platform.work.jobs import ORDERS, SALES, mark_due
from cardsync.platform.work.streams import hold_still
from cardsync.prices.inputs.rule_rows import make_preset_rule
from cardsync.sales.lots.profit_by_day import mark_days
from cardsync.sales.lots.stale_cards import mark_all
from cardsync.sales.orders import shipping_type
from cardsync.shop.accounts import left_objects

if TYPE_CHECKING:
    from cardsync.platform.storage import Store


log = structlog.get_logger(__name__)

# The number of attempts if PostgreSQL aborts a deletion because of locks, and the classes of
# SQLSTATE of such errors.
_TRIES: Final = 5
_PAUSE_SECONDS: Final = 0.5
_OF_LOCKS: Final = ("40", "55")


class SellerError(CommandError):
    """A seller can't be created, changed or found."""


@dataclass(frozen=True)
class CreatedSeller:
    seller_id: int
    email: str
    password: str
    api_key: str


PROFIT_SETTINGS: Final = frozenset({"letter_postage", "parcel_postage", "supplies"})


def read_settings(pairs: list[str]) -> dict[str, object]:
    """Convert texts like `key=value` to values of columns. Raises SellerError, which names the key
    and the accepted values.
    """
    values = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or key not in SETTINGS:
            raise SellerError(
                f"{pair!r} is not a setting; write key=value with one of: {', '.join(SETTINGS)}"
            )
        try:
            values[key] = from_text(SETTINGS[key], value)
        except ValueError as e:
            raise SellerError(f"{key} must be {e}, not {value!r}") from e
    return values


async def create_seller(
    session: AsyncSession,
    *,
    name: str,
    email: str,
    plan: str,
    lines: list[str],
    sync_mode: str,
    password_hash: str | None = None,
    with_key: bool = True,
) -> CreatedSeller:
    """Create a seller with an owner, an API key and the Competitive preset. Without `lines`, the
    seller has all product lines, magic first. A password is generated unless `password_hash` is
    given.
    """
    if await is_taken(session, email):
        raise _taken(email)
    seller = Seller(name=name, email=email)
    session.add(seller)
    await session.flush()
    password = "" if password_hash else secrets.token_urlsafe(12)
    hashed = password_hash or passwords.HASHER.hash(password)
    if await sealed.put_member(session, seller.id, email, "owner", name, hashed) is None:
        raise _taken(email)
    await enter_tenant(session, seller.id)
    account = Account(
        seller_id=seller.id,
        plan=plan,
        sync_mode=sync_mode,
        product_lines=_known_lines(lines),
    )
    session.add(account)
    await session.flush()
    await exposure.follow(session, account, clock.now())
    session.add(SyncState(seller_id=seller.id))
    await make_preset_rule(session, seller.id, "competitive")
    key = (await keys.mint(session, seller.id, "first key")).api_key if with_key else ""
    return CreatedSeller(seller.id, email, password, key)


async def is_taken(session: AsyncSession, email: str) -> bool:
    """Return whether an existing member has this address."""
    member = select(Member.id).where(text("lower(email) = lower(:email)")).params(email=email)
    return await session.scalar(member) is not None


def _taken(email: str) -> SellerError:
    return SellerError(f"{email} belongs to another member; choose another address")


def _known_lines(lines: list[str]) -> list[str]:
    unknown = [line for line in lines if line not in NAMES]
    if unknown:
        raise SellerError(
            f"{unknown[0]!r} is not a product line; known lines are {', '.join(NAMES)}"
        )
    return list(dict.fromkeys(lines)) or list(NAMES)


async def mint_key(database: Database, seller_id: int, name: str) -> dict[str, object]:
    """Create a key. This needs a paid plan, but existing keys keep working after a downgrade."""
    async with database.tenant(seller_id) as session:
        account = await session.get(Account, seller_id)
        if account is None:
            raise SellerError(f"there is no seller {seller_id}")
        if not is_paid(account.plan, account.trial_ends_at, clock.now()):
            raise SellerError(
                f"seller {seller_id} has plan {account.plan}: creating a key needs a paid plan"
            )
        minted = await keys.mint(session, seller_id, name)
    return {"key_id": minted.key_id, "api_key": minted.api_key}


async def change_seller(
    session: AsyncSession,
    seller_id: int,
    values: Mapping[str, object],
    actor: str = OPERATOR,
) -> Activity | None:
    """Set the values that differ from the account's values, and add an entry to the activity feed.
    Return the entry, or None if no value differs. `session` is in the seller's scope.
    """
    now = clock.now()
    account = await locked_account(session, seller_id)
    changed = {name: value for name, value in values.items() if getattr(account, name) != value}
    was = {name: getattr(account, name) for name in changed}
    for name, value in changed.items():
        setattr(account, name, value)
    await session.flush()
    await apply_settings(session, seller_id, changed.keys(), now)
    if not changed:
        return None
    summary = ", ".join(f"{name}={_as_text(value)}" for name, value in changed.items())
    entry = note_by(session, seller_id, actor, "account.changed", summary, now)
    entry.before = {name: _as_text(value) for name, value in was.items()}
    entry.after = {name: _as_text(value) for name, value in changed.items()}
    return entry


async def apply_settings(
    session: AsyncSession, seller_id: int, changed: Set[str], now: datetime
) -> None:
    """Update the rows that depend on the changed fields of the account, which the caller has
    locked. A change that makes the account read-only cancels the waiting price tasks.
    """
    account = await session.get_one(Account, seller_id)
    if "tracking_threshold" in changed:
        # Wait for a running import of orders, which still uses the old threshold.
        await hold_still(session, seller_id, ORDERS)
        await shipping_type.decide_again(session, seller_id, account.tracking_threshold)
    if exposure.SEEN & changed:
        await exposure.follow(session, account, now)
    # Lots are locked before days are marked, as in an import of orders, to avoid a deadlock.
    if "costing" in changed:
        await mark_all(session, seller_id)
    if PROFIT_SETTINGS & changed:
        await mark_days(session, seller_id)
    if "time_zone" in changed:
        await mark(session, seller_id, Figure.SALES_SUMS)
    await price_tasks.cancel_lost(session, seller_id, now)
    resumed = {"automatic_pricing_paused", "suspended"} & changed
    if any(getattr(account, name) is False for name in resumed):
        # Promotions may have started or ended while pricing was paused.
        await mark_due(session, seller_id, SALES)


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return " ".join(value)
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


async def locked_account(session: AsyncSession, seller_id: int) -> Account:
    """Lock the seller's state row first and the account second, as everywhere, and return the
    account.

    Raises SellerError.
    """
    await session.get(SyncState, seller_id, with_for_update=True)
    statement = select(Account).where(Account.seller_id == seller_id).with_for_update()
    account = await session.scalar(statement.execution_options(populate_existing=True))
    if account is None:
        raise SellerError(f"there is no seller {seller_id}")
    return account


async def clear_upload_approval(session: AsyncSession, caller: Caller) -> None:
    """Reset `upload_approved` after the agent has made the one upload that the seller had
    approved.
    """
    statement = text("""
        UPDATE account SET upload_approved = false
         WHERE seller_id = :id AND upload_approved RETURNING seller_id
    """)
    if await session.scalar(statement, {"id": caller.seller_id}) is not None:
        note(session, caller, "account.changed", "upload_approved=false", clock.now())


async def show_seller(session: AsyncSession, seller_id: int) -> dict[str, object]:
    """Return all settings and the state of a seller. `session` is in the seller's scope."""
    seller = await session.get(Seller, seller_id)
    account = await session.get(Account, seller_id)
    state = await session.get(SyncState, seller_id)
    if seller is None or account is None or state is None:
        raise SellerError(f"there is no seller {seller_id}")
    settable = {key: getattr(account, key) for key in SETTINGS}
    return {
        "seller_id": seller.id,
        "name": seller.name,
        "email": seller.email,
        "product_lines": account.product_lines,
        **settable,
        "credit_balance": account.credit_balance,
        "last_sync_at": state.last_sync_at,
    }


async def delete_seller(
    database: Database,
    store: Store,
    seller_id: int,
    tables: list[str],
) -> None:
    """Delete a seller's rows from `tables`, and then the stored objects. In `tables`, each
    table is before the tables to which its foreign keys refer. If running work locks rows in
    another order, PostgreSQL aborts the deletion, and it is tried again. Raises SellerError.
    """
    for left in reversed(range(_TRIES)):
        try:
            await _delete_rows(database, seller_id, tables)
            break
        except DBAPIError as refused:
            state = getattr(refused.orig, "sqlstate", None) or ""
            if not state.startswith(_OF_LOCKS):
                raise
            log.warning("seller_not_deleted", seller_id=seller_id, state=state, tries_left=left)
            if not left:
                raise SellerError(
                    f"seller {seller_id} was not deleted: other work was using its rows each"
                    " time; run the command again"
                ) from refused
            await asyncio.sleep(_PAUSE_SECONDS)
    await left_objects.sweep(database, store, seller_id)


async def _delete_rows(database: Database, seller_id: int, tables: list[str]) -> None:
    async with database.tenant(seller_id) as session:
        # A running import can't commit rows without the lease's token, so it leaves no cards
        # behind.
        await session.execute(
            text("UPDATE sync_state SET lease_token = NULL WHERE seller_id = :id"),
            {"id": seller_id},
        )
    async with database.tenant(seller_id) as session:
        # Cards, and rows that refer to them, are deleted before `sync_state` is locked, because a
        # running import locks cards before it locks that row.
        first = [table for table in tables[: tables.index("card") + 1] if table != "sync_state"]
        for table in first:
            await session.execute(
                text(f"DELETE FROM {table} WHERE seller_id = :seller_id"), {"seller_id": seller_id}
            )
        await session.execute(
            text("SELECT FROM sync_state WHERE seller_id = :id FOR UPDATE"), {"id": seller_id}
        )
        await hold_still(session, seller_id, ORDERS)
        # A running refresh of a stored figure rolls back if its mark in `work_due` is missing.
        await session.execute(
            text("DELETE FROM work_due WHERE seller_id = :seller_id"), {"seller_id": seller_id}
        )
        for table in tables:
            await session.execute(
                text(f"DELETE FROM {table} WHERE seller_id = :seller_id"), {"seller_id": seller_id}
            )
        for table in ("network_offer", "network_cell", "network_look", "network_seller"):
            await session.execute(
                text(f"DELETE FROM {table} WHERE seller_id = :seller_id"), {"seller_id": seller_id}
            )
        found = await session.scalar(
            delete(Seller).where(Seller.id == seller_id).returning(Seller.id)
        )
        if found is None:
            raise SellerError(f"there is no seller {seller_id}")
        # With this mark, a worker deletes the objects if this process is killed before it does.
        await left_objects.mark(session, seller_id)

"""Finds the sellers of the installation for its operators: their names, plans and switches, but no
cards, orders or buyers.

Accounts are under row-level security, so each account is read in its own seller's scope; a page has
few accounts. A change adds an entry to the activity feed of the seller, and to the feed of the
operator's own shop.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import OPERATOR, note
from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.session import enter_tenant
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.value_types import Row
from cardsync.shop.accounts import sellers
from cardsync.shop.operators.schemas import SellerShown, SellersShown

CHANGEABLE: Final = ("plan", "trial_ends_at", "suspended", "past_due")
_FOUND: Final = """
    FROM seller s
   WHERE :search = '' OR strpos(lower(s.name), lower(:search)) > 0
      OR strpos(lower(s.email), lower(:search)) > 0
"""
_PAGE: Final = f"""
    SELECT s.id, s.name, s.email, s.created_at,
           (SELECT count(*) FROM member m WHERE m.seller_id = s.id) AS members,
           (SELECT d.due_at FROM account_deletion d WHERE d.seller_id = s.id) AS leaves_at
    {_FOUND} ORDER BY s.id DESC LIMIT :limit OFFSET :offset
"""
_ONE: Final = """
    SELECT s.id, s.name, s.email, s.created_at,
           (SELECT count(*) FROM member m WHERE m.seller_id = s.id) AS members,
           (SELECT d.due_at FROM account_deletion d WHERE d.seller_id = s.id) AS leaves_at
      FROM seller s WHERE s.id = :seller
"""
_ACCOUNT: Final = """
    SELECT a.plan, a.trial_ends_at, a.suspended, a.past_due, a.sync_mode, a.product_lines,
           y.last_sync_at
      FROM account a JOIN sync_state y ON y.seller_id = a.seller_id
     WHERE a.seller_id = :seller AND y.seller_id = :seller
"""


async def shops(
    session: AsyncSession,
    caller: Caller,
    search: str,
    paging: Paging,
) -> SellersShown:
    """Return a page of the sellers whose name or address contains `search`, newest first.

    Raises OperatorRequired.
    """
    caller.must_be_operator()
    values = {"search": search.replace("\0", "").strip(), **paging.values}
    total = await session.scalar(text(f"SELECT count(*) {_FOUND}"), values) or 0
    rows = (await session.execute(text(_PAGE), values)).all()
    found = [shop for row in rows if (shop := await _with_account(session, row)) is not None]
    await enter_tenant(session, caller.seller_id)
    return SellersShown(found, total, paging.page, paging.of(total).total_pages)


async def one_shop(session: AsyncSession, caller: Caller, seller_id: int) -> SellerShown:
    """Return one seller. Raises OperatorRequired, NotFound."""
    caller.must_be_operator()
    row = (await session.execute(text(_ONE), {"seller": seller_id})).first()
    shop = None if row is None else await _with_account(session, row)
    await enter_tenant(session, caller.seller_id)
    if shop is None:
        raise errors.NotFound(f"there is no seller {seller_id}")
    return shop


async def _with_account(session: AsyncSession, row: Row) -> SellerShown | None:
    await enter_tenant(session, row[0])
    account = (await session.execute(text(_ACCOUNT), {"seller": row[0]})).first()
    if account is None:
        return None
    return struct_of(SellerShown, account, **row._mapping)


async def change_shop(
    session: AsyncSession,
    caller: Caller,
    seller_id: int,
    values: Mapping[str, object],
    now: datetime,
) -> SellerShown:
    """Change a seller's plan and switches. Raises OperatorRequired, NotFound, InvalidPayload."""
    caller.must_be_operator()
    if values.get("suspended") and seller_id == caller.seller_id:
        raise errors.InvalidPayload(
            "suspended: an operator cannot suspend the account they sign in with"
        )
    before = await one_shop(session, caller, seller_id)
    await enter_tenant(session, seller_id)
    changed = await sellers.change_seller(session, seller_id, values, OPERATOR)
    # The entry of the seller's feed is written in the seller's scope, the entry of the operator's
    # feed in the scope of the operator's shop.
    await session.flush()
    await enter_tenant(session, caller.seller_id)
    if changed is not None:
        summary = f"seller {seller_id} changed: {changed.summary}"
        note(
            session,
            caller,
            "operator.seller_changed",
            summary,
            now,
            before=changed.before,
            after=changed.after,
        )
        await session.flush()
    return await one_shop(session, caller, before.id)

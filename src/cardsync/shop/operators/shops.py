"""Finds the sellers of the installation for its operators: their names, plans and switches, but no
cards, orders or buyers.

Accounts are under row-level security, so each account is read in its own seller's scope; a page has
few accounts. A change adds an entry to the activity feed of the seller, and to the feed of the
operator's own shop.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import OPERATOR, note
from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source, each_of
from cardsync.platform.database.session import enter_tenant, in_one_message
from cardsync.platform.database.transaction_settings import of_seller
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.kit.struct_rows import struct_of
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


async def shops(source: Source, caller: Caller, search: str, paging: Paging) -> SellersShown:
    """Return a page of the sellers whose name or address contains `search`, newest first.

    Raises OperatorRequired.
    """
    caller.must_be_operator()
    values = {"search": search.replace("\0", "").strip(), **paging.values}
    counted = f"SELECT count(*) {_FOUND}"
    [[total]], rows = await in_one_message(source, [counted, _PAGE], values)
    accounts = await each_of(source, *(_read(source, caller, row.id, _ACCOUNT) for row in rows))
    shown = [
        struct_of(SellerShown, account, **row._asdict())
        for row, [found] in zip(rows, accounts, strict=True)
        for account in found
    ]
    return SellersShown(shown, total, paging.page, paging.of(total).total_pages)


async def one_shop(source: Source, caller: Caller, seller_id: int) -> SellerShown:
    """Return one seller. Raises OperatorRequired, NotFound."""
    caller.must_be_operator()
    rows, accounts = await _read(source, caller, seller_id, _ONE, _ACCOUNT)
    if not rows or not accounts:
        raise errors.NotFound(f"there is no seller {seller_id}")
    return struct_of(SellerShown, accounts[0], **rows[0]._asdict())


async def _read(
    source: Source, caller: Caller, seller_id: int, *statements: str
) -> list[list[Any]]:
    """Return the rows of the statements in a seller's scope, which ends with their message."""
    scoped = [of_seller(seller_id), *statements, of_seller(caller.seller_id)]
    return (await in_one_message(source, scoped, {"seller": seller_id}))[1:-1]


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

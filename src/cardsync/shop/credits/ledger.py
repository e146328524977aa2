"""Appends grants and charges of credits to the ledger. The same statement changes
`account.credit_balance`, so that the balance is always the sum of the ledger. Sessions are in the
seller's scope.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, select, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped

from cardsync.access.models import Account
from cardsync.platform.database.columns import Base, DefaultNow, KeyPart, RowId
from cardsync.platform.database.read_sources import Source, each_of, found, rows_as
from cardsync.platform.errors import CommandError
from cardsync.shop.limits import CREDIT_BALANCE, SKIP_WAIT_CREDITS


class CreditTransaction(Base):
    """A tenant table: the grants and charges of credits. A seller's balance is the sum of its rows.
    `kind` is grant or skip_wait; only charges have an idempotency key.

    The database role of the service may not change rows.
    """

    __tablename__ = "credit_transaction"
    __table_args__ = (
        Index(
            "uq_credit_transaction_idempotency_key",
            "seller_id",
            "idempotency_key",
            unique=True,
            postgresql_where=text("idempotency_key IS NOT NULL"),
        ),
        CheckConstraint("balance_after >= 0", name="balance_after"),
    )
    seller_id: Mapped[KeyPart]
    id: Mapped[RowId]
    kind: Mapped[str]
    amount: Mapped[int]
    balance_after: Mapped[int]
    reason: Mapped[str | None]
    idempotency_key: Mapped[str | None]
    created_at: Mapped[DefaultNow]


APPEND_SQL = text("""
    WITH moved AS (
        UPDATE account SET credit_balance = credit_balance + :amount
         WHERE seller_id = :seller RETURNING credit_balance
    )
    INSERT INTO credit_transaction
           (seller_id, kind, amount, balance_after, reason, idempotency_key, created_at)
    SELECT :seller, :kind, :amount, credit_balance, :reason, :key, :now FROM moved
    RETURNING id, balance_after
""")
LOOK_UP_SQL = text("""
    SELECT a.credit_balance, t.id
      FROM account a LEFT JOIN credit_transaction t
        ON t.seller_id = a.seller_id AND t.idempotency_key = :key
     WHERE a.seller_id = :seller
""")


class CreditError(CommandError):
    """Credits can't be granted or shown."""


async def locked_balance(session: AsyncSession, seller_id: int) -> int | None:
    """Lock the balance until the transaction ends, and return it. Return None if the seller does
    not exist.
    """
    statement = (
        select(Account.credit_balance).where(Account.seller_id == seller_id).with_for_update()
    )
    return await session.scalar(statement)


async def _append(
    session: AsyncSession,
    seller_id: int,
    kind: str,
    amount: int,
    now: datetime,
    *,
    reason: str | None = None,
    key: str | None = None,
) -> tuple[int, int]:
    """Append a row. Return (transaction id, balance after it)."""
    values = {
        "seller": seller_id,
        "kind": kind,
        "amount": amount,
        "reason": reason,
        "key": key,
        "now": now,
    }
    row = (await session.execute(APPEND_SQL, values)).one()
    return row.id, row.balance_after


async def grant(
    session: AsyncSession,
    seller_id: int,
    amount: int,
    reason: str,
    now: datetime,
) -> tuple[int, int]:
    """Grant credits on the operator's behalf. Return (transaction id, balance after it)."""
    balance = await locked_balance(session, seller_id)
    if balance is None:
        raise CreditError(f"there is no seller {seller_id}")
    if not reason.strip():
        raise CreditError("a grant needs a reason")
    if amount < 1 or balance + amount > CREDIT_BALANCE:
        raise CreditError(
            f"a grant must be 1 or more credits, and no balance may go over {CREDIT_BALANCE:,}; seller {seller_id} has {balance:,}"
        )
    return await _append(
        session,
        seller_id,
        "grant",
        amount,
        now,
        reason=reason.strip(),
    )


async def charge(session: AsyncSession, seller_id: int, key: str, now: datetime) -> tuple[int, int]:
    """Charge one skipped wait, and store its idempotency key forever.

    The caller has checked, under the sync row's lock, that the charge is due.
    """
    return await _append(
        session,
        seller_id,
        "skip_wait",
        -SKIP_WAIT_CREDITS,
        now,
        key=key,
    )


async def look_up(session: AsyncSession, seller_id: int, key: str) -> tuple[int, int | None]:
    """Return (current balance, id of the transaction with this key or None), read by one
    statement.
    """
    row = (await session.execute(LOOK_UP_SQL, {"seller": seller_id, "key": key})).one()
    return row.credit_balance, row.id


async def history(
    source: Source,
    seller_id: int,
    most: int | None = None,
) -> tuple[int, list[CreditTransaction]]:
    """Return (balance, transactions, newest first): all transactions, or the newest `most`.

    The source reads one snapshot, so that balance and transactions agree.
    """
    balance, rows = await each_of(
        source,
        found(
            source,
            "SELECT credit_balance FROM account WHERE seller_id = :seller",
            {"seller": seller_id},
        ),
        rows_as(source, CreditTransaction, seller_id, "ORDER BY id DESC LIMIT :most", most=most),
    )
    if not balance:
        raise CreditError(f"there is no seller {seller_id}")
    return balance[0][0], rows

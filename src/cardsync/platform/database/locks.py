"""Defines all kinds of locks that serialize transactions, and the functions that take them.

Two locks are not defined here: the lock of the seller's state row (`agents/seller_state/state.py`),
and SKIP LOCKED on rows of work. All other rows are locked by FOR UPDATE only when they are changed.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy import TextClause
    from sqlalchemy.ext.asyncio import AsyncSession

# A wait for a lock must end before its request ends, so that the request's connection becomes free.
LOCK_SECONDS: Final = 20.0
# A load of a catalog or market file waits for a running load.
LOAD_SECONDS: Final = 3600.0


class Lock(StrEnum):
    """The kinds of locks. Each kind has its own key; the key of a seller's lock includes the
    seller's ID.
    """

    # One per installation:
    SCHEMA = "schema"
    BACKUP = "backup"
    RESTORE = "restore"
    FIRST_SELLER = "first seller"
    SELLER_IMPORT = "seller import"
    CATALOG = "catalog"
    MARKET = "market"
    PICTURE_ADDRESSES = "picture addresses"
    # One per seller:
    SHOP = "shop"
    STATE = "state"
    LISTS = "lists"
    LOT_FILE = "lot_file"
    LOTS_SOLD = "lots_sold"
    LEFT_OBJECTS = "left objects"
    # The triggers of `orders` take this lock.
    ORDER_TALLY = "order tally"
    # There is one such lock per seller and stream, with the stream's name:
    STOCK = "stock"
    LOTS = "lots"
    SALES_SUMS = "sales_sums"
    ORDER_SEARCH = "order_search"
    OFFERS = "network"
    CELLS = "network_cells"
    RECOMMENDATIONS = "recommendations"
    PRICE_FILE = "price_file"
    REMATCHED_CARDS = "rematched_cards"
    REMATCHED_COLLECTIONS = "rematched_collections"
    PICTURES = "pictures"
    PICTURE_FILES = "picture_files"
    NOTICES = "notices"
    MAIL = "mail"
    WEBHOOKS = "webhooks"


# These locks have the keys of older program versions, which run at the same time during an upgrade.
_KEYS: Final = {
    Lock.SCHEMA: "1667330660",
    Lock.BACKUP: "1650549611",
    Lock.RESTORE: "1919251316",
    Lock.FIRST_SELLER: "99024897",
    Lock.SELLER_IMPORT: "hashtext('cardsync seller import')",
    Lock.CATALOG: "hashtext('cardsync catalog')",
    Lock.MARKET: "hashtext('cardsync market')",
    Lock.PICTURE_ADDRESSES: "hashtext('cardsync pictures')",
    Lock.LISTS: "1818850419, hashint8(CAST(:id AS bigint))",
    Lock.ORDER_TALLY: "1869899883, hashint8(CAST(:id AS bigint))",
}
# These locks are row locks: each transaction that writes the row has taken the lock. An additional
# advisory lock would cause deadlocks.
_ROWS: Final = {
    Lock.SHOP: "SELECT FROM account WHERE seller_id = :id FOR NO KEY UPDATE",
    Lock.STATE: "SELECT FROM sync_state WHERE seller_id = :id FOR UPDATE",
}


def key_of(lock: Lock) -> str:
    """Return the SQL of an advisory lock's key. Raises ValueError for a row lock."""
    if lock in _ROWS:
        raise ValueError(f"{lock} is the lock of a row")
    return _KEYS.get(lock, f"hashtextextended('{lock}', CAST(:id AS bigint))")


# The statement sets `lock_timeout` unless the transaction has set it, takes the lock, and restores
# the setting: PostgreSQL computes the columns in order.
_WAIT: Final = """
    SELECT set_config('lock_timeout', CASE WHEN former = '0' THEN :wait ELSE former END, true),
           pg_advisory_xact_lock{shared}({key}), set_config('lock_timeout', former, true)
      FROM (SELECT current_setting('lock_timeout') AS former OFFSET 0) AS setting
"""


@cache
def _statement(lock: Lock, form: str, shared: bool = False) -> TextClause:
    # Imported here: commands that open no session do not load SQLAlchemy.
    from sqlalchemy import text

    return text(form.format(key=key_of(lock), shared="_shared" if shared else ""))


@cache
def _row_statement(lock: Lock) -> TextClause:
    from sqlalchemy import text

    return text(_ROWS[lock])


async def locked(
    session: AsyncSession,
    lock: Lock,
    id: int = 0,
    *,
    shared: bool = False,
    seconds: float = LOCK_SECONDS,
) -> None:
    """Hold the lock until the transaction ends. Shared holders wait only for an exclusive holder.
    Raises OperationalError if another transaction has the lock for longer than `seconds`; the wait
    for a row lock ends with the request.
    """
    if lock in _ROWS:
        await session.execute(_row_statement(lock), {"id": id})
        return
    of = {"id": id} if ":id" in key_of(lock) else {}
    await session.execute(_statement(lock, _WAIT, shared), of | {"wait": f"{seconds:f}s"})


async def try_locked(session: AsyncSession, lock: Lock, id: int = 0) -> bool:
    """Hold the lock until the transaction ends; return False if another transaction has it."""
    of = {"id": id} if ":id" in key_of(lock) else {}
    form = "SELECT pg_try_advisory_xact_lock({key})"
    return bool(await session.scalar(_statement(lock, form), of))


def locked_by_connection(connection: psycopg.Connection[object], lock: Lock) -> bool:
    """Hold a lock of the installation across transactions, until the connection ends; return False
    if another connection has it. The connection must not run through a pooler.
    """
    found = connection.execute(f"SELECT pg_try_advisory_lock({key_of(lock)})").fetchone()
    connection.commit()
    return found == (True,)

"""The locks by which transactions take turns: one list of their kinds, and one way to hold each.

Two things stand beside it: the seller's state row (`agents/seller_state/state.py`), and rows of
work that are claimed with SKIP LOCKED. A row that is read FOR UPDATE is then changed.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy import TextClause
    from sqlalchemy.ext.asyncio import AsyncSession

# A wait ends before the request does, whose connection then serves others.
LOCK_SECONDS: Final = 20.0
# A load of a catalog or of a market file waits for the running load.
LOAD_SECONDS: Final = 3600.0


class Lock(StrEnum):
    """The kinds of locks. No two share a key; the id of a seller's lock is the seller's."""

    # One of the installation:
    SCHEMA = "schema"
    BACKUP = "backup"
    RESTORE = "restore"
    FIRST_SELLER = "first seller"
    SELLER_IMPORT = "seller import"
    CATALOG = "catalog"
    MARKET = "market"
    PICTURE_ADDRESSES = "picture addresses"
    # One of each seller:
    SHOP = "shop"
    LISTS = "lists"
    LOT_FILE = "lot_file"
    LOTS_SOLD = "lots_sold"
    LEFT_OBJECTS = "left objects"
    # The triggers of `orders` take it.
    ORDER_TALLY = "order tally"
    # One of each seller's stream whose mark is its piece of work, named as the stream:
    STOCK = "stock"
    LOTS = "lots"
    SALES_SUMS = "sales_sums"
    OFFERS = "network"
    CELLS = "network_cells"
    RECOMMENDATIONS = "recommendations"
    REMATCHED_CARDS = "rematched_cards"
    REMATCHED_COLLECTIONS = "rematched_collections"
    PICTURES = "pictures"
    PICTURE_FILES = "picture_files"
    NOTICES = "notices"
    MAIL = "mail"
    WEBHOOKS = "webhooks"


# Keys of older programs, which run beside this one during an upgrade.
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
# These turns are a row: transactions that write it take part, and one that has written it holds the
# turn. With a key beside the row, the two would wait for each other.
_ROWS: Final = {Lock.SHOP: "SELECT FROM account WHERE seller_id = :id FOR NO KEY UPDATE"}


def key_of(lock: Lock) -> str:
    """Return the SQL of the lock's key. The turn of a row has none."""
    if lock in _ROWS:
        raise ValueError(f"{lock} is the lock of a row")
    return _KEYS.get(lock, f"hashtextextended('{lock}', CAST(:id AS bigint))")


# A shorter wait that the transaction has set stays, and what it had set holds again afterwards. The
# columns are computed in their order.
_WAIT: Final = """
    SELECT set_config('lock_timeout', CASE WHEN former = '0' THEN :wait ELSE former END, true),
           pg_advisory_xact_lock{shared}({key}), set_config('lock_timeout', former, true)
      FROM (SELECT current_setting('lock_timeout') AS former OFFSET 0) AS setting
"""


@cache
def _statement(lock: Lock, form: str, shared: bool = False) -> TextClause:
    # Commands that open no session load no SQLAlchemy.
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
    """Hold the lock until the transaction ends. Holders of a shared one wait only for those who
    want it alone. Raises OperationalError where another transaction has it for so long; the wait
    for a row ends with the request.
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


def locked_by_connection(connection: psycopg.Connection[Any], lock: Lock) -> bool:
    """Hold a lock of the installation through many transactions, until the connection ends; return
    False if another one has it. No pooler is between.
    """
    found = connection.execute(f"SELECT pg_try_advisory_lock({key_of(lock)})").fetchone()
    connection.commit()
    return found == (True,)

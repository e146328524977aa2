"""The commands `cardsync admin credits …`: each calls one operation and prints its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cardsync.operations.processes.command_line import ROW_ID, Result, plain, prints, with_database
from cardsync.platform import clock
from cardsync.shop.limits import CREDIT_BALANCE

if TYPE_CHECKING:
    from cardsync.platform.database.session import Database

FIELDS = ("id", "kind", "amount", "balance_after", "reason", "created_at")


@click.group()
def credits() -> None:
    """Grant credits and read the ledger."""


@credits.command("grant")
@prints
@click.argument("seller_id", type=ROW_ID)
@click.argument(
    "amount",
    type=click.IntRange(1, CREDIT_BALANCE),
    metavar="N",
)
@click.option("--reason", required=True, help="Kept in the ledger forever.")
def credits_grant(seller_id: int, amount: int, reason: str) -> Result:
    """Give credits to a seller. Prints the new balance.

    Example: cardsync admin credits grant 7 10 --reason "Beta tester"
    """
    from cardsync.shop.credits import ledger

    async def grant(database: Database) -> tuple[int, int]:
        async with database.tenant(seller_id) as session:
            return await ledger.grant(session, seller_id, amount, reason, clock.now())

    transaction_id, balance = with_database(grant)
    return Result({"seller_id": seller_id, "balance": balance, "transaction_id": transaction_id})


@credits.command("history")
@prints
@click.argument("seller_id", type=ROW_ID)
def credits_history(seller_id: int) -> Result:
    """Print all grants and charges of a seller, newest first. Their sum is the balance.

    Example: cardsync admin credits history 7
    """
    from cardsync.shop.credits import ledger

    async def read(database: Database) -> tuple[int, list[dict[str, Any]]]:
        async with database.tenant(seller_id, snapshot=True) as session:
            balance, rows = await ledger.history(session, seller_id)
            return balance, [{name: plain(getattr(row, name)) for name in FIELDS} for row in rows]

    balance, transactions = with_database(read)
    lines = [
        f"{row['id']:>6}  {row['created_at'][:19]}  {row['kind']:<9}  {row['amount']:>+6}"
        f"  {row['balance_after']:>6}  {row['reason'] or ''}"
        for row in transactions
    ]
    data = {"balance": balance, "transactions": transactions}
    return Result(data, [*lines, f"balance {balance}"])

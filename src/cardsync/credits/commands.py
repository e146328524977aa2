"""The commands `cardsync admin credits …`: each calls one operation and prints its result."""

from __future__ import annotations

import json
from typing import Any

import click

from cardsync import clock, limits
from cardsync.credits import ledger
from cardsync.database.session import Database
from cardsync.processes.command_line import ROW_ID, plain, show, with_database

FIELDS = ("id", "kind", "amount", "balance_after", "reason", "created_at")


@click.group()
def credits() -> None:
    """Grant credits and read the ledger."""


@credits.command("grant")
@click.argument("seller_id", type=ROW_ID)
@click.argument(
    "amount",
    type=click.IntRange(1, limits.CREDIT_BALANCE),
    metavar="N",
)
@click.option("--reason", required=True, help="Kept in the ledger forever.")
@click.option("--json", "as_json", is_flag=True)
def credits_grant(seller_id: int, amount: int, reason: str, as_json: bool) -> None:
    """Give a seller N credits; prints the new balance."""

    async def grant(database: Database) -> tuple[int, int]:
        async with database.tenant(seller_id) as session:
            return await ledger.grant(session, seller_id, amount, reason, clock.now())

    transaction_id, balance = with_database(grant)
    show({"seller_id": seller_id, "balance": balance, "transaction_id": transaction_id}, as_json)


@credits.command("history")
@click.argument("seller_id", type=ROW_ID)
@click.option("--json", "as_json", is_flag=True)
def credits_history(seller_id: int, as_json: bool) -> None:
    """Print every grant and charge, newest first; their sum is the balance."""

    async def read(database: Database) -> tuple[int, list[dict[str, Any]]]:
        async with database.tenant(seller_id, snapshot=True) as session:
            balance, rows = await ledger.history(session, seller_id)
            return balance, [{name: plain(getattr(row, name)) for name in FIELDS} for row in rows]

    balance, transactions = with_database(read)
    if as_json:
        click.echo(json.dumps({"balance": balance, "transactions": transactions}))
        return
    for row in transactions:
        click.echo(
            f"{row['id']:>6}  {row['created_at'][:19]}  {row['kind']:<9}  {row['amount']:>+6}"
            f"  {row['balance_after']:>6}  {row['reason'] or ''}"
        )
    click.echo(f"balance {balance}")

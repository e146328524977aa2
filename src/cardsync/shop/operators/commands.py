"""The commands `cardsync admin operator …`: each calls one operation and prints its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cardsync.operations.processes.command_line import Result, plain, prints, with_database
from cardsync.platform import clock

if TYPE_CHECKING:
    from cardsync.platform.database.session import Database
    from cardsync.shop.operators.appoint import Appointed


@click.group()
def operator() -> None:
    """Add, remove and list the members who are operators of this installation."""


@operator.command("add")
@prints
@click.argument("email")
def operator_add(email: str) -> Result:
    """Make a member an operator, who can open the page Operator from the next request on.

    Example: cardsync admin operator add sam@example.com
    """
    from cardsync.shop.operators import appoint

    async def add(database: Database) -> int:
        async with database.shared() as session:
            return await appoint.add(session, email, clock.now())

    member_id = with_database(add, as_owner=True)
    data = {"member_id": member_id, "operator": True}
    return Result(data, [f"member {member_id} is an operator"])


@operator.command("remove")
@prints
@click.argument("email")
def operator_remove(email: str) -> Result:
    """End a member's role as operator. The member stays a member of the shop.

    Example: cardsync admin operator remove sam@example.com
    """
    from cardsync.shop.operators import appoint

    async def remove(database: Database) -> int:
        async with database.shared() as session:
            return await appoint.remove(session, email)

    member_id = with_database(remove, as_owner=True)
    data = {"member_id": member_id, "operator": False}
    return Result(data, [f"member {member_id} is no operator any more"])


@operator.command("list")
@prints
def operator_list() -> Result:
    """List all operators.

    Example: cardsync admin operator list
    """
    from cardsync.shop.operators import appoint

    async def read(database: Database) -> list[Appointed]:
        async with database.shared() as session:
            return await appoint.listed(session)

    found = with_database(read)
    rows = [{name: plain(value) for name, value in row._asdict().items()} for row in found]
    lines = (
        f"{row['member_id']:>6}  {row['added_at'][:19]}  {row['email']}  {row['name']}"
        for row in rows
    )
    return Result({"operators": rows}, lines)

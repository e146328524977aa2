"""The commands `cardsync admin operator …`: each calls one operation and prints its result."""

from __future__ import annotations

import json

import click

from cardsync import clock
from cardsync.database.session import Database
from cardsync.operators import appoint
from cardsync.processes.command_line import plain, with_database


@click.group()
def operator() -> None:
    """Say which members run this installation, too."""


@operator.command("add")
@click.argument("email")
def operator_add(email: str) -> None:
    """Make a member an operator: the page Operator opens with the next request."""

    async def add(database: Database) -> int:
        async with database.shared() as session:
            return await appoint.add(session, email, clock.now())

    click.echo(f"member {with_database(add, as_owner=True)} is an operator")


@operator.command("remove")
@click.argument("email")
def operator_remove(email: str) -> None:
    """Take it back; the member stays a member."""

    async def remove(database: Database) -> int:
        async with database.shared() as session:
            return await appoint.remove(session, email)

    click.echo(f"member {with_database(remove, as_owner=True)} is no operator any more")


@operator.command("list")
@click.option("--json", "as_json", is_flag=True)
def operator_list(as_json: bool) -> None:
    """List all operators."""

    async def read(database: Database) -> list[appoint.Appointed]:
        async with database.shared() as session:
            return await appoint.listed(session)

    found = with_database(read)
    rows = [{name: plain(value) for name, value in row._asdict().items()} for row in found]
    if as_json:
        click.echo(json.dumps({"operators": rows}))
        return
    for row in rows:
        click.echo(f"{row['member_id']:>6}  {row['added_at'][:19]}  {row['email']}  {row['name']}")

"""The commands `cardsync admin member …`: each calls one operation and prints its result."""

from __future__ import annotations

import json
from typing import Any

import click

from cardsync.accounts import invitations, roster
from cardsync.accounts.invitations import ROLES
from cardsync.accounts.shown import RosterBody
from cardsync.database.session import Database
from cardsync.processes.command_line import ROW_ID, settings_with, show, with_database


@click.group()
def member() -> None:
    """Invite, list, change and remove the people of a seller account."""


@member.command("add")
@click.argument("seller_id", type=ROW_ID)
@click.option("--email", required=True)
@click.option("--role", type=click.Choice(ROLES), required=True)
@click.option("--json", "as_json", is_flag=True)
def member_add(seller_id: int, email: str, role: str, as_json: bool) -> None:
    """Invite a person; prints the link to hand over, which is good once."""

    settings = settings_with()

    async def invite(database: Database) -> dict[str, Any]:
        async with database.shared() as session:
            member_id, link = await invitations.invite(session, settings, seller_id, email, role)
        return {"member_id": member_id, "invite_url": settings.origin + link}

    show(with_database(invite, settings), as_json)


@member.command("list")
@click.argument("seller_id", type=ROW_ID)
@click.option("--json", "as_json", is_flag=True)
def member_list(seller_id: int, as_json: bool) -> None:
    """A seller's members."""

    async def read(database: Database) -> list[RosterBody]:
        async with database.shared() as session:
            return await roster.listed(session, seller_id)

    rows = [
        {"member_id": one.id}
        | {name: getattr(one, name) for name in RosterBody.__struct_fields__[1:]}
        for one in with_database(read)
    ]
    if as_json:
        click.echo(json.dumps({"members": rows}))
        return
    for row in rows:
        click.echo(
            f"{row['member_id']:>6}  {row['role']:<5}  {'joined ' if row['joined'] else 'invited'}  {row['email']}  {row['name']}"
        )


@member.command("role")
@click.argument("member_id", type=ROW_ID)
@click.argument("role", type=click.Choice(ROLES))
def member_role(member_id: int, role: str) -> None:
    """Make a member owner or staff."""

    async def change(database: Database) -> None:
        async with database.shared() as session:
            await roster.change_role(session, member_id, role)

    with_database(change)
    click.echo(f"member {member_id} is {role}")


@member.command("remove")
@click.argument("member_id", type=ROW_ID)
def member_remove(member_id: int) -> None:
    """Take a member's access away, at once and everywhere."""

    async def remove(database: Database) -> None:
        async with database.shared() as session:
            await roster.remove(session, member_id)

    with_database(remove)
    click.echo(f"member {member_id} is removed")


@member.command("reset-password")
@click.argument("member_id", type=ROW_ID)
@click.option("--json", "as_json", is_flag=True)
def member_reset_password(member_id: int, as_json: bool) -> None:
    """Print a link with which a member chooses a new password; using it ends all of the member's
    sessions.
    """

    settings = settings_with()

    async def reset(database: Database) -> dict[str, Any]:
        async with database.shared() as session:
            link = await roster.reset_password(session, settings, member_id)
        return {"member_id": member_id, "invite_url": settings.origin + link}

    show(with_database(reset, settings), as_json)

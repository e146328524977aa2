"""The commands `cardsync admin member …`: each calls one operation and prints its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cardsync.operations.processes.command_line import (
    ROW_ID,
    Result,
    prints,
    settings_with,
    with_database,
)
from cardsync.platform.limits import ROLES

if TYPE_CHECKING:
    from cardsync.platform.database.session import Database
    from cardsync.shop.accounts.schemas import RosterBody


@click.group()
def member() -> None:
    """Invite, list, change and remove the members of a seller account."""


@member.command("add")
@prints
@click.argument("seller_id", type=ROW_ID)
@click.option("--email", required=True)
@click.option("--role", type=click.Choice(ROLES), required=True)
def member_add(seller_id: int, email: str, role: str) -> Result:
    """Invite a person. Prints the link to give to the person, which works once.

    Example: cardsync admin member add 7 --email alex@example.com --role staff
    """
    from cardsync.shop.accounts import invitations

    settings = settings_with()

    async def invite(database: Database) -> dict[str, object]:
        async with database.shared() as session:
            member_id, link = await invitations.invite(session, settings, seller_id, email, role)
        return {"member_id": member_id, "invite_url": settings.origin + link}

    return Result(with_database(invite, settings))


@member.command("list")
@prints
@click.argument("seller_id", type=ROW_ID)
def member_list(seller_id: int) -> Result:
    """List a seller's members.

    Example: cardsync admin member list 7
    """
    from cardsync.access.each_seller import known_seller
    from cardsync.shop.accounts import roster

    async def read(database: Database) -> list[RosterBody]:
        async with database.shared() as session:
            await known_seller(session, seller_id)
            return await roster.listed(session, seller_id)

    rows = [
        {"member_id": one.id}
        | {name: getattr(one, name) for name in one.__struct_fields__ if name != "id"}
        for one in with_database(read)
    ]
    lines = (
        f"{row['member_id']:>6}  {row['role']:<5}  {'joined ' if row['joined'] else 'invited'}"
        f"  {row['email']}  {row['name']}"
        for row in rows
    )
    return Result({"members": rows}, lines)


@member.command("role")
@prints
@click.argument("member_id", type=ROW_ID)
@click.argument("role", type=click.Choice(ROLES))
def member_role(member_id: int, role: str) -> Result:
    """Change a member's role to owner or staff.

    Example: cardsync admin member role 9 owner
    """
    from cardsync.shop.accounts import roster

    async def change(database: Database) -> None:
        async with database.shared() as session:
            await roster.change_role(session, member_id, role)

    with_database(change)
    return Result({"member_id": member_id, "role": role}, [f"member {member_id} is {role}"])


@member.command("remove")
@prints
@click.argument("member_id", type=ROW_ID)
def member_remove(member_id: int) -> Result:
    """Remove a member, who loses access immediately in all sessions.

    Example: cardsync admin member remove 9
    """
    from cardsync.shop.accounts import roster

    async def remove(database: Database) -> None:
        async with database.shared() as session:
            await roster.remove(session, member_id)

    with_database(remove)
    return Result({"member_id": member_id, "removed": True}, [f"member {member_id} is removed"])


@member.command("reset-password")
@prints
@click.argument("member_id", type=ROW_ID)
def member_reset_password(member_id: int) -> Result:
    """Print a link with which a member can choose a new password. Using the link ends all of the
    member's sessions.

    Example: cardsync admin member reset-password 9
    """
    from cardsync.shop.accounts import roster

    settings = settings_with()

    async def reset(database: Database) -> dict[str, object]:
        async with database.shared() as session:
            link = await roster.reset_password(session, settings, member_id)
        return {"member_id": member_id, "invite_url": settings.origin + link}

    return Result(with_database(reset, settings))

"""The commands `cardsync admin token …`: each calls one operation and prints its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from cardsync.access.audience import SCOPES
from cardsync.operations.processes.command_line import ROW_ID, Result, plain, prints, with_database
from cardsync.platform import clock
from cardsync.platform.value_types import JsonObject, Row

if TYPE_CHECKING:
    from cardsync.platform.database.session import Database

_LISTED = ("name", "scopes", "created_at", "expires_at", "revoked_at")


@click.group()
def token() -> None:
    """Create, revoke and list tokens of assistants and scripts."""


@token.command("create")
@prints
@click.argument("seller_id", type=ROW_ID)
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    required=True,
    help="What the token may do; repeatable.",
)
@click.option("--name", default="token", show_default=True)
@click.option(
    "--days", type=click.IntRange(1, 3660), help="Good for so long; default until revoked."
)
def token_create(seller_id: int, scopes: tuple[str, ...], name: str, days: int | None) -> Result:
    """Create a token. The token is shown only once.

    Example: cardsync admin token create 7 --scope mcp:read --days 90
    """
    from cardsync.access import access_tokens

    async def mint(database: Database) -> JsonObject:
        async with database.shared() as session:
            minted = await access_tokens.mint(session, seller_id, name, scopes, clock.now(), days)
        return minted._asdict()

    return Result(with_database(mint))


@token.command("revoke")
@prints
@click.argument("token_id", type=ROW_ID)
def token_revoke(token_id: int) -> Result:
    """Revoke a token. It loses access immediately.

    Example: cardsync admin token revoke 3
    """
    from cardsync.access import access_tokens

    async def revoke(database: Database) -> bool:
        async with database.shared() as session:
            return await access_tokens.revoke(session, token_id, clock.now())

    if not with_database(revoke):
        raise click.ClickException(
            f"there is no token {token_id}; `cardsync admin token list SELLER_ID` shows them"
        )
    return Result({"token_id": token_id, "revoked": True}, [f"token {token_id} is revoked"])


@token.command("list")
@prints
@click.argument("seller_id", type=ROW_ID)
def token_list(seller_id: int) -> Result:
    """List a seller's tokens, without the secrets.

    Example: cardsync admin token list 7
    """
    from cardsync.access import access_tokens

    async def read(database: Database) -> list[Any]:
        async with database.shared() as session:
            return await access_tokens.listed(session, seller_id)

    now = clock.now()
    rows = with_database(read)
    tokens = [
        {"token_id": row.id} | {name: plain(getattr(row, name)) for name in _LISTED} for row in rows
    ]

    def line(row: Row) -> str:
        over = row.expires_at is not None and row.expires_at <= now
        state = "revoked" if row.revoked_at else "expired" if over else "good"
        made = plain(row.created_at)[:19]
        return f"{row.id:>6}  {made}  {state:<7}  {' '.join(row.scopes)}  {row.name}"

    return Result({"tokens": tokens}, map(line, rows))

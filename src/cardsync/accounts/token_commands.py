"""The commands `cardsync admin token …`: each calls one operation and prints its result."""

from __future__ import annotations

import json
from typing import Any

import click

from cardsync import clock
from cardsync.access import access_tokens
from cardsync.database.session import Database
from cardsync.processes.command_line import ROW_ID, plain, show, with_database

_LISTED = ("id", "name", "scopes", "created_at", "expires_at", "revoked_at")


@click.group()
def token() -> None:
    """Create, revoke and list tokens of assistants and scripts."""


@token.command("create")
@click.argument("seller_id", type=ROW_ID)
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(access_tokens.SCOPES),
    multiple=True,
    required=True,
    help="What the token may do; repeatable.",
)
@click.option("--name", default="token", show_default=True)
@click.option(
    "--days", type=click.IntRange(1, 3660), help="Good for so long; default until revoked."
)
@click.option("--json", "as_json", is_flag=True)
def token_create(
    seller_id: int,
    scopes: tuple[str, ...],
    name: str,
    days: int | None,
    as_json: bool,
) -> None:
    """Mint a token; it is shown only once."""

    async def mint(database: Database) -> dict[str, Any]:
        async with database.shared() as session:
            minted = await access_tokens.mint(session, seller_id, name, scopes, clock.now(), days)
        return minted._asdict()

    show(with_database(mint), as_json)


@token.command("revoke")
@click.argument("token_id", type=ROW_ID)
def token_revoke(token_id: int) -> None:
    """Make a token useless, at once and on every process."""

    async def revoke(database: Database) -> bool:
        async with database.shared() as session:
            return await access_tokens.revoke(session, token_id, clock.now())

    if not with_database(revoke):
        raise click.ClickException(
            f"there is no token {token_id}; `cardsync admin token list SELLER_ID` shows them"
        )
    click.echo(f"token {token_id} is revoked")


@token.command("list")
@click.argument("seller_id", type=ROW_ID)
@click.option("--json", "as_json", is_flag=True)
def token_list(seller_id: int, as_json: bool) -> None:
    """A seller's tokens, never the secrets themselves."""

    async def read(database: Database) -> list[Any]:
        async with database.shared() as session:
            return await access_tokens.listed(session, seller_id)

    now = clock.now()
    rows = with_database(read)
    if as_json:
        token_rows = [{name: plain(getattr(row, name)) for name in _LISTED} for row in rows]
        tokens = [{"token_id": each.pop("id"), **each} for each in token_rows]
        click.echo(json.dumps({"tokens": tokens}))
        return
    for row in rows:
        over = row.expires_at is not None and row.expires_at <= now
        state = "revoked" if row.revoked_at else "expired" if over else "good"
        click.echo(
            f"{row.id:>6}  {plain(row.created_at)[:19]}  {state:<7}  {' '.join(row.scopes)}  {row.name}"
        )

"""The commands `cardsync admin seller …` and `cardsync admin key …`: each calls one operation and
prints its result.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from cardsync import clock
from cardsync.access import keys
from cardsync.access.entitlements import SYNC_MODES
from cardsync.accounts import sellers
from cardsync.database.session import Database
from cardsync.limits import PLANS
from cardsync.processes.command_line import ROW_ID, plain, say, settings_with, show, with_database


@click.group()
def seller() -> None:
    """Create, change, show, move and delete sellers."""


@seller.command("create")
@click.option("--name", required=True)
@click.option("--email", required=True)
@click.option("--plan", type=click.Choice(PLANS), help="Default: the DEFAULT_PLAN setting.")
@click.option(
    "--line",
    "lines",
    multiple=True,
    help="A product line to enable, repeatable; default all, magic first.",
)
@click.option(
    "--sync-mode",
    type=click.Choice(SYNC_MODES),
    default="full",
    show_default=True,
)
@click.option("--json", "as_json", is_flag=True)
def seller_create(
    name: str,
    email: str,
    plan: str | None,
    lines: tuple[str, ...],
    sync_mode: str,
    as_json: bool,
) -> None:
    """Create a seller; prints the password and API key, which are shown only once."""

    settings = settings_with()

    async def create(database: Database) -> sellers.CreatedSeller:
        async with database.shared() as session:
            return await sellers.create_seller(
                session,
                name=name,
                email=email,
                plan=plan or settings.default_plan,
                lines=list(lines),
                sync_mode=sync_mode,
            )

    show(vars(with_database(create, settings)), as_json)


@seller.command("set")
@click.argument("seller_id", type=ROW_ID)
@click.argument("pairs", nargs=-1, required=True, metavar="KEY=VALUE…")
def seller_set(seller_id: int, pairs: tuple[str, ...]) -> None:
    """Change a seller's plan and switches."""

    values = sellers.read_settings(list(pairs))

    async def change(database: Database) -> None:
        async with database.tenant(seller_id) as session:
            await sellers.change_seller(session, seller_id, values)

    with_database(change)
    click.echo(
        f"seller {seller_id}: "
        + ", ".join(f"{key}={plain(value)}" for key, value in values.items())
    )


@seller.command("show")
@click.argument("seller_id", type=ROW_ID)
@click.option("--json", "as_json", is_flag=True)
def seller_show(seller_id: int, as_json: bool) -> None:
    """Everything about a seller that can be set, and the state of its syncs."""

    async def read(database: Database) -> dict[str, Any]:
        async with database.tenant(seller_id) as session:
            return await sellers.show_seller(session, seller_id)

    show(with_database(read), as_json)


@seller.command("delete")
@click.argument("seller_id", type=ROW_ID)
@click.confirmation_option(prompt="This erases everything of the seller. Go on?")
def seller_delete(seller_id: int) -> None:
    """Erase a seller and everything that belongs to it."""
    # This command alone needs all tables and the objects.
    from cardsync.storage import open_store
    from cardsync.tables import GLOBAL_BY_SELLER, tenant_tables

    settings = settings_with()
    tables = [*(table.name for table in tenant_tables()), *GLOBAL_BY_SELLER]

    async def erase(database: Database) -> None:
        await sellers.delete_seller(database, open_store(settings), seller_id, tables)

    with_database(erase, settings)
    click.echo(f"seller {seller_id} is gone")


@seller.command("export")
@click.argument("seller_id", type=ROW_ID)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--with-secrets", is_flag=True, help="Hold the secrets of webhooks, in plain text.")
@click.option("--only-data", is_flag=True, help="Hold nothing that lets anybody in.")
def seller_export(seller_id: int, file: Path, with_secrets: bool, only_data: bool) -> None:
    """Write everything of a seller into an archive, which `seller import` brings in elsewhere."""
    # Polars takes long to import, and these two commands alone need it.
    from cardsync.moving.archive_tables import Holds
    from cardsync.moving.export_seller import export
    from cardsync.storage import open_store
    from cardsync.tables import seller_tables

    if with_secrets and only_data:
        raise click.UsageError("--with-secrets and --only-data exclude each other")
    holds = Holds.SECRETS if with_secrets else Holds.DATA if only_data else Holds.ACCESS
    settings = settings_with()

    async def written(database: Database) -> str:
        store = open_store(settings)
        made = await export(database, store, settings, seller_id, file, holds, seller_tables(), say)
        return made.sentence()

    click.echo(f"{file}: {with_database(written, settings, as_owner=True)}")


@seller.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option("--plan", type=click.Choice(PLANS), help="Default: the DEFAULT_PLAN setting.")
@click.option(
    "--owner",
    "owners",
    multiple=True,
    metavar="EMAIL",
    help="A member who becomes an owner, repeatable; default: who has the shop's own address."
    " All others are staff.",
)
@click.option("--dry-run", is_flag=True, help="Check the archive, and write nothing.")
def seller_import(file: Path, plan: str | None, owners: tuple[str, ...], dry_run: bool) -> None:
    """Bring a seller in from the archive of another installation: all of it, or nothing."""
    from cardsync.moving.archive_file import opened
    from cardsync.moving.import_seller import Word, bring_in, examined
    from cardsync.storage import open_store
    from cardsync.tables import seller_tables

    settings = settings_with()
    word = Word(plan or settings.default_plan, owners)
    with opened(file) as archive:

        async def brought(database: Database) -> str:
            if dry_run:
                lacking = await examined(database, settings, archive, seller_tables(), word)
                return f"can come in; the catalog here lacks {lacking:,} of its products"
            arrived = await bring_in(
                database, open_store(settings), settings, archive, seller_tables(), word, say
            )
            return f"is seller {arrived.seller_id} now"

        done = with_database(brought, settings, as_owner=True)
        click.echo(f"{archive.manifest.sentence()}: {done}")


@seller.command("keep")
@click.argument("seller_id", type=ROW_ID)
def seller_keep(seller_id: int) -> None:
    """Take back the deletion that an owner asked for; revoked keys stay revoked."""
    # This command alone needs it.
    from cardsync.accounts import deletion

    async def keep(database: Database) -> None:
        async with database.shared() as session:
            await deletion.keep(session, seller_id, clock.now())

    with_database(keep)
    click.echo(f"seller {seller_id} stays")


@click.group()
def key() -> None:
    """Create, revoke and list API keys."""


@key.command("create")
@click.argument("seller_id", type=ROW_ID)
@click.option("--name", default="key", show_default=True)
@click.option("--json", "as_json", is_flag=True)
def key_create(seller_id: int, name: str, as_json: bool) -> None:
    """Mint a key; it is shown only once."""

    async def mint(database: Database) -> dict[str, Any]:
        return await sellers.mint_key(database, seller_id, name)

    show(with_database(mint), as_json)


@key.command("revoke")
@click.argument("key_id", type=ROW_ID)
def key_revoke(key_id: int) -> None:
    """Make a key useless, at once and on every process."""

    async def revoke(database: Database) -> bool:
        async with database.shared() as session:
            return await keys.revoke(session, key_id)

    if not with_database(revoke):
        raise click.ClickException(
            f"there is no key {key_id}; `cardsync admin key list SELLER_ID` shows them"
        )
    click.echo(f"key {key_id} is revoked")


@key.command("list")
@click.argument("seller_id", type=ROW_ID)
@click.option("--json", "as_json", is_flag=True)
def key_list(seller_id: int, as_json: bool) -> None:
    """A seller's keys, never the secrets themselves."""

    async def read(database: Database) -> list[Any]:
        async with database.shared() as session:
            return await keys.listed(session, seller_id)

    rows = [
        {name: plain(value) for name, value in row._asdict().items()} for row in with_database(read)
    ]
    if as_json:
        click.echo(json.dumps({"keys": rows}))
        return
    for row in rows:
        click.echo(
            f"{row['key_id']:>6}  {row['created_at'][:19]}  {'revoked' if row['revoked_at'] else 'good   '}  {row['name']}{'  (my own script)' if row['own_script'] else ''}"
        )

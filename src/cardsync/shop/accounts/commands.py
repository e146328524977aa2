"""The commands `cardsync admin seller …` and `cardsync admin key …`: each calls one operation and
prints its result.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cardsync.access.entitlements import SYNC_MODES
from cardsync.operations.processes.command_line import (
    ROW_ID,
    Result,
    plain,
    prints,
    say,
    settings_with,
    with_database,
)
from cardsync.platform import clock
from cardsync.platform.limits import PLANS
from cardsync.platform.value_types import JsonObject, NamedRow

if TYPE_CHECKING:
    from cardsync.platform.database.session import Database
    from cardsync.shop.accounts import sellers as accounts


@click.group()
def seller() -> None:
    """Create, change, show, move and delete sellers."""


@seller.command("create")
@prints
@click.option("--name", required=True, help="The shop's name.")
@click.option("--email", required=True, help="The owner's address.")
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
def seller_create(
    name: str,
    email: str,
    plan: str | None,
    lines: tuple[str, ...],
    sync_mode: str,
) -> Result:
    """Create a seller. Prints the password and the API key, which are shown only once.

    Example: cardsync admin seller create --name "Card Shop" --email sam@example.com
    """
    from cardsync.shop.accounts import sellers

    settings = settings_with()

    async def create(database: Database) -> accounts.CreatedSeller:
        async with database.shared() as session:
            return await sellers.create_seller(
                session,
                name=name,
                email=email,
                plan=plan or settings.default_plan,
                lines=list(lines),
                sync_mode=sync_mode,
            )

    return Result(vars(with_database(create, settings)))


@seller.command("set")
@prints
@click.argument("seller_id", type=ROW_ID)
@click.argument("pairs", nargs=-1, required=True, metavar="KEY=VALUE…")
def seller_set(seller_id: int, pairs: tuple[str, ...]) -> Result:
    """Change a seller's plan and switches.

    Example: cardsync admin seller set 7 plan=trial trial_ends_at=2027-01-31T12:00:00Z
    """
    from cardsync.shop.accounts import sellers

    values = sellers.read_settings(list(pairs))

    async def change(database: Database) -> None:
        async with database.tenant(seller_id) as session:
            await sellers.change_seller(session, seller_id, values)

    with_database(change)
    pairs_set = ", ".join(f"{key}={plain(value)}" for key, value in values.items())
    return Result({"seller_id": seller_id} | values, [f"seller {seller_id}: {pairs_set}"])


@seller.command("show")
@prints
@click.argument("seller_id", type=ROW_ID)
def seller_show(seller_id: int) -> Result:
    """Show all settings of a seller, and the time of its last sync.

    Example: cardsync admin seller show 7
    """
    from cardsync.shop.accounts import sellers

    async def read(database: Database) -> JsonObject:
        async with database.tenant(seller_id) as session:
            return await sellers.show_seller(session, seller_id)

    return Result(with_database(read))


@seller.command("delete")
@prints
@click.argument("seller_id", type=ROW_ID)
@click.confirmation_option(prompt="This erases everything of the seller. Go on?")
def seller_delete(seller_id: int) -> Result:
    """Delete a seller with all of its data.

    Example: cardsync admin seller delete 7
    """
    from cardsync.platform.storage import open_store
    from cardsync.shop.accounts import sellers
    from cardsync.tables import GLOBAL_BY_SELLER, tenant_tables

    settings = settings_with()
    tables = [*(table.name for table in tenant_tables()), *GLOBAL_BY_SELLER]

    async def erase(database: Database) -> None:
        await sellers.delete_seller(database, open_store(settings), seller_id, tables)

    with_database(erase, settings)
    return Result({"seller_id": seller_id, "deleted": True}, [f"seller {seller_id} is gone"])


@seller.command("export")
@prints
@click.argument("seller_id", type=ROW_ID)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--with-secrets", is_flag=True, help="Hold the secrets of webhooks, in plain text.")
@click.option("--only-data", is_flag=True, help="Hold nothing that lets anybody in.")
def seller_export(seller_id: int, file: Path, with_secrets: bool, only_data: bool) -> Result:
    """Write all data of a seller to an archive, which `seller import` of another installation
    reads.

    Example: cardsync admin seller export 7 shop.zip
    """
    from cardsync.operations.moving.archive_tables import Holds
    from cardsync.operations.moving.export_seller import export
    from cardsync.platform.storage import open_store
    from cardsync.tables import seller_tables

    if with_secrets and only_data:
        raise click.UsageError("--with-secrets and --only-data exclude each other")
    holds = Holds.SECRETS if with_secrets else Holds.DATA if only_data else Holds.ACCESS
    settings = settings_with()

    async def written(database: Database) -> str:
        store = open_store(settings)
        made = await export(database, store, settings, seller_id, file, holds, seller_tables(), say)
        return made.sentence()

    sentence = with_database(written, settings, as_owner=True)
    data = {"seller_id": seller_id, "file": file, "archive": sentence}
    return Result(data, [f"{file}: {sentence}"])


@seller.command("import")
@prints
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
def seller_import(file: Path, plan: str | None, owners: tuple[str, ...], dry_run: bool) -> Result:
    """Import a seller from the archive of another installation, completely or not at all.

    Example: cardsync admin seller import shop.zip --dry-run
    """
    from cardsync.operations.moving.archive_file import opened
    from cardsync.operations.moving.fitting_archive import ImportChoices
    from cardsync.operations.moving.import_seller import bring_in, examined
    from cardsync.platform.storage import open_store
    from cardsync.tables import seller_tables

    settings = settings_with()
    word = ImportChoices(plan or settings.default_plan, owners)
    with opened(file) as archive:

        async def brought(database: Database) -> tuple[dict[str, object], str]:
            if dry_run:
                lacking = await examined(database, settings, archive, seller_tables(), word)
                said = f"can come in; the catalog here lacks {lacking:,} of its products"
                return {"seller_id": None, "products_lacking": lacking}, said
            arrived = await bring_in(
                database, open_store(settings), settings, archive, seller_tables(), word, say
            )
            return {"seller_id": arrived.seller_id}, f"is seller {arrived.seller_id} now"

        done, said = with_database(brought, settings, as_owner=True)
        sentence = archive.manifest.sentence()
        return Result(done | {"archive": sentence}, [f"{sentence}: {said}"])


@seller.command("keep")
@prints
@click.argument("seller_id", type=ROW_ID)
def seller_keep(seller_id: int) -> Result:
    """Cancel the deletion that an owner requested. Revoked keys stay revoked.

    Example: cardsync admin seller keep 7
    """
    from cardsync.shop.accounts import deletion

    async def keep(database: Database) -> None:
        async with database.shared() as session:
            await deletion.keep(session, seller_id, clock.now())

    with_database(keep)
    return Result({"seller_id": seller_id, "deleted": False}, [f"seller {seller_id} stays"])


@click.group()
def key() -> None:
    """Create, revoke and list API keys."""


@key.command("create")
@prints
@click.argument("seller_id", type=ROW_ID)
@click.option("--name", default="key", show_default=True)
def key_create(seller_id: int, name: str) -> Result:
    """Create an API key. The key is shown only once.

    Example: cardsync admin key create 7 --name "desk computer"
    """
    from cardsync.shop.accounts import sellers

    async def mint(database: Database) -> dict[str, object]:
        return await sellers.mint_key(database, seller_id, name)

    return Result(with_database(mint))


@key.command("revoke")
@prints
@click.argument("key_id", type=ROW_ID)
def key_revoke(key_id: int) -> Result:
    """Revoke a key. All agents with this key lose access immediately.

    Example: cardsync admin key revoke 12
    """
    from cardsync.access import keys

    async def revoke(database: Database) -> bool:
        async with database.shared() as session:
            return await keys.revoke(session, key_id)

    if not with_database(revoke):
        raise click.ClickException(
            f"there is no key {key_id}; `cardsync admin key list SELLER_ID` shows them"
        )
    return Result({"key_id": key_id, "revoked": True}, [f"key {key_id} is revoked"])


@key.command("list")
@prints
@click.argument("seller_id", type=ROW_ID)
def key_list(seller_id: int) -> Result:
    """List a seller's keys, without the secrets.

    Example: cardsync admin key list 7
    """
    from cardsync.access import keys
    from cardsync.access.each_seller import known_seller

    async def read(database: Database) -> list[Any]:
        async with database.shared() as session:
            await known_seller(session, seller_id)
            return await keys.listed(session, seller_id)

    rows = [
        {name: plain(value) for name, value in row._asdict().items()} for row in with_database(read)
    ]
    return Result({"keys": rows}, map(_key_line, rows))


def _key_line(row: NamedRow) -> str:
    state = "revoked" if row["revoked_at"] else "good   "
    own = "  (my own script)" if row["own_script"] else ""
    return f"{row['key_id']:>6}  {row['created_at'][:19]}  {state}  {row['name']}{own}"

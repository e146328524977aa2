"""The command line: arguments in, one function called, its result printed. Errors are one sentence that says what to do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import click
from pydantic import ValidationError

from cardsync import __version__, errors
from cardsync.accounts import keys, sellers
from cardsync.accounts.entitlements import PLANS, SYNC_MODES
from cardsync.accounts.sellers import SellerError
from cardsync.catalog.load import CatalogError, import_catalog
from cardsync.db import Database
from cardsync.demo import run as run_demo
from cardsync.embedded import EmbeddedError
from cardsync.migrate import head_revision
from cardsync.observe import setup_logging
from cardsync.openapi import document
from cardsync.price_file import price_file
from cardsync.serve import database, run_web, run_worker
from cardsync.serve import serve as run_serve
from cardsync.settings import Settings, settings_page
from cardsync.storage import open_store
from cardsync.tables import GLOBAL_BY_SELLER, tenant_tables

T = TypeVar("T")
ROW_ID = click.IntRange(1, 2**63 - 1)


def say(line: str) -> None:
    """Progress for people; standard output is for results."""
    click.echo(line, err=True)


def settings_with(**given: Any) -> Settings:
    values = {name: value for name, value in given.items() if value is not None}
    settings = Settings(**values)
    setup_logging(settings.log_level, settings.log_format)
    return settings


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else str(value) if isinstance(value, Decimal) else value


def show(values: dict[str, Any], as_json: bool) -> None:
    plain = {name: _plain(value) for name, value in values.items()}
    if as_json:
        click.echo(json.dumps(plain))
        return
    width = max(map(len, plain), default=0)
    for name, value in plain.items():
        click.echo(f"{name:<{width}}  {value if value is not None else '-'}")


def with_database(work: Callable[[Any], Awaitable[T]], settings: Settings | None = None) -> T:
    """Run `work(database)` beside a running server or without one."""

    async def main(url: str) -> T:
        async with Database.open(url, pool=2, hot_pool=1) as opened:
            return await work(opened)

    with database(settings or settings_with(), say) as ready:
        assert ready.database_url is not None
        return asyncio.run(main(ready.database_url))


class Program(click.Group):
    """Turns what can go wrong into one sentence and exit status 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (SellerError, EmbeddedError, CatalogError, errors.Problem) as e:
            raise click.ClickException(str(e)) from e
        except OSError as e:
            if isinstance(e, BrokenPipeError):
                raise
            raise click.ClickException(f"{e.filename}: {e.strerror}" if e.filename else str(e)) from e
        except ValidationError as e:
            first = e.errors()[0]
            name = "_".join(str(part) for part in first["loc"]).upper()
            raise click.ClickException(f"setting CARDSYNC_{name}: {first['msg']}") from e
        except RuntimeError as e:
            raise click.ClickException(str(e)) from e


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def program() -> None:
    """cardsync keeps a trading-card seller's marketplace shop in step: inventory CSV up, price changes down."""


@program.command()
@click.option("--host", help="Address to serve on (default 127.0.0.1).")
@click.option("--port", type=int, help="Port to serve on (default 8000).")
@click.option("--workers", type=click.IntRange(1), help="Web processes (default 1).")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Folder of the embedded database and objects.")
def serve(host: str | None, port: int | None, workers: int | None, data_dir: Path | None) -> None:
    """Web, worker and, unless DATABASE_URL is set, the embedded database; until Ctrl-C."""

    run_serve(serve_settings(host, port, workers, data_dir), say)


def serve_settings(host: str | None, port: int | None, workers: int | None, data_dir: Path | None) -> Settings:
    settings = settings_with(web_workers=workers, data_dir=data_dir)
    host = host or settings.host
    bind = f"[{host}]:{port or settings.port}" if ":" in host else f"{host}:{port or settings.port}"
    return settings.model_copy(update={"bind": bind})


@program.command(hidden=True)
def web() -> None:
    """One web process, as `serve` starts it."""

    run_web(settings_with())


@program.command()
def worker() -> None:
    """One worker process, for more of them or for other hosts."""

    settings = settings_with()
    if settings.database_url:
        run_worker(settings)
        return
    with database(settings, say) as ready:
        run_worker(ready)


@program.command()
def migrate() -> None:
    """Bring the database to this version's schema."""

    with database(settings_with(), say):
        say(f"the database is at {head_revision()}")


@program.command()
@click.option("--port", type=int, help="Port to serve on (default 8000).")
@click.option("--data-dir", type=click.Path(path_type=Path), help="Folder of the demo's data.")
@click.option("--exit", "leave", is_flag=True, help="Stop after the cycle instead of serving on.")
def demo(port: int | None, data_dir: Path | None, leave: bool) -> None:
    """A demo seller, one whole cycle by the real agent, and a server to look at."""

    run_demo(serve_settings(None, port, None, data_dir), leave=leave)


@program.command()
def openapi() -> None:
    """Print the interface description."""

    click.echo(document(), nl=False)


@program.command(name="settings")
def print_settings() -> None:
    """Print every setting with its default, as docs/settings.md."""
    click.echo(settings_page(), nl=False)


@program.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="Where the price updates go."
)
@click.option("--preset", default="competitive", show_default=True, help="premium, competitive, move or buy-box.")
def price(file: Path, out: Path, preset: str) -> None:
    """The whole flow on one pricing export, without a server or database."""

    for line in price_file(file, out, preset):
        click.echo(line)


@program.group()
def admin() -> None:
    """Sellers and keys; works while the server runs and while it does not."""


@admin.group()
def seller() -> None:
    """Create, change, show and delete sellers."""


@seller.command("create")
@click.option("--name", required=True)
@click.option("--email", required=True)
@click.option("--plan", type=click.Choice(PLANS), help="Default: the DEFAULT_PLAN setting.")
@click.option("--line", "lines", multiple=True, help="A product line to enable, repeatable; default all, magic first.")
@click.option("--sync-mode", type=click.Choice(SYNC_MODES), default="full", show_default=True)
@click.option("--json", "as_json", is_flag=True)
def seller_create(
    name: str, email: str, plan: str | None, lines: tuple[str, ...], sync_mode: str, as_json: bool
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
    click.echo(f"seller {seller_id}: " + ", ".join(f"{key}={_plain(value)}" for key, value in values.items()))


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

    settings = settings_with()
    tables = [*(table.name for table in tenant_tables()), *GLOBAL_BY_SELLER]

    async def erase(database: Database) -> None:
        await sellers.delete_seller(database, open_store(settings), seller_id, tables)

    with_database(erase, settings)
    click.echo(f"seller {seller_id} is gone")


@admin.group()
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
        raise click.ClickException(f"there is no key {key_id}; `cardsync admin key list SELLER_ID` shows them")
    click.echo(f"key {key_id} is revoked")


@key.command("list")
@click.argument("seller_id", type=ROW_ID)
@click.option("--json", "as_json", is_flag=True)
def key_list(seller_id: int, as_json: bool) -> None:
    """A seller's keys, never the secrets themselves."""

    async def read(database: Database) -> list[Any]:
        async with database.shared() as session:
            return await keys.listed(session, seller_id)

    names = ("key_id", "name", "created_at", "revoked_at")
    rows = [dict(zip(names, map(_plain, row), strict=True)) for row in with_database(read)]
    if as_json:
        click.echo(json.dumps({"keys": rows}))
        return
    for row in rows:
        click.echo(
            f"{row['key_id']:>6}  {row['created_at'][:19]}  {'revoked' if row['revoked_at'] else 'good   '}  {row['name']}"
        )


@program.group()
def catalog() -> None:
    """The shared catalog of products."""


@catalog.command("import")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--format", "form", type=click.Choice(["auto", "csv", "parquet"]), default="auto", show_default=True)
@click.option("--game", help="Import only this product line, or name it where the file does not.")
def catalog_import(path: Path, form: str, game: str | None) -> None:
    """Load products; loading a newer edition of the same file updates them."""

    async def load(database: Database) -> str:
        return await import_catalog(database, path, form, game, say)

    click.echo(with_database(load))


def main() -> None:
    program(prog_name="cardsync")

"""Imports a seller of another installation from an archive, in one transaction: either completely
or not at all.

Objects are written before the rows that name them. `left_objects` deletes the objects of a killed
import.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import polars as pl
import psycopg
from sqlalchemy import Table, UniqueConstraint, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import OPERATOR, note_by
from cardsync.access.models import Account
from cardsync.network import exposure
from cardsync.operations.moving import archive_file, archive_tables, catalog_products
from cardsync.operations.moving.archive_file import Archive, Manifest
from cardsync.operations.moving.archive_tables import PRODUCT, Part, quoted
from cardsync.operations.moving.drawn_ids import advance
from cardsync.operations.moving.fitting_archive import ImportChoices, file_of, must_fit, rows_of
from cardsync.operations.moving.new_ids import NewIds
from cardsync.platform import clock, errors
from cardsync.platform.database.columns import Base
from cardsync.platform.database.copy import write_rows
from cardsync.platform.database.locks import Lock, try_locked
from cardsync.platform.database.session import Database, run
from cardsync.platform.derived.kept_figures import Figure
from cardsync.platform.old_data.old_kinds import ACTIVITY, FOLDER, month_of
from cardsync.platform.settings import Settings
from cardsync.platform.storage import Store
from cardsync.platform.work.jobs import mark_due
from cardsync.shop.accounts import left_objects
from cardsync.shop.notices.webhook_signature import new_secret, sealed
from cardsync.stock.cards.models import PriceObservation

Say = Callable[[str], None]
_ROWS: Final = 50_000


# Each of these is computed anew from the rows that came.
_FIGURES: Final = (
    Figure.STOCK, Figure.LOTS, Figure.SALES_SUMS, Figure.ORDER_SEARCH, Figure.RECOMMENDATIONS,
)  # fmt: skip
# Time limit of a statement, and the interval at which the server checks that the command is still
# connected.
_SECONDS: Final = 600.0
_ENDS_WITH_US: Final = "SELECT set_config('client_connection_check_interval', '2s', true)"


@dataclass(frozen=True)
class _Coming:
    """An archive that fits, during its import. `folder` has its tables' files."""

    session: AsyncSession
    settings: Settings
    archive: Archive
    ids: NewIds
    folder: Path
    plan: str
    owners: Sequence[str]

    def of(self, tables: Sequence[Table]) -> list[Table]:
        """Return the tables that are imported."""
        taken = self.archive.manifest.tables.keys() - archive_tables.NOT_TAKEN.keys()
        return [table for table in tables if table.name in taken]

    def rows(self, table: Table) -> pl.LazyFrame:
        return pl.scan_parquet(file_of(self.archive, table.name, self.folder))


@dataclass(frozen=True)
class Arrived:
    """The seller's ID here, and the number of products that the catalog lacked."""

    seller_id: int
    new_products: int


async def bring_in(
    database: Database,
    store: Store,
    settings: Settings,
    archive: Archive,
    tables: Sequence[Table],
    choices: ImportChoices,
    say: Say,
) -> Arrived:
    """Import the seller. `tables` are all tables that name a seller, and `seller`, in the order in
    which they are written. Raises CommandError, and then leaves nothing behind.
    """
    async with database.shared() as session:
        [seller_id] = await _next(session, "seller", 1)
        await left_objects.mark(session, seller_id)
    try:
        with _as_sentence():
            async with database.bounded(seller_id, _SECONDS) as session:
                await session.execute(text(_ENDS_WITH_US))
                await left_objects.hold(session, seller_id)
                return await _all(
                    database, session, store, settings, archive, tables, choices, say, seller_id
                )
    finally:
        # After a successful import there is nothing to delete.
        await left_objects.sweep(database, store, seller_id)


async def examined(
    database: Database,
    settings: Settings,
    archive: Archive,
    tables: Sequence[Table],
    choices: ImportChoices,
) -> int:
    """Return how many of the archive's products the catalog here lacks, and write nothing. Raises
    CommandError for an archive that cannot be imported.
    """
    with TemporaryDirectory(prefix="cardsync-") as name, _as_sentence():
        folder = Path(name)
        async with database.bounded(0, _SECONDS) as session:
            await session.execute(text(_ENDS_WITH_US))
            owners = await must_fit(database, session, archive, folder, tables, choices)
            archived = rows_of(archive, PRODUCT, folder)
            ids = _same_ids(archive, folder, archived)
            coming = _Coming(session, settings, archive, ids, folder, choices.plan, owners)
            for table in coming.of(tables):
                await _tried(coming, table)
            return archived.height - (await catalog_products.known(session, archived)).height


def _same_ids(archive: Archive, folder: Path, archived: pl.DataFrame) -> NewIds:
    """Return IDs that stay unchanged, for rows that are written only to be validated."""
    old = {
        name: rows_of(archive, name, folder)["id"].to_list() for name in archive_tables.COUNTED_ANEW
    }
    same = {name: {id: id for id in ids} for name, ids in old.items()}
    spare = {name: max(ids, default=0) + 1 for name, ids in old.items()}
    products = archived.select(old="id", new="id", match=pl.lit(None, pl.String))
    seller_id = archive.manifest.seller_id
    return NewIds(
        seller_id, seller_id, same | {"member": {0: 0, **same["member"]}}, spare, products
    )


async def _tried(coming: _Coming, table: Table) -> None:
    """Write the rows into a temporary table with the checks and unique keys of the real table, so
    that the database validates the rows in the same way.
    """
    session, name = coming.session, table.name
    like = "INCLUDING CONSTRAINTS INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING INDEXES"
    await run(session, f"CREATE TEMP TABLE {name} (LIKE {name} {like}) ON COMMIT DROP", {})
    await _written(coming, table, f"pg_temp.{name}")
    for key in table.constraints:
        # The unique keys of a seller's own rows are free, because the seller is new.
        if isinstance(key, UniqueConstraint) and "seller_id" not in key.columns:
            columns = ", ".join(quoted(one.name) for one in key.columns)
            here = (
                f"SELECT EXISTS (SELECT FROM pg_temp.{name} JOIN public.{name} h USING ({columns}))"
            )
            if await session.scalar(text(here)):
                raise errors.CommandError(_is_here(name))
    await run(session, f"DROP TABLE pg_temp.{name}", {})


async def _all(
    database: Database,
    session: AsyncSession,
    store: Store,
    settings: Settings,
    archive: Archive,
    tables: Sequence[Table],
    choices: ImportChoices,
    say: Say,
    seller_id: int,
) -> Arrived:
    if not await try_locked(session, Lock.SELLER_IMPORT):
        raise errors.CommandError("another seller is being imported now: wait until it ends")
    with TemporaryDirectory(prefix="cardsync-") as name:
        folder = Path(name)
        owners = await must_fit(database, session, archive, folder, tables, choices)
        archived = rows_of(archive, PRODUCT, folder)
        products = await catalog_products.found(database, session, archived)
        ids = await _new_ids(session, archive.manifest, folder, archive, seller_id, products)
        say("writing the objects …")
        await _objects(store, archive, ids)
        coming = _Coming(session, settings, archive, ids, folder, choices.plan, owners)
        for table in coming.of(tables):
            await _table(database, coming, table, say)
    await _afterwards(session, seller_id, archive.manifest)
    return Arrived(seller_id, products.height - products["match"].null_count())


async def _new_ids(
    session: AsyncSession,
    manifest: Manifest,
    folder: Path,
    archive: Archive,
    seller_id: int,
    products: pl.DataFrame,
) -> NewIds:
    anew, spare = {}, {}
    for name in archive_tables.COUNTED_ANEW:
        old = rows_of(archive, name, folder)["id"].to_list()
        new = await _next(session, name, len(old) + 1)
        anew[name], spare[name] = dict(zip(old, new, strict=False)), new[-1]
    # In the table of cards, member 0 is the shop itself.
    anew["member"][0] = 0
    return NewIds(manifest.seller_id, seller_id, anew, spare, products)


async def _next(session: AsyncSession, table: str, count: int) -> list[int]:
    statement = f"""
        SELECT nextval(pg_get_serial_sequence('{table}', 'id')) FROM generate_series(1, :count)
    """
    return list(await session.scalars(text(statement), {"count": count}))


async def _objects(store: Store, archive: Archive, ids: NewIds) -> None:
    for name in archive.manifest.objects:
        kind, _, last = name.partition("/")
        with store.spool() as (path, file):
            for chunk in _content(archive, name, ids):
                file.write(chunk)
            file.flush()
            await store.write(f"{kind}/u{ids.seller}/{last}", path)


def _content(archive: Archive, name: str, ids: NewIds) -> Iterable[bytes]:
    """Return an object's bytes. Old rows of the activity feed name callers, whose IDs are new here."""
    chunks = archive.chunks(f"{archive_file.OBJECTS}/{name}")
    if not name.startswith(f"{FOLDER}/{ACTIVITY.name}-"):
        return chunks
    table = Base.metadata.tables[ACTIVITY.table]
    made = io.BytesIO()
    ids.mapped(table, pl.read_parquet(b"".join(chunks))).write_parquet(made)
    return [made.getvalue()]


async def _table(database: Database, coming: _Coming, table: Table, say: Say) -> None:
    rows = coming.rows(table)
    if table.name == PriceObservation.__tablename__:
        await _partitions(database, rows, coming.ids.seller)
    count = await _written(coming, table, table.name)
    await advance(coming.session, table, rows)
    file_of(coming.archive, table.name, coming.folder).unlink()
    if count:
        say(f"{table.name}: {count:,} rows")


async def _written(coming: _Coming, table: Table, into: str) -> int:
    """Write the archive's rows of a table into the table `into`, which has the same columns; return
    the number of rows.
    """
    session, rows = coming.session, coming.rows(table)
    [part] = archive_tables.parts([table], coming.archive.manifest.holds)
    columns = rows.collect_schema().names()
    count = coming.archive.manifest.tables[table.name].rows
    insert = _insert(table, into, columns)
    given = {"seller": coming.ids.seller, "plan": coming.plan, "owners": coming.owners}
    listed = ", ".join(map(quoted, columns))
    temp = f"CREATE TEMP TABLE incoming ON COMMIT DROP AS SELECT {listed} FROM {into}"
    await run(session, f"{temp} WITH NO DATA", {})
    written = 0
    for start in range(0, count, _ROWS):
        some = coming.ids.mapped(table, _emptied(part, rows.slice(start, _ROWS).collect()))
        if table.name == "webhook":
            some = _sealed_again(coming.settings, coming.ids.seller, some)
        await write_rows(session, "incoming", some.select(columns))
        written += await run(session, insert, given)
        await run(session, "TRUNCATE incoming", {})
    await run(session, "DROP TABLE incoming", {})
    if written != count:
        raise errors.CommandError(f"{table.name} has {written:,} rows instead of {count:,}")
    return count


def _emptied(part: Part, rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows without the values that an export omits, in case the file has them."""
    left_out = {
        one.name: None if one.value.startswith("NULL") else {"false": False, "0": 0}[one.value]
        for one in part.columns
        if one.value != quoted(one.name) and one.name in rows.columns
    }
    return rows.with_columns(
        pl.lit(value, rows.schema[name]).alias(name) for name, value in left_out.items()
    )


def _insert(table: Table, into: str, columns: Sequence[str]) -> str:
    arrives = archive_tables.ARRIVES.get(table.name, {})
    listed = ", ".join(map(quoted, columns))
    values = ", ".join(arrives.get(name, quoted(name)) for name in columns)
    of_seller = "seller_id" in table.columns
    owner, its = ("seller_id, ", "CAST(:seller AS bigint), ") if of_seller else ("", "")
    return (
        f"INSERT INTO {into} ({owner}{listed}) OVERRIDING SYSTEM VALUE"
        f" SELECT {its}{values} FROM incoming"
    )


def _sealed_again(settings: Settings, seller_id: int, rows: pl.DataFrame) -> pl.DataFrame:
    """Seal the secrets of webhooks for this installation. A webhook without its secret gets a new
    secret, and is off until an owner has entered the secret at its receiver.
    """
    now = clock.now()
    plain = [
        bytes.fromhex(secret[2:]).decode() if secret else new_secret() for secret in rows["secret"]
    ]
    made = ["\\x" + sealed(settings, seller_id, secret).hex() for secret in plain]
    came = pl.col("secret").is_not_null()
    return rows.with_columns(
        secret=pl.Series(made, dtype=pl.String),
        off_at=pl.when(came).then("off_at").otherwise(pl.coalesce("off_at", pl.lit(now))),
        off_why=pl.when(came).then("off_why").otherwise(pl.coalesce("off_why", pl.lit("owner"))),
    )


async def _partitions(database: Database, rows: pl.LazyFrame, seller_id: int) -> None:
    """Create the months of the price history in separate transactions, because creating one blocks
    all others from the history.
    """
    days = rows.select(pl.col("observed_at").dt.truncate("1d").unique()).collect()["observed_at"]
    for month in sorted({month_of(day).date() for day in days}):
        async with database.tenant(seller_id) as session:
            await run(
                session, "SELECT ensure_price_observation_partition(:month)", {"month": month}
            )


async def _afterwards(session: AsyncSession, seller_id: int, manifest: Manifest) -> None:
    now = clock.now()
    account = await session.get_one(Account, seller_id)
    # The seller consented only to the network of the other installation.
    await exposure.follow(session, account, now)
    for figure in _FIGURES:
        await mark_due(session, seller_id, figure)
    summary = (
        f"the shop came from another installation, as of {manifest.made_at:%Y-%m-%d %H:%M} UTC"
    )
    note_by(session, seller_id, OPERATOR, "account.arrived", summary, now)
    await session.flush()


@contextmanager
def _as_sentence() -> Iterator[None]:
    """Convert a database error, such as a row that exists already, into one sentence."""
    try:
        yield
    except (DBAPIError, psycopg.Error) as e:
        cause: Any = getattr(e, "orig", None) or e
        diag = getattr(cause, "diag", None)
        table = getattr(diag, "table_name", None) or "a table"
        if isinstance(cause, psycopg.errors.UniqueViolation):
            what = _is_here(table)
        elif isinstance(cause, psycopg.OperationalError):
            what = f"the database did not take the shop: {_line(cause)}"
        else:
            column = getattr(diag, "column_name", None)
            place = f"{table}.{column}" if column else table
            what = f"the database refuses {place} of the archive: {_line(cause)}"
        raise errors.CommandError(what) from None
    except pl.exceptions.PolarsError as e:
        raise errors.CommandError(f"a file of the archive cannot be read: {_line(e)}") from None


def _is_here(table: str) -> str:
    return f"a row of {table} is here already: the shop, or a part of it, came in before"


def _line(error: Exception) -> str:
    """Return the error's first line; further lines may quote cells."""
    return str(error).partition("\n")[0][:200]

"""Checks whether an archive fits this installation before any of it is written."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl
from sqlalchemy import Table, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import passwords
from cardsync.operations.moving import archive_file, archive_tables
from cardsync.operations.moving.archive_file import Archive
from cardsync.operations.moving.archive_rows import Judge, json_columns, referred
from cardsync.operations.moving.archive_tables import PRODUCT
from cardsync.operations.moving.drawn_ids import near
from cardsync.platform import clock, errors
from cardsync.platform.database.columns import Base
from cardsync.platform.database.copy import types_of
from cardsync.platform.database.migrate import head_revision
from cardsync.platform.database.parquet_sheet import schema_of
from cardsync.platform.database.session import Database
from cardsync.platform.limits import ROLES

_HERE: Final = """
    SELECT m.email FROM member m WHERE lower(m.email) = ANY(CAST(:emails AS text[]))
    UNION ALL
    SELECT s.email FROM seller s WHERE s.created_at = :created
     LIMIT 1
"""
# A name without folders, so that an archive cannot write outside the shop's own objects.
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
# Counts the JSON texts that PostgreSQL would write differently, because programs may read such a
# text differently.
_NOT_CANONICAL: Final = """
    SELECT count(*) FROM unnest(CAST(:texts AS text[])) AS t
     WHERE t <> CAST(CAST(t AS jsonb) AS text)
"""
_TEXTS: Final = 5_000


@dataclass(frozen=True)
class ImportChoices:
    """The operator's choices for an imported shop, which its archive must not decide: the plan, and
    the addresses of the owners. Without such addresses, the owner is the member with the shop's own
    address.
    """

    plan: str
    owners: Sequence[str] = ()


async def must_fit(
    database: Database,
    session: AsyncSession,
    archive: Archive,
    folder: Path,
    tables: Sequence[Table],
    choices: ImportChoices,
) -> list[str]:
    """Return the owners' addresses. Raises CommandError for an archive that this installation
    cannot import or has already imported.
    """
    manifest = archive.manifest
    if manifest.revision > head_revision():
        raise errors.CommandError(
            f"the archive was made by cardsync {manifest.program}, which is newer than this one:"
            " update this installation first"
        )
    await _judged(database, session, archive, folder, tables)
    seller = rows_of(archive, "seller", folder).row(0, named=True)
    emails = rows_of(archive, "member", folder)["email"].str.to_lowercase().to_list()
    values = {"emails": emails, "created": seller["created_at"]}
    here = await session.scalar(text(_HERE), values)
    if here is not None:
        raise errors.CommandError(
            f"{here} is already a member of a shop here: delete that shop first, or export this"
            " one without that person"
        )
    owners = [one.lower() for one in choices.owners or [seller["email"]]]
    if strange := sorted(set(owners) - set(emails)):
        raise errors.CommandError(
            f"no member of the archive has the address {strange[0]}: name the shop's owners by"
            " --owner EMAIL"
        )
    return owners


async def _judged(
    database: Database,
    session: AsyncSession,
    archive: Archive,
    folder: Path,
    tables: Sequence[Table],
) -> None:
    """Raise CommandError for a table that no export writes."""
    manifest = archive.manifest
    for name in manifest.objects:
        kind, _, last = name.partition("/")
        if kind not in archive_tables.OBJECTS or not _PLAIN_NAME.fullmatch(last):
            raise errors.CommandError(f"the archive names an object that no shop has: {name!r}")
    parts = archive_tables.parts(tables, manifest.holds)
    known = {part.name: part for part in [archive_tables.products(parts, 0), *parts]}
    if strange := sorted(set(manifest.tables) - set(known)):
        raise errors.CommandError(f"the archive holds {strange[0]}, which no export does")
    must = {"seller", "account", PRODUCT, *archive_tables.COUNTED_ANEW}
    if lacking := sorted(must - set(manifest.tables)):
        raise errors.CommandError(f"the archive lacks {lacking[0]}, which each export holds")
    judge = Judge(manifest.program, manifest.seller_id, clock.now(), ROLES, passwords.takes_no_more)
    named = referred(tables)
    described = {table.name: table for table in [Base.metadata.tables[PRODUCT], *tables]}
    for name, part in known.items():
        if name in manifest.tables:
            table, path = described[name], file_of(archive, name, folder)
            # A separate transaction reads the types, because a month cannot be added to a table
            # that the import's own transaction has read.
            async with database.shared() as apart:
                expected = schema_of(await types_of(apart, part.query(0)))
            rows = manifest.tables[name].rows
            await asyncio.to_thread(
                judge.judge, table, part, path, expected, rows, named.get(name, [])
            )
            await _canonical(session, table, path)
            await near(session, table, judge.newest.get(name, 0))
            path.unlink()


async def _canonical(session: AsyncSession, table: Table, path: Path) -> None:
    """Raise CommandError for JSON that the database would read differently from the validation."""
    file = pl.scan_parquet(path)
    for column in json_columns(table, file.collect_schema().names()):
        start = 0
        while (texts := file.select(column).slice(start, _TEXTS).collect()[column]).len():
            given = {"texts": texts.drop_nulls().to_list()}
            if await session.scalar(text(_NOT_CANONICAL), given):
                raise errors.CommandError(
                    f"the archive is not as an export writes it: {table.name}.{column} is not JSON"
                    " of a database"
                )
            start += _TEXTS


def file_of(archive: Archive, table: str, folder: Path) -> Path:
    """Extract the table's file from the archive."""
    path = folder / f"{table}.parquet"
    if not path.exists():
        with path.open("wb") as file:
            for chunk in archive.chunks(archive_file.table_entry(table)):
                file.write(chunk)
    return path


def rows_of(archive: Archive, table: str, folder: Path) -> pl.DataFrame:
    return pl.read_parquet(file_of(archive, table, folder))

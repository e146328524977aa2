"""Loads a catalog from a file or folder of any source in `sources/` into the table `product`, and
reports the result.

A product keeps its id forever, so that the cards that refer to it stay correct. Loading the same
file again writes nothing. A product that is missing in a newer edition is not deleted, but marked
as vanished. A provisional product that matches a row is adopted. If another source has the same
printing, the row updates that source's product.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog import name_index
from cardsync.catalog.adopt_provisional import adopt
from cardsync.catalog.incoming_products import (
    BESIDE,
    CHUNK,
    INCOMING,
    STORED,
    key_products,
    put_incoming,
)
from cardsync.catalog.sources.declared import BY_NAME, Source
from cardsync.catalog.sources.own import COLUMNS, SCHEMA
from cardsync.catalog.sources.read import form_of, slices
from cardsync.catalog.sources.source_record import IDS, Broken, CatalogError
from cardsync.platform import clock
from cardsync.platform.database.copy import new_table
from cardsync.platform.database.locks import LOAD_SECONDS, Lock, locked
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import Database, run
from cardsync.platform.work.jobs import REMATCHED_CARDS, REMATCHED_COLLECTIONS

__all__ = ["COLUMNS", "CatalogError", "Report", "import_catalog", "load"]
# Reading stops after this many broken records, if even fewer records are good.
_BROKEN_MOST = 100_000
# The maximum number of printings in a file; the largest game has 200,000 in one language.
_ROWS_MOST = 1_000_000
# Rows of two sources with equal values in these columns are the same printing, unless another
# column contradicts it.
_PRINTING = ("game", "set_key", "name_key", "number_key")
_PRINTING_OR_NULL = ("back_key", "variant_key", "language_key", "sealed")
# If a row has no value in one of these columns, the product keeps its value, which another source
# may have set.
_FILLED = (
    "set_code",
    "rarity",
    "marketplace_product_id",
    "picture_url",
    "set_code_key",
    "number_total",
)


# Gets the step (read or write), the number of finished records, and their total; 0 is unknown.
Tell = Callable[[str, int, int], None]


def untold(step: str, done: int, total: int) -> None:
    """Ignore the progress, for callers that print lines instead."""


@dataclass
class Report:
    """The result of an import. `broken` lists the skipped records."""

    name: str
    products: int = 0
    added: int = 0
    changed: int = 0
    vanished: int = 0
    adopted: int = 0
    broken: list[Broken] = field(default_factory=list)

    def sentence(self) -> str:
        """Return the result in one line."""
        parts = [f"{self.added:,} new", f"{self.changed:,} changed"]
        if self.vanished:
            parts.append(f"{self.vanished:,} no longer named, kept and marked")
        parts.append(f"{self.adopted:,} provisional ones adopted")
        said = f"{self.products:,} products in {self.name}: {', '.join(parts)}"
        if self.broken:
            count = len(self.broken)
            said += f"; {count:,} record{'s were' if count > 1 else ' was'} skipped"
        return said


async def import_catalog(
    database: Database,
    path: Path,
    form: str,
    game: str | None,
    say: Callable[[str], None],
) -> str:
    """Load `path` and return the sentence that reports the result."""
    return (await load(database, path, form, game, say)).sentence()


async def load(
    database: Database,
    path: Path,
    form: str,
    game: str | None,
    say: Callable[[str], None],
    source: str | None = None,
    *,
    name: str | None = None,
    known: Source | None = None,
    whole: bool = False,
    check: Callable[[Report], None] | None = None,
    take: Callable[[pl.DataFrame], Awaitable[None]] | None = None,
    tell: Tell = untold,
) -> Report:
    """Load the catalog at `path`. `source` is the name of the catalog of which the file is an
    edition, and `name` its name in the report. `known` is the source of the printings if the format
    does not name it. A `whole` catalog contains all sets of its games. `check` gets the report, and
    `take` the printings; either may raise an error to stop the load.

    Raises CatalogError before anything is written.
    """
    form = form_of(path) if form == "auto" else form
    source = source or (form if form not in ("csv", "parquet") else path.stem)
    report = Report(name or path.name)
    frame = await asyncio.to_thread(_gathered, slices(path, form, game), report, say, tell)
    keyed = await asyncio.to_thread(key_products, frame)
    report.products = keyed.height
    if check is not None:
        check(report)
    if take is not None:
        await take(frame)
    del frame
    tell("write", 0, keyed.height)
    known = known or BY_NAME.get(form)
    alone = known is not None and known.ids_alone
    if not alone:
        await _renew_sets(database, keyed, source)
        report.adopted = await adopt(database, keyed)
    for at in range(0, keyed.height, CHUNK):
        async with database.shared() as session:
            await _store(session, keyed.slice(at, CHUNK), source, report, known)
        tell("write", min(at + CHUNK, keyed.height), keyed.height)
        if keyed.height > CHUNK:
            say(f"{min(at + CHUNK, keyed.height):,} of {keyed.height:,} products")
    async with database.shared() as session:
        if not alone:
            report.vanished = await _mark_vanished(session, keyed, source, whole=whole)
        await _record(session, report)
        # Cards are matched again even if nothing is new, because the last load may have been killed
        # before this statement.
        await session.execute(text(_REMATCH), {"now": clock.now(), "streams": _WAITING})
    return report


def _gathered(
    found: Iterator[tuple[pl.DataFrame, list[Broken]]],
    report: Report,
    say: Callable[[str], None],
    tell: Tell = untold,
) -> pl.DataFrame:
    """Return the printings of all slices of a file, and add its broken records to the report. A
    printing takes some hundred bytes of memory, even if its record in the file is larger.
    """
    frames = [pl.DataFrame(schema=SCHEMA)]
    rows = 0
    for frame, broken in found:
        frames.append(frame)
        report.broken += broken
        rows += frame.height
        if len(report.broken) > max(rows, _BROKEN_MOST):
            break
        if rows > _ROWS_MOST:
            raise CatalogError(
                f"{report.name} holds more than {_ROWS_MOST:,} printings: no game has"
            )
        tell("read", rows, 0)
        if len(frames) > 2:
            say(f"{rows:,} printings read")
    if report.broken and (not rows or len(report.broken) > max(rows, _BROKEN_MOST)):
        first = report.broken[0]
        raise CatalogError(
            f"{report.name} holds {'no record' if not rows else 'too few records'} that can be used;"
            f" {first.where}: {first.reason}"
        )
    return pl.concat(frames)


_STALE: Final = """
    SELECT DISTINCT p.game, p.set_name FROM product p
      JOIN of_file s ON s.game = p.game AND s.set_name = p.set_name
     WHERE NOT p.provisional AND p.source = :source AND p.set_key <> s.set_key
"""
_TEXTS: Final = tuple(name for name in COLUMNS if name not in BESIDE)
_RENEW: Final = f"""
    UPDATE product p SET set_key = i.set_key, identity = md5(i.identity) FROM {INCOMING} i
     WHERE NOT p.provisional AND p.source = :source AND p.set_key <> i.set_key
       AND {" AND ".join(f"p.{name} IS NOT DISTINCT FROM i.{name}" for name in _TEXTS)}
       AND NOT EXISTS (SELECT FROM product q WHERE q.identity = md5(i.identity))
"""


async def _renew_sets(database: Database, keyed: pl.DataFrame, source: str) -> None:
    """Update the set keys of this source's products. A newer version of this program may have other
    names of sets, and the products must keep their ids.
    """
    sets = keyed.select("game", "set_name", "set_key").unique()
    async with database.shared() as session:
        await new_table(session, "of_file", sets, {})
        stale = (await session.execute(text(_STALE), {"source": source})).all()
    if not stale:
        return
    named = pl.DataFrame(stale, schema={"game": pl.String, "set_name": pl.String}, orient="row")
    rows = keyed.join(named, on=["game", "set_name"], how="semi", maintain_order="left")
    for slab in rows.iter_slices(CHUNK):
        async with database.shared() as session:
            await put_incoming(session, slab)
            await run(session, _RENEW, {"source": source})


async def _record(session: AsyncSession, report: Report) -> None:
    await session.execute(
        text("""
            INSERT INTO catalog_import (source, rows, added, changed, vanished, adopted, skipped,
                                        finished_at)
            VALUES (:source, :rows, :added, :changed, :vanished, :adopted, :skipped, :now)
        """),
        {
            "source": report.name,
            "rows": report.products,
            "added": report.added,
            "changed": report.changed,
            "vanished": report.vanished,
            "adopted": report.adopted,
            "skipped": len(report.broken),
            "now": clock.now(),
        },
    )


async def _store(
    session: AsyncSession,
    rows: pl.DataFrame,
    source: str,
    report: Report,
    known: Source | None,
) -> None:
    await put_incoming(session, rows)
    # Without the lock, two simultaneous imports would not find each other's new products.
    await locked(session, Lock.CATALOG, seconds=LOAD_SECONDS)
    if known is not None and known.ids_alone:
        await session.execute(text(_NAMED_ALONE))
        report.changed += await run(session, _ELSEWHERE.format(of=_OF_DESCRIBED), {})
        return
    listed = ", ".join(STORED)
    sets = ", ".join(f"{name} = {_present(name)}" for name in STORED)
    before, own = (", ".join(f"{of}.{name}" for name in STORED) for of in ("p", "i"))
    present = ", ".join(map(_present, STORED))
    # An adopted provisional product has the catalog row's identity, so it is found here, too.
    changed = await run(
        session,
        f"""
            UPDATE product p SET {sets}, vanished_at = NULL, source = coalesce(p.source, :source)
              FROM {INCOMING} i
             WHERE p.identity = md5(i.identity)
               AND ((p.vanished_at, p.source, {before})
                    IS DISTINCT FROM (NULL, coalesce(p.source, :source), {present}))
        """,
        {"source": source},
    )
    described = await _described_by_others(session, source, by_ids=known is not None)
    added = await run(
        session,
        f"""
            INSERT INTO product (identity, source, {listed})
            SELECT md5(i.identity), :source, {own} FROM {INCOMING} i
              LEFT JOIN product p ON p.identity = md5(i.identity)
             WHERE p.id IS NULL
             ORDER BY i.identity
            ON CONFLICT (identity) DO NOTHING
        """,
        {"source": source},
    )
    await session.execute(text(_ELSEWHERE.format(of=_OF_PRODUCTS)))
    report.changed += changed + described
    report.added += added
    if changed + described + added:
        await name_index.renew(session, rows)


_OF_PRODUCTS: Final = (
    "SELECT p.id AS of, i.* FROM incoming i JOIN product p ON p.identity = md5(i.identity)"
)
_OF_DESCRIBED: Final = "SELECT d.id AS of, i.* FROM described d JOIN incoming i USING (identity)"
_ELSEWHERE: Final = f"""
    INSERT INTO product_elsewhere (kind, id, product_id)
    SELECT DISTINCT e.kind, e.id, t.of FROM ({{of}}) AS t CROSS JOIN LATERAL (VALUES
           {", ".join(f"('{name.removesuffix('_id')}', t.{name})" for name in IDS)}
           ) AS e (kind, id)
     WHERE e.id IS NOT NULL ORDER BY 1, 2, 3
    ON CONFLICT DO NOTHING
"""
# Rows of a source without numbers. Such a row is the product with its name, if the name belongs to
# only one card of the set, in any finishes.
_NAMED_ALONE: Final = """
    CREATE TEMP TABLE described ON COMMIT DROP AS
    SELECT identity, id FROM (
        SELECT i.identity, p.id, count(*) OVER (PARTITION BY p.id) AS ours,
               min(p.number_key || ' ' || coalesce(p.variant_key, '')) OVER same AS one,
               max(p.number_key || ' ' || coalesce(p.variant_key, '')) OVER same AS other
          FROM incoming i
          JOIN product p ON p.game = i.game AND p.set_key = i.set_key AND p.name_key = i.name_key
         WHERE NOT p.provisional AND NOT p.sealed
        WINDOW same AS (PARTITION BY i.identity)
    ) AS pairs WHERE ours = 1 AND one = other
"""


def _present(name: str) -> str:
    """Return SQL for a column's value after the import."""
    return f"coalesce(i.{name}, p.{name})" if name in _FILLED else f"i.{name}"


async def _described_by_others(session: AsyncSession, source: str, *, by_ids: bool) -> int:
    """Remove the rows of `incoming` that are products of another source, and return the number of
    these products that got new values.

    A row is another source's product if exactly one row and one product have the same printing, or
    the same name and one equal id. A row without a finish matches every finish. Ids are compared
    only if `by_ids`, because ids in a person's own file may be arbitrary.
    """
    await session.execute(text(_DESCRIBED), {"source": source, "by_ids": by_ids})
    sets = ", ".join(f"{name} = coalesce(p.{name}, i.{name})" for name in _FILLED)
    lacks = " OR ".join(f"p.{name} IS NULL AND i.{name} IS NOT NULL" for name in _FILLED)
    filled = await run(
        session,
        f"""
            UPDATE product p SET {sets}, vanished_at = NULL
              FROM (SELECT * FROM described JOIN incoming USING (identity)) AS i
             WHERE p.id = i.id AND ({lacks} OR p.vanished_at IS NOT NULL)
        """,
        {},
    )
    await session.execute(text(_ELSEWHERE.format(of=_OF_DESCRIBED)))
    await session.execute(
        text("DELETE FROM incoming i USING described t WHERE t.identity = i.identity")
    )
    return filled


_SAME_FINISH: Final = "(i.finish_key IS NULL OR p.finish_key IS NOT DISTINCT FROM i.finish_key)"
_SAME_PRINTING: Final = " AND ".join(
    (
        *(f"p.{name} = i.{name}" for name in _PRINTING),
        *(f"p.{name} IS NOT DISTINCT FROM i.{name}" for name in _PRINTING_OR_NULL),
        _SAME_FINISH,
        "coalesce(p.number_total = i.number_total, true)",
        "coalesce(p.marketplace_product_id = i.marketplace_product_id, true)",
    )
)
_SAME_NAME: Final = f"""
    p.game = i.game AND p.name_key = i.name_key AND p.sealed = i.sealed AND {_SAME_FINISH}
    AND p.language_key IS NOT DISTINCT FROM i.language_key
"""
_DESCRIBED: Final = queries_of(__package__)["described"].format(
    same_printing=_SAME_PRINTING,
    same_name=_SAME_NAME,
    ids=", ".join(f"('{name.removesuffix('_id')}', i.{name})" for name in IDS),
)
# The statement uses a join, because `NOT IN` compares each product with each row if the list is
# larger than work_mem. The update is a statement of its own, because Citus updates only by values.
_GONE: Final = """
    SELECT p.id FROM product p
      JOIN (SELECT DISTINCT {among} FROM named) s USING ({among})
      LEFT JOIN (SELECT md5(identity) AS identity FROM named) n ON n.identity = p.identity
     WHERE p.source = :source AND p.vanished_at IS NULL AND n.identity IS NULL
"""
_VANISHED: Final = """
    UPDATE product SET vanished_at = :now WHERE id = ANY (CAST(:ids AS bigint[]))
"""


async def _mark_vanished(
    session: AsyncSession, keyed: pl.DataFrame, source: str, *, whole: bool
) -> int:
    """Mark the products of this source that have no row, and return their number. Unless the file
    is `whole`, mark only products of the file's sets.
    """
    named = keyed.select("game", "set_key", "identity")
    await new_table(session, "named", named, {}, analyzed=True)
    values = {"source": source, "now": clock.now()}
    statement = _GONE.format(among="game" if whole else "game, set_key")
    gone = (await session.execute(text(statement), values)).scalars().all()
    return await run(session, _VANISHED, values | {"ids": gone})


_WAITING: Final = [REMATCHED_CARDS, REMATCHED_COLLECTIONS]
_REMATCH: Final = """
    INSERT INTO work_due (seller_id, stream, due_at)
    SELECT s.id, stream, :now FROM seller s CROSS JOIN unnest(CAST(:streams AS text[])) AS stream
     ORDER BY 1, 2
    ON CONFLICT (seller_id, stream) DO UPDATE
       SET due_at = excluded.due_at, attempts = 0, failures = 0
"""

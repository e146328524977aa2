"""Loading a catalog: this module reads a CSV or Parquet file with our columns and writes
products. A provisional product that the file describes is adopted.

Loading the same file again updates its products; a product keeps its id for ever, so cards that
point to it stay right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import clock
from cardsync.catalog.match import CATALOG_KEYS, catalog_keys, match, row_keys
from cardsync.catalog.product_lines import NAMES
from cardsync.catalog.products import identity
from cardsync.database.copy import copy_chunks, copy_in, encode, frame_of
from cardsync.database.session import Database
from cardsync.errors import CommandError

REQUIRED = ("game", "set_name", "product_name")
COLUMNS = (
    "game",
    "set_name",
    "set_code",
    "product_name",
    "number",
    "rarity",
    "finish",
    "language",
    "product_id",
)
_CHUNK = 20_000
_STORED = (
    "game",
    "set_name",
    "set_code",
    "product_name",
    "number",
    "rarity",
    "finish",
    "language",
    "marketplace_product_id",
    *CATALOG_KEYS,
)
_TYPES = {"marketplace_product_id": "bigint", "sealed": "boolean"}


class CatalogError(CommandError):
    """The file is no catalog; the message is one sentence."""


def read_catalog(path: Path, form: str, game: str | None) -> pl.DataFrame:
    """Return COLUMNS, typed, without rows that lack a name or belong to another game."""
    if game is not None and game not in NAMES:
        raise CatalogError(f"{game!r} is no known product line; known are {', '.join(NAMES)}")
    form = path.suffix.lstrip(".").lower() if form == "auto" else form
    if form not in ("csv", "parquet"):
        raise CatalogError(
            f"{path.name} is neither .csv nor .parquet; name the format with --format"
        )
    try:
        frame = (
            pl.read_parquet(path) if form == "parquet" else pl.read_csv(path, infer_schema=False)
        )
    except (pl.exceptions.PolarsError, OSError) as e:
        raise CatalogError(f"{path.name} cannot be read as {form}: {e}") from e
    if game is not None and "game" not in frame.columns:
        frame = frame.with_columns(game=pl.lit(game))
    missing = [name for name in REQUIRED if name not in frame.columns]
    if missing:
        raise CatalogError(
            f"{path.name} lacks the columns {', '.join(missing)};"
            f" a catalog has {', '.join(COLUMNS)}"
        )
    frame = frame.with_columns(
        pl.lit(None, pl.String).alias(name) for name in COLUMNS if name not in frame.columns
    )
    frame = frame.select(COLUMNS).with_columns(
        pl.col(COLUMNS[:-1]).cast(pl.String).str.strip_chars(),
        pl.col("product_id").cast(pl.Int64, strict=False),
    )
    frame = frame.with_columns(
        pl.col("language").fill_null("en"),
        *(pl.col(name).replace("", None) for name in ("set_code", "number", "finish")),
    )
    frame = frame.filter(
        (pl.col("product_name").fill_null("") != "")
        & pl.col("set_name").fill_null("").str.len_chars().is_between(1, 500)
    )
    _check_games(frame, path)
    return frame.filter(pl.col("game") == game) if game else frame


def _check_games(frame: pl.DataFrame, path: Path) -> None:
    unknown = sorted(set(frame["game"].unique().to_list()) - set(NAMES), key=str)
    if unknown:
        raise CatalogError(
            f"{path.name} names the product line {unknown[0]!r}; known are {', '.join(NAMES)}"
        )


async def import_catalog(
    database: Database,
    path: Path,
    form: str,
    game: str | None,
    say: Callable[[str], None],
) -> str:
    """Load `path` and return the sentence that reports the result."""
    frame = await asyncio.to_thread(read_catalog, path, form, game)
    keyed = await asyncio.to_thread(_keyed, frame)
    adopted = await _adopt(database, keyed)
    before = await _count(database)
    for at in range(0, keyed.height, _CHUNK):
        async with database.shared() as session:
            await _store(session, keyed.slice(at, _CHUNK))
        if keyed.height > _CHUNK:
            say(f"{min(at + _CHUNK, keyed.height):,} of {keyed.height:,} products")
    added = await _count(database) - before + adopted
    async with database.shared() as session:
        await session.execute(
            text("""
                INSERT INTO catalog_import (source, rows, added, adopted, finished_at)
                VALUES (:source, :rows, :added, :adopted, :now)
            """),
            {
                "source": path.name,
                "rows": keyed.height,
                "added": added,
                "adopted": adopted,
                "now": clock.now(),
            },
        )
        await session.execute(text("ANALYZE product"))
    return (
        f"{keyed.height:,} products in {path.name}: {added:,} new,"
        f" {adopted:,} provisional ones adopted"
    )


def _keyed(frame: pl.DataFrame) -> pl.DataFrame:
    keyed = catalog_keys(frame).rename({"product_id": "marketplace_product_id"})
    # The identity holds the texts too, not the keys alone: two spellings are two products until
    # the matcher says otherwise.
    own = pl.concat_str(
        [pl.col(name).fill_null("") for name in COLUMNS[:-1] if name != "rarity"], separator="\x1f"
    )
    keyed = keyed.with_columns(
        identity=pl.concat_str(
            pl.lit("catalog\x1f"),
            own,
            pl.lit("\x1f"),
            identity(),
        )
    )
    return (
        keyed.unique("identity", keep="first", maintain_order=True)
        .sort("identity")
        .select("identity", *_STORED)
    )


async def _count(database: Database) -> int:
    async with database.shared() as session:
        return int(
            await session.scalar(text("SELECT count(*) FROM product WHERE NOT provisional")) or 0
        )


async def _incoming(session: AsyncSession, rows: pl.DataFrame) -> None:
    types = ", ".join(f"{name} {_TYPES.get(name, 'text')}" for name in rows.columns)
    await session.execute(text(f"CREATE TEMP TABLE incoming ({types}) ON COMMIT DROP"))
    await copy_in(session, "incoming", rows.columns, await asyncio.to_thread(encode, rows))


async def _store(session: AsyncSession, rows: pl.DataFrame) -> None:
    await _incoming(session, rows)
    listed = ", ".join(_STORED)
    sets = ", ".join(f"{name} = excluded.{name}" for name in _STORED)
    # A product that adopted a provisional one is found by its present identity.
    await session.execute(
        text(f"""
            INSERT INTO product (identity, {listed})
            SELECT md5(identity), {listed} FROM incoming ORDER BY identity
            ON CONFLICT (identity) DO UPDATE SET {sets}
             WHERE ({", ".join(f"product.{name}" for name in _STORED)})
                   IS DISTINCT FROM ({", ".join(f"excluded.{name}" for name in _STORED)})
        """)
    )


PROVISIONAL = ("id", "game", "set_name", "product_name", "number", "rarity", "finish", "language")


async def _adopt(database: Database, keyed: pl.DataFrame) -> int:
    """Turn each provisional product that exactly one row of this catalog describes into that
    product; it keeps its id.
    """
    games = sorted(keyed["game"].unique().to_list())
    async with database.shared() as session:
        await session.execute(text("CREATE TEMP TABLE games (game text) ON COMMIT DROP"))
        await copy_in(
            session,
            "games",
            ("game",),
            encode(pl.DataFrame({"game": games})),
        )
        data = await copy_chunks(
            session,
            f"SELECT {', '.join(PROVISIONAL)}, sealed FROM product"
            " WHERE provisional AND adopted_by IS NULL"
            " AND game IN (SELECT game FROM games) ORDER BY id",
        )
    rows = frame_of(
        data,
        {"id": pl.Int64, **dict.fromkeys(PROVISIONAL[1:], pl.String), "sealed": pl.String},
    )
    if rows.is_empty():
        return 0
    found = await asyncio.to_thread(_matches, rows, keyed)
    for at in range(0, found.height, _CHUNK):
        async with database.shared() as session:
            await _take_over(session, found.slice(at, _CHUNK))
    return found.height


def _matches(rows: pl.DataFrame, keyed: pl.DataFrame) -> pl.DataFrame:
    """Return the catalog row beside each provisional product (`old_id`) that it alone
    describes.
    """
    condition = pl.when(pl.col("sealed") == "t").then(pl.lit("U"))
    asked = row_keys(
        rows.with_columns(condition=condition, printing="finish").drop("sealed")
    ).with_row_index("row")
    offered = keyed.with_row_index("id").with_columns(pl.col("id").cast(pl.Int64))
    hits = match(asked, offered).filter(pl.col("outcome") == "matched")
    pairs = hits.join(asked.select("row", old_id="id"), on="row").select("old_id", id="product_id")
    return pairs.join(offered, on="id").drop("id").sort("old_id")


async def _take_over(session: AsyncSession, found: pl.DataFrame) -> None:
    types = {"old_id": "bigint", **_TYPES}
    columns = ", ".join(f"{name} {types.get(name, 'text')}" for name in found.columns)
    await session.execute(text(f"CREATE TEMP TABLE incoming ({columns}) ON COMMIT DROP"))
    await copy_in(session, "incoming", found.columns, await asyncio.to_thread(encode, found))
    sets = ", ".join(f"{name} = i.{name}" for name in _STORED)
    # The first of several becomes the product itself; the others point to it, and so do those of
    # a product that exists already.
    await session.execute(
        text(f"""
            WITH first AS (SELECT DISTINCT ON (identity) * FROM incoming ORDER BY identity, old_id)
            UPDATE product p SET {sets}, identity = md5(i.identity), provisional = false
              FROM first i
             WHERE p.id = i.old_id
               AND NOT EXISTS (SELECT FROM product q WHERE q.identity = md5(i.identity))
        """)
    )
    await session.execute(
        text("""
            UPDATE product p SET adopted_by = q.id FROM incoming i, product q
             WHERE p.id = i.old_id AND p.provisional AND q.identity = md5(i.identity)
        """)
    )

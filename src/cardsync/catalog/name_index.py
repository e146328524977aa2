"""Stores the names, sets and words of the catalog's products in the tables for searches.

A name's row has the words of all its products, including faces and variants, and the number of its
printings. All rows are derived from `product`, and `renew` computes them again.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.product_names import folded
from cardsync.catalog.typos import SHORTEST, deletes
from cardsync.platform.database.copy import new_table
from cardsync.platform.database.room_sql import queries_of

_AT_ONCE = 20_000


async def renew(session: AsyncSession, rows: pl.DataFrame) -> None:
    """Update the names, sets and words of the products in `rows`, which have game, set_name,
    name_key, back_key and variant_key. Unchanged rows are not written.
    """
    named = rows.select("game", "name_key").filter(pl.col("name_key").fill_null("") != "").unique()
    if named.is_empty():
        return
    await new_table(session, "renewed", named.sort("game", "name_key"), {}, analyzed=True)
    # All writers write the rows in the same order, so they cannot deadlock.
    await session.execute(text(queries_of(__package__)["renew_names"]))
    await session.execute(text("DROP TABLE renewed"))
    await _sets(session, rows)
    await _words(session, rows)


async def add_provisional(session: AsyncSession, rows: pl.DataFrame) -> None:
    """Add the names and sets of new provisional products; `rows` has the same columns as for
    `renew`. Their words are not added to `catalog_word`, because only words of catalogs correct
    typos.
    """
    names = (
        rows.filter(pl.col("name_key").fill_null("") != "")
        .select(
            "game",
            "name_key",
            pl.concat_str("name_key", "back_key", "variant_key", separator=" ", ignore_nulls=True)
            .str.strip_chars()
            .alias("words"),
        )
        .group_by("game", "name_key")
        .agg(pl.col("words").str.join(" "))
        .sort("game", "name_key")
    )
    if names.is_empty():
        return
    await session.execute(
        text("""
            INSERT INTO catalog_name AS n (game, name_key, own, words, printings, provisional)
            SELECT game, name_key, array_to_tsvector(string_to_array(name_key, ' ')),
                   array_to_tsvector(array_remove(string_to_array(words, ' '), '')), 0, true
              FROM unnest(CAST(:games AS text[]), CAST(:names AS text[]), CAST(:words AS text[]))
                   AS given (game, name_key, words)
             ORDER BY 1, 2
            ON CONFLICT (game, name_key) DO UPDATE
               SET words = n.words || excluded.words, provisional = true
             WHERE NOT n.provisional OR n.words || excluded.words <> n.words
        """),
        {
            "games": names["game"].to_list(),
            "names": names["name_key"].to_list(),
            "words": names["words"].to_list(),
        },
    )
    await _sets(session, rows)


async def _sets(session: AsyncSession, rows: pl.DataFrame) -> None:
    sets = rows.select("game", "set_name").unique().with_columns(words=folded(pl.col("set_name")))
    await session.execute(
        text("""
            INSERT INTO catalog_set AS s (game, set_name, words)
            SELECT * FROM unnest(CAST(:games AS text[]), CAST(:names AS text[]),
                                 CAST(:words AS text[])) AS given (game, set_name, words)
             ORDER BY 1, 2
            ON CONFLICT (game, set_name) DO UPDATE SET words = excluded.words
             WHERE s.words <> excluded.words
        """),
        {
            "games": sets["game"].to_list(),
            "names": sets["set_name"].to_list(),
            "words": sets["words"].to_list(),
        },
    )


async def _words(session: AsyncSession, rows: pl.DataFrame) -> None:
    """Store the new words, and their forms without one or two letters."""
    parts = pl.concat([rows[name] for name in ("name_key", "back_key", "variant_key")])
    words = parts.drop_nulls().unique().str.split(" ").explode().unique()
    words = words.filter(words.str.len_chars() >= SHORTEST).sort()
    if words.is_empty():
        return
    await new_table(session, "spelled", words.to_frame("word"), {}, analyzed=True)
    new = (
        await session.scalars(
            text("""
                INSERT INTO catalog_word (word) SELECT word FROM spelled ORDER BY word
                ON CONFLICT (word) DO NOTHING RETURNING word
            """)
        )
    ).all()
    await session.execute(text("DROP TABLE spelled"))
    for at in range(0, len(new), _AT_ONCE):
        pairs = [(left, word) for word in new[at : at + _AT_ONCE] for left in sorted(deletes(word))]
        frame = pl.DataFrame(pairs, schema={"deleted": pl.String, "word": pl.String}, orient="row")
        await new_table(session, "spelled", frame, {}, analyzed=True)
        await session.execute(
            text("""
                INSERT INTO catalog_typo (deleted, word) SELECT deleted, word FROM spelled
                 ORDER BY deleted, word ON CONFLICT DO NOTHING
            """)
        )
        await session.execute(text("DROP TABLE spelled"))

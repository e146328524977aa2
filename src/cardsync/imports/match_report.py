"""The command `cardsync catalog match` counts the rows of a pricing export that match the catalog,
lists the sets that are in no catalog, and can write a report of the unmatched rows with reasons. It
does not change the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

from cardsync.catalog import install_state
from cardsync.catalog.condition import condition_columns
from cardsync.catalog.match import explained
from cardsync.catalog.product_lines import LABEL_BY_NAME, NAME_BY_LABEL, NAMES
from cardsync.catalog.products import offered, printings
from cardsync.catalog.report import write_csv
from cardsync.catalog.sources.declared import of_game
from cardsync.imports.parse import Parsed, ProductLines, parse
from cardsync.platform import errors, limits
from cardsync.platform.database.session import Database
from cardsync.web import bodies

REASONS = {
    "several_products": "several products fit, and the row does not say which",
    "set_unknown": "the catalog has no set with this name",
    "name_unknown": "the set has no product with this name",
    "number_differs": "the set has this name with a different number",
    "variant_unknown": "the set has this card, but not this variant of it",
    "language_unknown": "the set has this card, but not in this language",
    "printing_unknown": "the set has this card, but not in this printing",
}
# The number of unknown sets that are listed if no report is written.
_SETS = 20
_COLUMNS = ("line", "listing_id", "product_line", "set_name", "product_name", "number")


class Counts(NamedTuple):
    """The number of a file's rows by outcome."""

    file: str
    rows: int
    rejected: int
    matched: int
    ambiguous: int
    unmatched: int

    def sentence(self) -> str:
        """Return all numbers in one sentence."""
        return (
            f"{self.rows:,} rows in {self.file}: {self.matched:,} matched,"
            f" {self.ambiguous:,} ambiguous, {self.unmatched:,} unmatched"
        )


async def examine(
    database: Database,
    path: Path,
    report: Path | None,
    say: Callable[[str], None],
) -> Counts:
    """Match the file's rows and return the numbers by outcome. Raises CommandError."""
    parsed = await asyncio.to_thread(_parsed, path)
    rows = parsed.frame.with_row_index("row")
    say(f"{rows.height:,} rows read, {parsed.rejected_count:,} rejected")
    described = condition_columns(rows["condition_label"])
    keyed = rows.hstack(described.select("condition", "printing", "language"))
    catalog = await offered(database, rows.select("product_line", "set_name"))
    printed = await asyncio.to_thread(printings, keyed)
    verdicts = await asyncio.to_thread(explained, printed.keyed, catalog)
    found = rows.select("row", "quantity", *_COLUMNS).join(
        printed.spread(verdicts.drop("row")),
        on="row",
        maintain_order="left",
    )
    counts = dict(found["outcome"].value_counts().iter_rows())
    if report is not None:
        left = found.filter(pl.col("outcome") != "matched")
        write_csv(report, (*_COLUMNS, "outcome", "reason"), _lines(left))
    reasons = found.filter(pl.col("reason").is_not_null())["reason"].value_counts(sort=True)
    for reason, count in reasons.iter_rows():
        say(f"{count:,} rows: {REASONS.get(reason, reason)}")
    async with database.shared() as session:
        held = await install_state.counts(session)
    games = rows.filter(~pl.col("product_line").is_in([*held]))["product_line"]
    if missing := games.value_counts(sort=True)["product_line"].to_list():
        say(
            f"{games.len():,} rows have no catalog to match them with: no catalog is installed of"
            f" {', '.join(missing)}"
        )
    if had := [game for game in missing if any(one.downloads for one in of_game(game))]:
        say(f"`cardsync catalog install {' '.join(had)}` downloads what can be had of these")
    unknown = [*_unknown_sets(found)]
    shown = unknown if report is not None else unknown[:_SETS]
    for line in shown:
        say(line)
    if len(unknown) > len(shown):
        say(f"{len(unknown) - len(shown):,} more sets; --report FILE names them all")
    outcomes = (counts.get(name, 0) for name in ("matched", "ambiguous", "unmatched"))
    return Counts(path.name, rows.height, parsed.rejected_count, *outcomes)


def _unknown_sets(found: pl.DataFrame) -> Iterator[str]:
    """Yield a line for each set that is in no catalog, the set with the most cards first."""
    sets = (
        found.filter(pl.col("reason") == "set_unknown")
        .group_by("product_line", "set_name")
        .agg(pl.col("quantity").sum().alias("cards"), pl.len().alias("rows"))
        .sort("cards", "rows", "product_line", "set_name", descending=[True, True, False, False])
    )
    for line, name, cards, rows in sets.iter_rows():
        label = LABEL_BY_NAME.get(line, line)
        yield f"no catalog knows {name} ({label}): cards {cards:,}, rows {rows:,}"


def _parsed(path: Path) -> Parsed:
    lines = ProductLines(NAME_BY_LABEL, NAMES, allow_unknown=True)
    try:
        return parse(bodies.pieces(path.read_bytes(), limits.BODY_INFLATED_BYTES), lines, None)
    except bodies.BadGzip as e:
        raise errors.CommandError(f"{path.name} is damaged gzip: {e}") from e
    except errors.Problem as e:
        raise errors.CommandError(f"{path.name} is not a pricing export: {e}") from e
    except OSError as e:
        raise errors.CommandError(f"{path.name} cannot be read: {e.strerror}") from e


def _lines(left: pl.DataFrame) -> Iterator[tuple[object, ...]]:
    for row in left.select(*_COLUMNS, "outcome", "reason").iter_rows():
        yield (*row[:-1], REASONS.get(row[-1], row[-1]))

"""Reads entries of the activity feed that have moved to the object store, as the same objects as
the entries in the database.
"""

from __future__ import annotations

import json
from functools import reduce
from operator import attrgetter
from typing import Final

import polars as pl

from cardsync.access.activity import Activity
from cardsync.platform.kit.row_pages import Page, cut
from cardsync.platform.old_data.old_kinds import ACTIVITY
from cardsync.platform.old_data.read_back import Old, rows_before
from cardsync.platform.value_types import NamedRow
from cardsync.shop.activity.feed_filter import FeedFilter

_JSON: Final = ("before", "after", "undo")
_ID: Final = attrgetter("id")


async def older_entries(
    old: Old, wanted: FeedFilter, page: Page[Activity], before: int | None, most: int
) -> Page[Activity]:
    """Return `page`, which has the database's entries before the id `before`, newest first, with
    the old entries that belong in it.
    """
    # An old entry may have a greater id than an entry in the database, because the clocks of
    # processes differ a little.
    above = page.next or 0
    rows = await rows_before(old, ACTIVITY, before, above, _which(wanted), most + 1)
    if not rows:
        return page
    entries = [*page.rows, *(_entry(old.seller_id, row) for row in rows)]
    return cut(sorted(entries, key=_ID, reverse=True), most, _ID)


def _which(wanted: FeedFilter) -> pl.Expr:
    """Return the conditions of the filter for the rows of a file."""
    those = [pl.lit(value=True)]
    for name in ("actor", "action"):
        if (value := getattr(wanted, name)) is not None:
            kind = pl.col(name).str.split(" " if name == "actor" else ".").list.first()
            those.append((pl.col(name) == value) | (kind == value))
    given = {"outcome": wanted.outcome, "risk": wanted.risk}
    those += [pl.col(name) == value for name, value in given.items() if value is not None]
    if wanted.since is not None:
        those.append(pl.col("created_at") >= wanted.since)
    return reduce(lambda one, other: one & other, those)


def _entry(seller_id: int, row: NamedRow) -> Activity:
    read = {name: json.loads(row[name]) for name in _JSON if row[name] is not None}
    return Activity(**{**row, **read}, seller_id=seller_id)

"""Holds the rows of cards that an upload writes: a frame, and its row indexes by kind of change.
Pure.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

AMOUNTS = ("price", "market", "low", "low_with_shipping", "direct_low")


IDENTITY = (
    "product_line",
    "product_line_label",
    "set_name",
    "product_name",
    "title",
    "number",
    "rarity",
    "condition_label",
    "photo_url",
)


@dataclass(frozen=True)
class Changes:
    """The rows of new and changed cards. Each series holds indexes into `rows`, in the order of
    writing.

    A row is copied only when the transaction that writes it (a slab, `write.py`) begins.
    """

    rows: pl.DataFrame
    insert_at: pl.Series
    update_at: pl.Series
    rename_at: pl.Series
    retarget_at: pl.Series

    @property
    def total(self) -> int:
        return (
            self.insert_at.len()
            + self.update_at.len()
            + self.rename_at.len()
            + self.retarget_at.len()
        )

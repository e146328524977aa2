"""Prices cards by a run and compares the results with other prices. Only this module compares
prices under different rules. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from cardsync.prices.engine import engine
from cardsync.prices.engine.engine import Summary
from cardsync.prices.engine.price_row import price_row
from cardsync.prices.engine.run_inputs import Run


@dataclass(frozen=True)
class Effect:
    """The effect of a run on the prices of cards. `cards` are in their original order, as the
    engine priced them. Their column `asks` is the price after the run: the target, or the current
    price of a card without a target.
    """

    run: Run
    cards: pl.DataFrame

    @cached_property
    def counts(self) -> Summary:
        return engine.summary(self.cards)

    @property
    def worth(self) -> tuple[int, int]:
        """Return the listed value at the current prices and at the prices after the run."""
        before, after = worth(self.cards, "current_price", "asks")
        return before, after

    def moves(self, was: str = "current_price", asks: str = "asks") -> pl.DataFrame:
        """Return the cards whose prices in the columns `was` and `asks` differ, the largest move
        first.
        """
        differ = self.cards.filter(pl.col(was).ne_missing(pl.col(asks)))
        return furthest(differ, (pl.col(asks).fill_null(0) - pl.col(was).fill_null(0)).abs())


def simulate(run: Run, cards: pl.DataFrame) -> Effect:
    out = engine.price(cards, run.rules, run.seller, run.now, run.sales)
    return Effect(run, out.with_columns(asks=pl.coalesce("target", "current_price")))


def simulate_row(run: Run, card: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of `simulate(run, cards).cards` for a card, the row of a frame."""
    row = price_row(card, run)
    return row | {"asks": row["current_price"] if row["target"] is None else row["target"]}


def moved(before: pl.DataFrame, after: pl.DataFrame, prices: Sequence[str]) -> pl.DataFrame:
    """Join two frames by `id` and return the cards with a price that differs. The prices of the
    second frame are in the columns `{price}_after`.
    """
    then = {f"{name}_after": name for name in prices}
    both = before.join(after.select("id", **then), on="id", how="inner")
    return both.filter(
        pl.any_horizontal(pl.col(was).ne_missing(pl.col(becomes)) for becomes, was in then.items())
    )


def worth(cards: pl.DataFrame, *prices: str) -> list[int]:
    """Return the value of all copies at each of these prices; a missing price counts as zero."""
    copies = pl.col("quantity").cast(pl.Int128)
    sums = cards.select((pl.col(name) * copies).sum().alias(name) for name in prices)
    return [int(value) for value in sums.row(0)]


def furthest(cards: pl.DataFrame, move: pl.Expr) -> pl.DataFrame:
    """Sort the cards by move, the largest first, then by marketplace id."""
    return cards.sort([move, "marketplace_id"], descending=[True, False])

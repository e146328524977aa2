"""Prices cards by a run and compares the prices with others: the only module that compares prices
under different rules. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import polars as pl

from cardsync.prices.engine import engine
from cardsync.prices.engine.engine import Summary
from cardsync.prices.engine.run_inputs import Run


@dataclass(frozen=True)
class Effect:
    """The effect of a run on the prices of cards. `cards` are these in their order as the engine
    priced them, and `asks` is the price that each of them then has: its target, or the price that
    it keeps.
    """

    run: Run
    cards: pl.DataFrame

    @cached_property
    def counts(self) -> Summary:
        return engine.summary(self.cards)

    @property
    def worth(self) -> tuple[int, int]:
        """Return the listed value at the prices of now and at those that the run asks."""
        before, after = worth(self.cards, "current_price", "asks")
        return before, after

    def moves(self, was: str = "current_price", asks: str = "asks") -> pl.DataFrame:
        """Return the cards whose two prices differ, the largest move first."""
        differ = self.cards.filter(pl.col(was).ne_missing(pl.col(asks)))
        return furthest(differ, (pl.col(asks).fill_null(0) - pl.col(was).fill_null(0)).abs())


def simulate(run: Run, cards: pl.DataFrame) -> Effect:
    out = engine.price(cards, run.rules, run.seller, run.now, run.sales)
    return Effect(run, out.with_columns(asks=pl.coalesce("target", "current_price")))


def moved(before: pl.DataFrame, after: pl.DataFrame, prices: Sequence[str]) -> pl.DataFrame:
    """Return the cards with a price that differs between two frames, by `id`, with the prices of
    the second as `{price}_after`.
    """
    then = {f"{name}_after": name for name in prices}
    both = before.join(after.select("id", **then), on="id", how="inner")
    return both.filter(
        pl.any_horizontal(pl.col(was).ne_missing(pl.col(becomes)) for becomes, was in then.items())
    )


def worth(cards: pl.DataFrame, *prices: str) -> list[int]:
    """Return the value of all copies at each of these prices; no price is worth nothing."""
    copies = pl.col("quantity").cast(pl.Int128)
    sums = cards.select((pl.col(name) * copies).sum().alias(name) for name in prices)
    return [int(value) for value in sums.row(0)]


def furthest(cards: pl.DataFrame, move: pl.Expr) -> pl.DataFrame:
    """Return the cards with the largest move first; equal ones by their marketplace ids."""
    return cards.sort([move, "marketplace_id"], descending=[True, False])

"""Simulates a shop priced by other rules, snapshot by snapshot, and returns the prices that the
shop would have asked. Pure.

A card starts with its real price. After the rules have priced the card, it keeps their price, so
caps and `never_lower` limit the next days' prices as they would have in reality. A card that the
rules do not price keeps its real price.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import polars as pl

from cardsync.catalog.market.of_cards import KEYS
from cardsync.prices.decisions.found_in_run import ways_back
from cardsync.prices.engine.breaker import REMEMBERED
from cardsync.prices.engine.periods import day_start, week_start
from cardsync.prices.engine.run_inputs import TIME, Run
from cardsync.prices.engine.simulate import Effect, simulate

_STALE: Final = ("listed_since", "last_sold_at", "last_moved_at")
# The price after a promotion's end, which the seller accepted together with the promotion.
_BACK: Final = {"approved_price": pl.Int64(), "approved_at": TIME}
_CARRIED: Final = ("asked", "day_start_price", "week_start_price", *_STALE, *_BACK)
_STARTS: Final = {"day_start_price": day_start, "week_start_price": week_start}
CURRENT: Final = pl.coalesce("asked", "price")


class Shop:
    """A simulated shop. It holds the cards as of the newest snapshot."""

    def __init__(
        self,
        cards: pl.DataFrame,
        at: datetime,
        zone: str,
        past: pl.DataFrame | None = None,
    ) -> None:
        """Start with the cards. `past` has their (id, listed_since, last_sold_at, last_moved_at),
        if a rule needs it.
        """
        self._zone = zone
        self._at = at
        never = [pl.lit(None, TIME).alias(name) for name in _STALE]
        known = (
            cards.with_columns(never)
            if past is None
            else cards.join(past.select("id", *_STALE), "id", how="left")
        )
        self.cards = known.with_columns(
            pl.col("listed_since").fill_null(pl.col("observed_at")),
            *(pl.coalesce(name, "price").alias(name) for name in _STARTS),
            *(pl.lit(None, dtype).alias(name) for name, dtype in _BACK.items()),
            asked=pl.lit(None, pl.Int64),
        )
        # The time at which an upload last covered each line, by the line's number; None means all
        # lines.
        self._covered: dict[int | None, datetime] = {}

    def advance(self, changed: pl.DataFrame, at: datetime) -> None:
        """Advance to the next snapshot, which holds the cards that are new or have changed."""
        begun = [
            name
            for name, start in _STARTS.items()
            if start(at, self._zone) != start(self._at, self._zone)
        ]
        self._at = at
        before = self.cards.with_columns(CURRENT.alias(name) for name in begun)
        old = before.select(
            "id",
            *_CARRIED,
            was=pl.col("quantity"),
            before="market",
        )
        now = pl.col("market")
        market = pl.col("before")
        moved = (market > 0) & (now > 0) & ((now - market).abs() * 20 >= market)
        back = (pl.col("was").fill_null(0) == 0) & (pl.col("quantity") > 0)
        after = (
            changed.drop(_STARTS)
            .join(old, on="id", how="left")
            .with_columns(
                *(pl.coalesce(name, "price").alias(name) for name in _STARTS),
                listed_since=pl.when(back).then("observed_at").otherwise("listed_since"),
                last_moved_at=pl.when(moved).then("observed_at").otherwise("last_moved_at"),
            )
        )
        untouched = before.join(changed.select("id"), on="id", how="anti")
        self.cards = pl.concat([untouched, after.select(untouched.columns)])

    def covered(self, at: datetime, lines: Iterable[int] | None) -> None:
        """Record that an upload covered every card of the lines with these numbers; None means all
        lines.
        """
        for line in (None,) if lines is None else lines:
            self._covered[line] = max(at, self._covered.get(line, at))

    @property
    def _seen_at(self) -> pl.Expr:
        """Return the time at which a card's market prices were last observed, as a run of that time
        would have read it (`inputs/cards_to_price.py`).
        """
        every = pl.lit(self._covered.get(None), TIME)
        by_line = {line: at for line, at in self._covered.items() if line is not None}
        own = pl.col("line").replace_strict(by_line, default=None, return_dtype=TIME)
        covered = pl.max_horizontal(every, own) if by_line else every
        seen = pl.max_horizontal("observed_at", covered)
        return pl.when("seen").then(seen).otherwise(pl.coalesce(covered, "observed_at"))

    def sell(self, lines: pl.DataFrame) -> pl.DataFrame:
        """Return the lines that sold since the snapshot, each with the price that the shop asked
        for its card.
        """
        last = lines.group_by("marketplace_id").agg(newest=pl.col("sold_at").max())
        asked = self.cards.select("marketplace_id", asked_price=CURRENT)
        if lines.height:
            self.cards = (
                self.cards.join(last, on="marketplace_id", how="left")
                .with_columns(last_sold_at=pl.max_horizontal("last_sold_at", "newest"))
                .drop("newest")
            )
        return lines.join(asked, on="marketplace_id", how="left", maintain_order="left")

    @property
    def stocked(self) -> pl.DataFrame:
        return self.cards.filter(pl.col("quantity") > 0)

    def price(
        self,
        run: Run,
        decided: pl.DataFrame,
        games: list[int] | None = None,
        evidence: pl.DataFrame | None = None,
    ) -> Effect:
        """Price every card in stock by the run; the shop asks these prices from now on.

        `decided` has (marketplace_id, pin) and, where a rule needs it, `cost`. `games` has the
        numbers of the product lines from which rules select cards; None means all. `evidence` has
        the market of `stocked`, row by row.
        """
        stocked = self.stocked
        remembered = pl.col("approved_at") > pl.lit(run.now - REMEMBERED, TIME)
        known = stocked.with_columns(
            approved_price=pl.when(remembered).then("approved_price")
        ).join(decided, on="marketplace_id", how="left", maintain_order="left")
        dropped = ("price", "asked", "seen", "line", "approved_at", *KEYS)
        inputs = known.drop(dropped, strict=False).with_columns(
            current_price=stocked.select(CURRENT).to_series(),
            observed_at=stocked.select(self._seen_at).to_series(),
            product_line_enabled=stocked["line"] > 0,
            game_has_rules=pl.lit(True) if games is None else stocked["line"].is_in(games),
            **{name: pl.lit(None, pl.String) for name in ("condition", "printing", "language")},
        )
        effect = simulate(run, inputs if evidence is None else inputs.hstack(evidence))
        asked_prices = effect.cards.select("id", "target")
        back = ways_back(effect.cards, run).select("marketplace_id", back="price")
        is_back = pl.col("back").is_not_null()
        self.cards = (
            self.cards.join(asked_prices, on="id", how="left")
            .join(back, on="marketplace_id", how="left")
            .with_columns(
                asked=pl.coalesce("target", "asked"),
                approved_price=pl.coalesce("back", "approved_price"),
                approved_at=pl.when(is_back).then(pl.lit(run.now, TIME)).otherwise("approved_at"),
            )
            .drop("target", "back")
        )
        return effect

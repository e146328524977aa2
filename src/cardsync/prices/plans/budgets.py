"""Computes how much of the loss limits keys, tokens and the automatic mode have used within the
last hour, day and week.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
import polars as pl

from cardsync.platform.database.read_sources import Source, each_of, found
from cardsync.platform.money import to_units
from cardsync.prices.loss import loss_limits as loss
from cardsync.prices.loss.decide import budget_of
from cardsync.prices.loss.moves import past_moves
from cardsync.prices.plans.price_effect import shop_value

_BUDGET = "SELECT loss_budget FROM account WHERE seller_id = :seller"
_PRICES = """
    SELECT id, (coalesce(target_price, price) * 10000)::bigint AS price FROM card
     WHERE seller_id = :seller AND id = ANY (CAST(:ids AS bigint[])) AND coalesce(target_price, price) IS NOT NULL
"""


class Used(msgspec.Struct):
    """The used parts of the loss limits. `card_hour_bp` and `card_day_bp` are the largest moves of
    a card, and `hour_value_bp` is the fall of the listed value of the cards that moved within the
    hour, in basis points. `week_units` is the loss of the week, in ten-thousandths of a dollar.
    """

    card_hour_bp: int
    card_day_bp: int
    hour_value_bp: int
    week_units: int
    week_budget_units: int


async def used(source: Source, seller_id: int, now: datetime) -> Used:
    [[budget]], past, shop = await each_of(
        source,
        found(source, _BUDGET, {"seller": seller_id}),
        past_moves(source, seller_id, now),
        shop_value(source, seller_id),
    )
    rows = await found(source, _PRICES, {"seller": seller_id, "ids": past["id"].to_list()})
    prices = pl.DataFrame(
        [tuple(row) for row in rows], schema={"id": pl.Int64, "price": pl.Int64}, orient="row"
    )
    return used_of(
        past.join(prices, on="id"),
        budget_of(None if budget is None else to_units(budget), shop.listed),
    )


def used_of(past: pl.DataFrame, budget: int) -> Used:
    """Return the used parts; `past` has `loss_limits.PAST` and each card's price. Pure."""
    worst = {
        span: max((_furthest_bp(past, f"{span}_{side}") for side in loss.SIDES), default=0)
        for span in ("hour", "day")
    }
    return Used(
        card_hour_bp=worst["hour"],
        card_day_bp=worst["day"],
        hour_value_bp=max(_fallen_bp(past, f"hour_{side}") for side in loss.SIDES),
        week_units=max(_lost(past, f"week_{side}") for side in loss.SIDES),
        week_budget_units=budget,
    )


def _furthest_bp(past: pl.DataFrame, name: str) -> int:
    """Return the largest move of a card in basis points of its earlier price. Cards that never cost
    more than a dollar are omitted: these limits do not apply to them.
    """
    moved, base = pl.col(name), pl.col("price") - pl.col(name)
    dear = past.filter(pl.max_horizontal("price", base) > loss.CHEAP, base > 0, moved != 0)
    return int(dear.select((moved.abs() * loss.WHOLE_BP // base).max()).item() or 0)


def _fallen_bp(past: pl.DataFrame, name: str) -> int:
    touched = past.filter(pl.col(name) != 0)
    copies = pl.col("quantity").cast(pl.Int128)
    before, fallen = touched.select(
        ((pl.col("price") - pl.col(name)) * copies).sum(),
        (pl.max_horizontal(-pl.col(name), 0) * copies).sum().alias("fallen"),
    ).row(0)
    return int(fallen * loss.WHOLE_BP // before) if before > 0 else 0


def _lost(past: pl.DataFrame, name: str) -> int:
    lost = pl.max_horizontal(-pl.col(name), 0) * pl.col("quantity").cast(pl.Int128)
    return int(past.select(lost.sum()).item())

"""The rows that the engine makes of a frame, each of which it must also make of the row alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl

from cardsync.prices.engine.engine import INPUT_COLUMNS, price
from cardsync.prices.engine.price_row import price_row
from cardsync.prices.engine.rules import Rule, Sale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.seller_pricing import SellerPricing


def priced_rows(
    cards: pl.DataFrame,
    rules: Sequence[Rule],
    seller: SellerPricing,
    now: datetime,
    sales: Sequence[Sale] = (),
) -> list[dict[str, Any]]:
    rows = price(cards, rules, seller, now, sales).to_dicts()
    alone = [
        price_row(card, Run(rules, seller, now, sales)) for card in cards.iter_rows(named=True)
    ]
    assert alone == rows
    assert [list(row) for row in alone] == [list(row) for row in rows]
    assert [types_of(row) for row in alone] == [types_of(row) for row in rows]
    assert set(INPUT_COLUMNS) <= set(rows[0])
    return rows


def types_of(row: dict[str, Any]) -> list[type]:
    return list(map(type, row.values()))

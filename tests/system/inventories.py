"""Inventories of a few thousand rows, the same for the same arguments."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

from builders import a_csv, a_row

NOW = datetime.now(UTC).replace(microsecond=0)
FIRST, SECOND = ((NOW - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ") for hours in (2, 1))


def inventory(rows: int, edition: int = 1) -> bytes:
    """Edition 1 has all rows; of edition n a third moved in price, some are absent, some sold
    out, some are new.
    """
    chance = random.Random(rows)
    made = []
    for n in range(1, rows + 1):
        market = round(chance.uniform(0.3, 40), 2)
        price = round(market * chance.uniform(0.9, 1.1), 2)
        move, fate = chance.random(), chance.random()
        quantity = chance.randint(1, 4)
        if edition > 1:
            if move < 0.33:
                market = round(market * (0.97 + 0.01 * edition), 2)
            if fate < 0.25:
                continue
            if fate < 0.3:
                quantity = 0
        made.append(
            a_row(n, name=f"Card {n // 4}", condition=CONDITIONS[n % 4], market=market, low=market,
                  quantity=quantity,
                  price=f"{price:.4f}", low_with_shipping=round(market + 1.31, 2))
        )  # fmt: skip
    if edition > 1:
        made += [a_row(rows + n, market="2.00", price="1.50") for n in range(1, 40)]
    return a_csv(*made)


CONDITIONS = ("Near Mint", "Lightly Played", "Near Mint Foil", "Damaged")

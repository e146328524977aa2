"""A part of a shop's cards is priced by the same last sales as all cards, and reads only its own."""

from __future__ import annotations

from datetime import date

import polars as pl

from builders import a_csv, a_row
from cardsync.platform import clock
from cardsync.prices.engine.rules import Rule, Stale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs.price_history import unsold
from cardsync.prices.inputs.rule_rows import live_run
from orders_builder import an_item, an_order
from sent_statements import counting


async def test_a_part_of_the_cards_has_the_last_sales_that_all_have(a_seller):
    seller = await a_seller()
    await seller.import_csv(a_csv(*(a_row(n) for n in range(1, 9))))
    statuses = ("Shipped", "Completed - Paid", "Canceled")
    for n in range(24):
        order = await an_order(
            seller, status=statuses[n % 3], order_date=date(2026, 1 + n % 12, 1 + n)
        )
        await an_item(seller, order, sku_id=1 + n % 7)
    async with seller.service.database.tenant(seller.id) as session:
        _, live = await live_run(session, seller.id, clock.now())
        stale = Rule(1, "Old", 1, state="published", stale=Stale(60, 500, 7, 4_000))
        run = Run([stale], live.seller, live.now, [])
        whole = (await unsold(session, seller.id, run, None)).sort("id")
        assert 0 < whole["last_sold_at"].null_count() < whole.height
        ids = whole["id"].to_list()
        for part in (ids[2:5], ids[7:], range(0, 2**63 - 1, 2)):
            expected = whole.filter(
                pl.col("id") % 2 == 0 if isinstance(part, range) else pl.col("id").is_in(part)
            )
            assert (await unsold(session, seller.id, run, part)).sort("id").equals(expected)
    database = seller.service.app.state.database
    async with counting(database) as sent, database.tenant(seller.id) as session:
        await unsold(session, seller.id, run, ids[:1])
        sent.read()
        assert sent.statements("FROM order_item") == 1
        assert sent.statements("GROUP BY i.sku_id") == 0

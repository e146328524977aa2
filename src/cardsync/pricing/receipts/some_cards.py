"""Prices a few cards by a run, and returns the engine's rows, from which their steps are written.
Nothing is stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.pricing.engine import engine
from cardsync.pricing.engine.run_inputs import Run
from cardsync.pricing.inputs.cards_to_price import read_stock, with_losing


async def priced_cards(
    session: AsyncSession,
    account: Account,
    run: Run,
    card_ids: Sequence[int],
) -> tuple[dict[int, dict[str, Any]], Run]:
    """Return the rows by card id, and the run with its queries judged."""
    stock = await read_stock(session, account, run, "true", card_ids)
    stock = await with_losing(session, account.seller_id, stock, card_ids)
    out = await asyncio.to_thread(
        engine.price,
        stock.cards,
        stock.run.rules,
        stock.run.seller,
        stock.run.now,
        stock.run.sales,
    )
    return dict(zip(stock.cards["id"], out.iter_rows(named=True), strict=True)), stock.run

"""Prices a few cards by a run and returns the engine's rows, or prices one card by the live rules
and returns its steps. Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.platform.database.read_sources import Source
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.inputs.cards_to_price import read_stock, simulate_chosen, with_losing
from cardsync.prices.inputs.rule_rows import live_run
from cardsync.prices.receipts.sentences import explain


async def priced_cards(
    session: Source,
    account: Account,
    run: Run,
    card_ids: Sequence[int],
) -> tuple[dict[int, dict[str, Any]], Run]:
    """Return the rows by card id, and the run after its queries were compiled."""
    stock = await read_stock(session, account, run, "true", card_ids)
    stock = await with_losing(session, account.seller_id, stock, card_ids)
    return {row["id"]: row for row in await simulate_chosen(stock)}, stock.run


async def live_steps(
    session: Source,
    caller: Caller,
    card_id: int,
    now: datetime,
) -> list[dict[str, object]]:
    """Return the steps to the price that a run would ask now. A card that no run prices has no
    steps.
    """
    account, live = await live_run(session, caller.seller_id, now)
    priced, run = await priced_cards(session, account, live, [card_id])
    return explain(priced[card_id], run) if card_id in priced else []

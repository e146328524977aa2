"""A changed rule on one card: the card and the changes of its governing rule come in; what the card
would ask, and the steps to it, go out. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import errors
from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.cards.models import Card
from cardsync.pricing.engine import engine
from cardsync.pricing.engine.run_inputs import Run
from cardsync.pricing.receipts.sentences import blocker_codes, explain, money
from cardsync.pricing.rules import json
from cardsync.pricing.rules.rows import run_of
from cardsync.pricing.runs.cards_to_price import Stock, read_stock

# Another query or place would let another rule govern: that is a preview of all cards.
_OF_SELECTION: Final = ("name", "priority", "enabled", "state", "query")
FIELDS: Final = {
    name: reader for name, reader in json.RULE_FIELDS.items() if name not in _OF_SELECTION
}


class WhatIf(msgspec.Struct):
    """`asks` is what the live rules ask, `would_ask` what they would ask with the change; either is
    null where something blocks a price.
    """

    rule_id: int
    rule_name: str
    asks: str | None
    would_ask: str | None
    blockers: list[str]
    steps: list[dict[str, Any]]


async def what_if(
    session: AsyncSession,
    caller: Caller,
    marketplace_id: int,
    body: Mapping[str, Any],
    now: datetime,
) -> WhatIf:
    """Raises OwnerRequired, NotFound, also for a card that no rule prices, and InvalidRule."""
    caller.must_be_owner()
    values = json.read_body(body, FIELDS)
    card = await session.scalar(
        select(Card).where(
            Card.seller_id == caller.seller_id,
            Card.marketplace_id == marketplace_id,
            Card.contribution.is_(None),
        )
    )
    if card is None:
        raise errors.NotFound(f"there is no card {marketplace_id}")
    account = await session.get_one(Account, caller.seller_id)
    live = await run_of(session, account, now)
    asked = await _priced(session, account, live, card.id)
    rule = next((one for one in live.rules if one.id == asked["rule_id"]), None)
    if rule is None or rule.broken:
        raise errors.NotFound("no rule prices this card")
    changed = json.rule_from(values, rule)
    rules = [changed if one.id == rule.id else one for one in live.rules]
    run = replace(live, rules=rules)
    row = await _priced(session, account, run, card.id)
    return WhatIf(
        rule.id,
        rule.name,
        money(asked["target"]),
        money(row["target"]),
        blocker_codes(row["blockers"]),
        explain(row, run),
    )


async def _priced(
    session: AsyncSession,
    account: Account,
    run: Run,
    card_id: int,
) -> dict[str, Any]:
    stock: Stock = await read_stock(
        session,
        account,
        run,
        "c.id = :wanted",
        card_id=card_id,
        wanted=card_id,
    )
    out = engine.price(
        stock.cards,
        stock.run.rules,
        stock.run.seller,
        stock.run.now,
        stock.run.sales,
    )
    if out.is_empty():
        raise errors.NotFound("this card is not for sale")
    return out.row(0, named=True)

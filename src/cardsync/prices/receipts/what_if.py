"""Tries a changed rule on one card: the card's price under the changed rule, and the steps to this
price. Nothing is written.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import msgspec

from cardsync.access.caller import Caller
from cardsync.platform import errors
from cardsync.platform.database.read_sources import Source
from cardsync.platform.money import dollars_or_none
from cardsync.platform.value_types import JsonMapping, JsonObject
from cardsync.prices.inputs import rule_json
from cardsync.prices.inputs.rule_rows import live_run
from cardsync.prices.receipts.archive import card_of
from cardsync.prices.receipts.sentences import blocker_codes, explain
from cardsync.prices.receipts.some_cards import priced_cards


class WhatIf(msgspec.Struct):
    """`asks` is the live rules' price, `would_ask` their price with the change; either is null if
    something blocks a price.
    """

    rule_id: int
    rule_name: str
    asks: str | None
    """The card's price by the live rules, in USD"""
    would_ask: str | None
    """The card's price by the live rules with the change, in USD"""
    blockers: list[str]
    steps: list[JsonObject]
    """Each step to the price with the change, in order"""


async def what_if(
    session: Source,
    caller: Caller,
    marketplace_id: int,
    body: JsonMapping,
    now: datetime,
) -> WhatIf:
    """Price the card as if its governing rule had the fields of `body`. Raise OwnerRequired,
    InvalidRule, and NotFound, also for a card that no rule prices.
    """
    caller.must_be_owner()
    # Only price fields are read. With another query or priority, another rule could govern the
    # card, which only a preview of all cards can show.
    values = rule_json.read_body(body, rule_json.PriceFields)
    card = await card_of(session, caller.seller_id, marketplace_id)
    account, live = await live_run(session, caller.seller_id, now)
    priced, judged = await priced_cards(session, account, live, [card.id])
    asked = priced[card.id]
    rule = next((one for one in judged.rules if one.id == asked["rule_id"]), None)
    if rule is None or rule.broken:
        raise errors.NotFound("no rule prices this card")
    changed = rule_json.rule_from(values, rule)
    rules = [changed if one.id == rule.id else one for one in live.rules]
    priced, run = await priced_cards(session, account, replace(live, rules=rules), [card.id])
    row = priced[card.id]
    return WhatIf(
        rule.id,
        rule.name,
        dollars_or_none(asked["target"]),
        dollars_or_none(row["target"]),
        blocker_codes(row["blockers"]),
        explain(row, run),
    )

"""Answers `GET /api/network` for the seller: the network's switches, the shop as a buyer sees it,
and the cards that nobody in the network had.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import limits
from cardsync.access.caller import Caller
from cardsync.access.entitlements import is_paid
from cardsync.access.models import Account
from cardsync.discovery import misses
from cardsync.discovery.misses import Unmet

# A thousand offers are looked at, so that the page stays quick for the largest shop.
_SHOWN = f"""
    SELECT p.id, p.product_name, p.set_name, p.number, p.finish, p.game, o.condition, o.price,
           o.quantity, p.marketplace_product_id
      FROM (SELECT product_id, condition, price, quantity FROM network_offer
             WHERE seller_id = :seller AND price IS NOT NULL LIMIT 1000) AS o
      JOIN product p ON p.id = o.product_id
     ORDER BY o.price DESC, p.id, o.condition LIMIT {limits.OWN_OFFERS_SHOWN}
"""


class OwnOffer(NamedTuple):
    product_id: int
    product_name: str
    set_name: str
    number: str | None
    finish: str | None
    game: str
    condition: str
    price: Decimal
    quantity: int
    marketplace_product_id: int | None


class Network(NamedTuple):
    """`hidden_because` is empty while buyers see the stock; otherwise it names each reason:
    no_consent, not_published, suspended, plan_ended.
    """

    account: Account
    hidden_because: list[str]
    printings: int
    copies: int
    refreshed_at: datetime | None
    shown: list[OwnOffer]
    unmet: list[Unmet]


async def read_network(session: AsyncSession, caller: Caller, now: datetime) -> Network:
    """Raises OwnerRequired."""
    caller.must_be_owner()
    account = await session.get_one(Account, caller.seller_id)
    seller = {"seller": caller.seller_id}
    found = await session.execute(
        text(
            "SELECT printings, copies, refreshed_at FROM network_seller WHERE seller_id = :seller"
        ),
        seller,
    )
    printings, copies, refreshed_at = found.one_or_none() or (0, 0, None)
    shown = [OwnOffer(*row) for row in await session.execute(text(_SHOWN), seller)]
    return Network(
        account,
        hidden_because(account, now),
        printings,
        copies,
        refreshed_at,
        shown,
        await misses.unmet(session, caller.seller_id, now),
    )


def hidden_because(account: Account, now: datetime) -> list[str]:
    """Return why buyers do not see the stock."""
    reasons = {
        "no_consent": not account.network_consent,
        "not_published": not account.network_published,
        "suspended": account.suspended,
        "plan_ended": not is_paid(account.plan, account.trial_ends_at, now),
    }
    return [reason for reason, holds in reasons.items() if holds]

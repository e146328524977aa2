"""Answers `GET /api/network` for the seller: the network's switches, the shop as buyers see it, and
the products that buyers requested and nobody in the network offers.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from cardsync.access.caller import Caller
from cardsync.access.entitlements import is_paid
from cardsync.access.models import Account
from cardsync.network import misses
from cardsync.network.buyer_links import buy_url
from cardsync.network.limits import OWN_OFFERS_SHOWN
from cardsync.network.network_schemas import KeptPrivate, NetworkBody, OwnOfferBody, postage_shown
from cardsync.network.offers import IN_LANGUAGE
from cardsync.network.split import Steps, postage_of
from cardsync.platform.database.read_sources import Source, each_of, found, rows_as
from cardsync.platform.database.session import in_one_message
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.money import dollars, to_units
from cardsync.platform.postage import read_steps
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import Row

_SELLER: Final = (
    "SELECT printings, copies, refreshed_at FROM network_seller WHERE seller_id = :seller"
)
# The statement reads at most a thousand offers, so that the page is fast for a large shop, too.
_SHOWN = f"""
    SELECT p.id, p.product_name, p.set_name, p.number, p.finish, p.game, o.condition, o.price,
           o.quantity, p.marketplace_product_id
      FROM (SELECT product_id, condition, price, quantity FROM network_offer
             WHERE seller_id = :seller AND price IS NOT NULL LIMIT 1000) AS o
      JOIN product p ON p.id = o.product_id
     ORDER BY o.price DESC, p.id, o.condition LIMIT {OWN_OFFERS_SHOWN}
"""
# The numbers of listings in stock by the first reason why buyers do not see them, or `shared`. The
# shared listings are the same as in `network/offers.py`.
_STOCK: Final = f"""
    SELECT count(*), count(*) FILTER (WHERE why = 'shared'), count(*) FILTER (WHERE why = 'custom'),
           count(*) FILTER (WHERE why = 'private'), count(*) FILTER (WHERE why = 'without_price'),
           count(*) FILTER (WHERE why = 'other_language')
      FROM (SELECT CASE WHEN custom THEN 'custom' WHEN contribution IS NOT NULL THEN 'private'
                        WHEN coalesce(price, 0) <= 0 THEN 'without_price'
                        WHEN NOT ({IN_LANGUAGE}) THEN 'other_language' ELSE 'shared' END AS why
              FROM card WHERE seller_id = :seller AND quantity > 0 AND NOT gone) listing
"""


async def read_network(
    source: Source,
    caller: Caller,
    settings: Settings,
    now: datetime,
) -> NetworkBody:
    """Return the seller's view of the network. Raises OwnerRequired."""
    caller.must_be_owner()
    seller = {"seller": caller.seller_id}
    [account], published, [[in_stock, shared, *private]], (offers, unmet) = await each_of(
        source,
        rows_as(source, Account, caller.seller_id, ""),
        found(source, _SELLER, seller),
        found(source, _STOCK, seller),
        each_of(
            source,
            in_one_message(source, [_SHOWN], seller),
            misses.unmet(source, caller.seller_id, now),
        ),
    )
    [(printings, copies, refreshed_at)] = published or [(0, 0, None)]
    steps = read_steps(account.postage_steps or settings.default_postage_steps)
    hidden = hidden_because(account, now)
    return NetworkBody(
        not hidden,
        hidden,
        account.network_consented_at,
        account.network_published_at,
        account.store_name,
        account.listing_url_template,
        postage_shown(account.postage_steps) if account.postage_steps else [],
        in_stock,
        shared,
        KeptPrivate(*private),
        printings,
        copies,
        refreshed_at,
        [_own(row, account.listing_url_template, steps, settings) for row in offers[0]],
        unmet,
    )


def _own(row: Row, template: str | None, steps: Steps, settings: Settings) -> OwnOfferBody:
    price = to_units(row.price)
    return struct_of(
        OwnOfferBody,
        row,
        price=dollars(price),
        shipped=dollars(price + postage_of(steps, price)),
        buy_url=buy_url(row.marketplace_product_id, template, settings),
    )


def hidden_because(account: Account, now: datetime) -> list[str]:
    """Return the reasons why buyers do not see the stock."""
    reasons = {
        "no_consent": not account.network_consent,
        "not_published": not account.network_published,
        "suspended": account.suspended,
        "plan_ended": not is_paid(account.plan, account.trial_ends_at, now),
    }
    return [reason for reason, holds in reasons.items() if holds]

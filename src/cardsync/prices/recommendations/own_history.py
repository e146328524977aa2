"""Judges each card's market prices in the seller's own uploads over sixty days by
`market.verdicts.spike`, and counts the days without an upload.

A price is valid from its observation until the next one, but only a day with an upload confirms it.
For a day without an upload, an imported daily price of the product is used. The daily price is that
of Near Mint in English, so cards in other conditions or languages have no daily price. A day with
neither price is unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.catalog.market.verdicts import SPIKE_BASE, SPIKE_RISE_BP, Price, Spike, spike
from cardsync.platform.money import dollars

_WHOLE_BP: Final = 10_000
# The newest observation is in the row of the card.
_OBSERVED: Final = """
    SELECT o.card_id, o.observed_at, (o.market * 10000)::bigint AS market
      FROM price_observation o
     WHERE o.seller_id = :seller AND o.card_id = ANY (CAST(:ids AS bigint[]))
       AND o.observed_at >= :known_since AND o.observed_at <= :now
     UNION ALL
    SELECT c.id, c.observed_at, (c.market * 10000)::bigint FROM card c
     WHERE c.seller_id = :seller AND c.id = ANY (CAST(:ids AS bigint[])) AND c.observed_at <= :now
     ORDER BY 1, 2
"""
# `product_id` is set only if the product's daily prices apply to the card.
_CARDS: Final = """
    SELECT c.id, c.product_line, c.printing,
           CASE WHEN c.condition = 'NM' AND c.language = 'English'
                THEN coalesce(p.marketplace_product_id, q.marketplace_product_id) END AS product_id
      FROM card c
      LEFT JOIN product p ON p.id = c.product_id
      LEFT JOIN product q ON q.id = p.adopted_by
     WHERE c.seller_id = :seller AND c.id = ANY (CAST(:ids AS bigint[]))
"""
# The rows are sorted so that the day's latest price is the last. The market's tables must not be
# joined with `card`.
_DAILY: Final = """
    SELECT product_id, printing, (observed_at AT TIME ZONE 'UTC')::date AS day, market
      FROM market_price
     WHERE product_id = ANY (CAST(:products AS bigint[])) AND market IS NOT NULL
       AND observed_at >= :since AND observed_at <= :now
     ORDER BY observed_at, source
"""
_UPLOADED: Final = """
    SELECT DISTINCT product_line, (exported_at AT TIME ZONE 'UTC')::date AS day FROM upload
     WHERE seller_id = :seller AND stream = 'inventory' AND state = 'done'
       AND exported_at >= :since AND exported_at <= :now
"""


@dataclass(frozen=True)
class History:
    """The price history of a card. `days` counts the days with an upload, and `daily` the days with
    only an imported daily price. `missed` has the days between the first and the last of these days
    that have neither.
    """

    verdict: Spike
    days: int
    daily: int
    missed: Sequence[date]

    @property
    def is_a_leap(self) -> bool:
        """Return whether the price is far above its base and has not lasted yet: it may be an error
        of one day.
        """
        return self.verdict.code == "one_day"

    def as_evidence(self) -> dict[str, object]:
        """Return the history in the form of a recommendation's evidence."""
        base = self.verdict.base
        return {
            "code": self.verdict.code,
            "reason": self.verdict.reason,
            "median_60d": None if base is None else dollars(base),
            "days": self.days,
            "days_from_daily_prices": self.daily,
            "days_missed": len(self.missed),
            "missed_from": self.missed[0].isoformat() if self.missed else None,
            "missed_to": self.missed[-1].isoformat() if self.missed else None,
        }


def history_of(
    seen: Sequence[Price],
    uploaded: Iterable[date],
    now: datetime,
    daily: Mapping[date, int] | None = None,
) -> History:
    """Judge one card: `seen` has the card's observations in the order of time, `uploaded` the days
    on which an upload had its price, and `daily` its imported prices by day. Pure.
    """
    since, today = (now - SPIKE_BASE).date(), now.date()
    first = max(since, seen[0].observed_at.date()) if seen else today
    own = {day for day in uploaded if first <= day <= today}
    others = {day: price for day, price in (daily or {}).items() if since <= day <= today}
    others = {day: price for day, price in others.items() if day not in own}
    days = sorted({*own, *others})
    prices = [
        Price(_end(day, now), others[day]) if day in others else _on(seen, day, now) for day in days
    ]
    observed = [price for price in prices if price is not None]
    verdict = spike(observed, now)
    if verdict.code == "no_spike" and observed and _is_far(observed[-1].price, verdict.base):
        said = "The market price has been this far above its median for less than three days."
        verdict = Spike(False, "one_day", said, verdict.base, verdict.rise_bp)
    known = set(days)
    span = (days[-1] - days[0]).days + 1 if days else 0
    missed = [day for n in range(span) if (day := days[0] + timedelta(days=n)) not in known]
    return History(verdict, len(own), len(others), missed)


def _is_far(price: int, base: int | None) -> bool:
    return base is not None and (price - base) * _WHOLE_BP >= base * SPIKE_RISE_BP


def _on(seen: Sequence[Price], day: date, now: datetime) -> Price | None:
    """Return the last price that was observed before the end of a day, or before now if that is
    earlier.
    """
    at = _end(day, now)
    last = next((one for one in reversed(seen) if one.observed_at <= at), None)
    return None if last is None else Price(at, last.price)


def _end(day: date, now: datetime) -> datetime:
    end = datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(days=1)
    return min(end - timedelta(microseconds=1), now)


async def histories(
    session: AsyncSession,
    seller_id: int,
    card_ids: Sequence[int],
    now: datetime,
) -> dict[int, History]:
    """Return the history of each of these cards."""
    if not card_ids:
        return {}
    asked = {"seller": seller_id, "ids": list(card_ids)}
    # An observation from before the sixty days may still be valid within them.
    known = asked | {"known_since": now - 2 * SPIKE_BASE, "now": now}
    seen = defaultdict[int, list[Price]](list)
    for row in await session.execute(text(_OBSERVED), known):
        seen[row.card_id].append(Price(row.observed_at, row.market or 0))
    cards = {row.id: row for row in await session.execute(text(_CARDS), asked)}
    span = {"seller": seller_id, "since": now - SPIKE_BASE, "now": now}
    days = defaultdict[str | None, set[date]](set)
    for row in await session.execute(text(_UPLOADED), span):
        days[row.product_line].add(row.day)
    daily = await _daily(session, {row.product_id for row in cards.values()}, now)
    return {
        card_id: history_of(
            seen[card_id],
            days[None] | days[cards[card_id].product_line],
            now,
            daily.get((cards[card_id].product_id, cards[card_id].printing)),
        )
        for card_id in card_ids
        if card_id in cards
    }


async def _daily(
    session: AsyncSession,
    products: Iterable[int | None],
    now: datetime,
) -> dict[tuple[int, str], dict[date, int]]:
    """Return the imported prices of each product and printing by day."""
    named = [product for product in products if product is not None]
    found = defaultdict[tuple[int, str], dict[date, int]](dict)
    if named:
        values = {"products": named, "since": now - SPIKE_BASE, "now": now}
        for row in await session.execute(text(_DAILY), values):
            found[row.product_id, row.printing][row.day] = row.market
    return found

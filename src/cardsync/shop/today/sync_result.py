"""Reads the result of a sync: the prices that it raised and lowered, by rule and by card; the
prices that were not sent, with the reasons; the gain of this month from raised prices; and the
orders of the sync.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from psycopg.rows import TupleRow

from cardsync.access.caller import Caller
from cardsync.platform import clock, errors
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.derived.sales_by_day import DAY, SOLD, TOTAL
from cardsync.platform.money import usd
from cardsync.platform.value_types import JsonObject
from cardsync.prices.rollback.brought import added, largest_of
from cardsync.shop.today.schemas import (
    Captured,
    LargestOfSync,
    RefusedPrice,
    RuleBrought,
    SyncBrought,
    SyncResult,
)

# When the next sync after a cycle `c` began. Cycles may be logged in another order than they began,
# hence some of the next: an earliest of all later ones would read all cycles of an old shop.
NEXT_STARTED: Final = """
    (SELECT min(n.started_at) FROM (
        SELECT started_at FROM sync_cycle
         WHERE seller_id = :seller AND NOT placeholder AND id > c.id ORDER BY id LIMIT 20) n)
"""
_CYCLE: Final = f"""
    SELECT c.id, c.sync_cycle_id, c.status, c.started_at, c.logged_at, c.duration_ms,
           {NEXT_STARTED}
      FROM sync_cycle c
     WHERE c.seller_id = :seller AND NOT c.placeholder
       AND (CAST(:cycle AS bigint) IS NULL OR c.id = :cycle)
     ORDER BY c.id DESC LIMIT 1
"""
# The events of a sync. An event without a known sync, such as an event of a later task, belongs to
# the sync that began last before it.
EVENTS: Final = """
    SELECT e.outcome, e.row_count, e.moved, e.brought, e.rejected FROM repricing_event e
     WHERE e.seller_id = :seller
       AND (e.sync_cycle_id = CAST(:name AS text)
            OR e.imported_at >= :started
               AND (CAST(:next AS timestamptz) IS NULL OR e.imported_at < :next)
               AND NOT EXISTS (SELECT FROM sync_cycle o
                                WHERE o.seller_id = :seller AND NOT o.placeholder
                                  AND o.sync_cycle_id = e.sync_cycle_id))
     ORDER BY e.id
"""
_FILES: Final = """
    SELECT e.imported_at, e.outcome, e.row_count, e.brought, e.rejected,
           (SELECT c.id FROM sync_cycle c
             WHERE c.seller_id = :seller AND c.sync_cycle_id = e.sync_cycle_id
               AND NOT c.placeholder)
      FROM repricing_event e WHERE e.seller_id = :seller ORDER BY e.id DESC LIMIT :most
"""
_ORDERS: Final = f"""
    SELECT count(*), coalesce(sum({TOTAL}), 0) FROM orders
     WHERE {SOLD} AND orders.created_at BETWEEN :started AND :logged
"""
_GONE: Final = """
    SELECT coalesce(sum(CAST(report ->> 'gone' AS bigint)), 0)::bigint FROM upload
     WHERE seller_id = :seller AND kind = 'inventory' AND sync_cycle_id = :name
"""
_NAMES: Final = "SELECT id, name FROM pricing_rule WHERE seller_id = :seller AND id = ANY (:rules)"
_CARDS: Final = """
    SELECT id, product_name, set_name, condition FROM card
     WHERE seller_id = :seller AND id = ANY (CAST(:cards AS bigint[]))
"""
_REFUSED: Final = """
    SELECT marketplace_id, id, product_name, set_name, condition FROM card
     WHERE seller_id = :seller AND marketplace_id = ANY (CAST(:skus AS bigint[]))
"""
_REVIEWS: Final = """
    SELECT count(*) FROM proposal
     WHERE seller_id = :seller AND family = 'review' AND state = 'pending' AND expires_at > :now
"""
_LIMITED: Final = "SELECT held FROM shop_figures WHERE seller_id = :seller"
_LISTED: Final = """
    SELECT sum(cards)::bigint, sum(listed) FROM (
        SELECT DISTINCT ON (product_line) cards, listed
          FROM listed_value WHERE seller_id = :seller ORDER BY product_line, day DESC) newest
"""
# The copies that were sold this month at a higher price than the card's previous price.
_CAPTURED: Final = queries_of(__package__)["captured"].format(sold=SOLD, day=DAY)


async def sync_result(
    reading: Reading, caller: Caller, cycle_id: int | None, now: datetime
) -> SyncResult | None:
    """Return the result of a sync, by default of the last sync; None before the first sync. Raises
    OwnerRequired, NotFound.
    """
    caller.must_see_revenue()
    values: dict[str, object] = {"seller": caller.seller_id, "cycle": cycle_id, "now": now}
    [*found] = await reading.rows(_CYCLE, values)
    if not found:
        if cycle_id is not None:
            raise errors.NotFound(f"there is no sync {cycle_id}")
        return None
    id, name, status, started, logged, duration, following = found[0]
    values |= {"name": name, "started": started, "logged": logged, "next": following}
    values |= _month(caller, now)
    statements = (EVENTS, _ORDERS, _GONE, _REVIEWS, _LIMITED, _LISTED, _CAPTURED)
    events, orders, gone, reviews, limited, listed, captured = await reading.together(
        statements, values
    )
    rules, raised, up, lowered, down = moves_of(events)
    largest = largest_of(move for event in events for move in (event[3] or {}).get("largest", ()))
    refused = [one for event in events for one in event[4] or ()]
    cards, value = listed[0]
    return SyncResult(
        id=id,
        status=status,
        started_at=clock.rfc3339(started),
        ended_at=clock.rfc3339(logged),
        duration_ms=duration,
        sent=sum(event[1] for event in events if event[0] == "imported"),
        raised=raised,
        raised_value=usd(up),
        lowered=lowered,
        lowered_value=usd(down),
        listed_before=None if value is None else usd(value - up + down),
        listed_now=usd(value),
        listed_cards=cards,
        rules=await _by_rule(reading, caller, rules),
        largest=await _largest(reading, caller, largest),
        in_review=reviews[0][0],
        limited=limited[0][0] if limited else 0,
        refused=await _refused(reading, caller, refused),
        captured=Captured(captured[0][0], usd(captured[0][1])),
        orders=orders[0][0],
        orders_value=usd(orders[0][1]),
        sold_out=gone[0][0],
    )


async def last_brought(reading: Reading, caller: Caller) -> SyncBrought | None:
    """Return a summary of the last sync's result; None before the first sync, and for callers who
    may not see revenue.
    """
    if not caller.sees_revenue:
        return None
    found = await reading.rows(_CYCLE, {"seller": caller.seller_id, "cycle": None})
    if not found:
        return None
    id, name, _, started, *_, following = found[0]
    values = {"seller": caller.seller_id, "name": name, "started": started, "next": following}
    _, raised, up, lowered, down = moves_of(await reading.rows(EVENTS, values))
    return SyncBrought(id, raised, usd(up), lowered, usd(down))


class PriceFile(NamedTuple):
    """A price file that the agent sent or failed to send. `worth` is its change of the listed
    value, `refused` the number of refused prices.
    """

    sent_at: datetime
    outcome: str
    prices: int
    raised: int
    lowered: int
    worth: Decimal
    refused: int
    cycle_id: int | None


async def price_files(reading: Reading, caller: Caller, most: int) -> list[PriceFile]:
    """Return the last `most` price files, newest first. Raises OwnerRequired."""
    caller.must_see_revenue()
    found = await reading.rows(_FILES, {"seller": caller.seller_id, "most": most})
    files = []
    for at, outcome, prices, brought, rejected, cycle in found:
        _, raised, up, lowered, down = moves_of([(outcome, prices, 0, brought, rejected)])
        refused = len(rejected or ())
        files.append(PriceFile(at, outcome, prices, raised, lowered, up - down, refused, cycle))
    return files


def moves_of(events: Sequence[TupleRow]) -> tuple[list[list[Any]], int, Decimal, int, Decimal]:
    """Return the sums by rule, and the sums of all rules: the number of raised prices and their
    value, the number of lowered prices and their value.
    """
    rules = added(row for event in events for row in (event[3] or {}).get("rules", ()))
    raised, lowered = (sum(int(row[at]) for row in rules) for at in (1, 3))
    up, down = (sum((Decimal(row[at]) for row in rules), Decimal(0)) for at in (2, 4))
    return rules, raised, up, lowered, down


def _month(caller: Caller, now: datetime) -> dict[str, object]:
    zone = caller.account.time_zone
    today = now.astimezone(ZoneInfo(zone)).date()
    first = today.replace(day=1)
    return {
        "zone": zone,
        "first": first,
        "last": today,
        "first_read": first - timedelta(days=1),
        "last_read": today + timedelta(days=1),
    }


async def _by_rule(
    reading: Reading, caller: Caller, rules: Sequence[Sequence[Any]]
) -> list[RuleBrought]:
    values = {"seller": caller.seller_id, "rules": [row[0] for row in rules if row[0] is not None]}
    found = await reading.rows(_NAMES, values) if values["rules"] else []
    names: dict[int, str] = dict(found)
    told = [
        RuleBrought(rule, names.get(rule), raised, usd(Decimal(up)), lowered, usd(Decimal(down)))
        for rule, raised, up, lowered, down in rules
    ]
    return sorted(told, key=lambda one: (one.rule_id is None, one.name or "", one.rule_id or 0))


async def _largest(
    reading: Reading, caller: Caller, moves: Sequence[Sequence[Any]]
) -> list[LargestOfSync]:
    values = {"seller": caller.seller_id, "cards": [move[0] for move in moves]}
    named = {row[0]: row[1:] for row in await reading.rows(_CARDS, values)} if moves else {}
    told = []
    for card, was, price, copies in moves:
        if card in named:
            name, set_name, condition = named[card]
            before = None if was is None else usd(Decimal(was))
            after = usd(Decimal(price))
            told.append(LargestOfSync(card, name, set_name, condition, copies, before, after))
    return told


async def _refused(
    reading: Reading, caller: Caller, rejected: Sequence[JsonObject]
) -> list[RefusedPrice]:
    """Return the refused prices and new listings with the marketplace's reasons. A refused new
    listing has no card.
    """
    skus = [one["id"] for one in rejected if one.get("id") is not None]
    values = {"seller": caller.seller_id, "skus": skus}
    named = {row[0]: row[1:] for row in await reading.rows(_REFUSED, values)} if skus else {}
    told = []
    for one in rejected:
        sku = one.get("id")
        card, name, set_name, condition = named.get(sku, (None, None, None, None))
        told.append(RefusedPrice(sku, card, name, set_name, condition, one["message"]))
    return told

"""Writes a seller's sales, pinned prices and pricing settings, one at a time, under the lock of the
seller's state row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple, TypedDict

import msgspec
from msgspec import UNSET, UnsetType
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.agents.seller_state import state as sync_state
from cardsync.platform import clock, errors
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.read_sources import Source, each_of, rows_of
from cardsync.platform.database.session import SessionReading, run
from cardsync.platform.declared_fields import Money, to_row
from cardsync.platform.money import UNITS_PER_CENT, dollars
from cardsync.platform.value_types import JsonMapping, JsonObject
from cardsync.prices import standing
from cardsync.prices.decisions.set_targets import retarget
from cardsync.prices.decisions.sold_on_sale import sold_on_sale
from cardsync.prices.engine.rules import InvalidRule, Sale
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.inputs import rule_json
from cardsync.prices.inputs.rule_file import (
    NO_PRICING,
    SettingFields,
)
from cardsync.prices.inputs.rule_queries import need_readable
from cardsync.prices.inputs.rule_rows import (
    SALE_COLUMNS,
    all_rows,
    one_row,
    sale_of,
    seller_pricing,
)
from cardsync.prices.limits import RULE_PRIORITY, SALES
from cardsync.prices.models import PricingSale
from cardsync.prices.rules.pin_many import PIN
from cardsync.prices.rules.rule_warnings import warnings_of
from cardsync.prices.rules.schemas import SaleShown, sale_bodies
from cardsync.prices.rules.undo_rules import differing
from cardsync.prices.rules.undo_sales import (
    IMAGES,
    SETTINGS,
    plain_settings,
    times_changed,
    undo_of,
)
from cardsync.prices.runs.sale_runs import set_timer
from cardsync.sales.lots.profit_by_day import mark_days


async def read_sales(source: Source, caller: Caller) -> list[PricingSale]:
    """Return the seller's sales by priority."""
    return await all_rows(source, PricingSale, caller.seller_id)


async def read_sale(session: AsyncSession, caller: Caller, sale_id: int) -> PricingSale:
    """Return the seller's sale with this id. Raise NotFound."""
    return await one_row(session, PricingSale, caller.seller_id, sale_id)


async def shown_sales(
    source: Source, caller: Caller, rows: Sequence[PricingSale]
) -> list[SaleShown]:
    """Return the API structs of sales, with the copies sold in each sale."""
    sold, warnings = await each_of(
        source,
        sold_on_sale(source, caller, [row.id for row in rows], clock.now()),
        warnings_of(source, rows),
    )
    return sale_bodies(rows, warnings, sold, caller)


class PinFields(msgspec.Struct, forbid_unknown_fields=True):
    price: Money | UnsetType = UNSET
    """The price that rules leave alone, in USD"""


class _OfPin(TypedDict):
    before: JsonObject
    after: JsonObject
    undo: JsonObject


# Deletes the rows of deleted promotions whose prices ended 90 days ago: they no longer need to
# identify sold copies.
_FORGET: Final = """
    DELETE FROM promotion_card p
     WHERE p.seller_id = :seller AND p.until < CAST(:now AS timestamptz) - interval '90 days'
       AND NOT EXISTS (SELECT FROM pricing_sale s
                        WHERE s.seller_id = :seller AND s.id = p.sale_id)
"""


async def create_sale(
    session: AsyncSession,
    caller: Caller,
    body: Mapping[str, object],
    now: datetime,
) -> PricingSale:
    """Create a sale. Raise InvalidRule, InvalidQuery."""
    caller.must_be_owner()
    values = rule_json.read_body(body, rule_json.SaleFields)
    state = await sync_state.locked(session, caller.seller_id)
    rows = await all_rows(session, PricingSale, caller.seller_id)
    if len(rows) >= SALES:
        raise errors.InvalidRule(f"there are already {SALES} promotions, the most allowed")
    behind = min(max((row.priority for row in rows), default=0) + 10, RULE_PRIORITY)
    sale = rule_json.sale_from(values, None, behind)
    sale = replace(sale, query=await need_readable(session, caller.seller_id, sale.query))
    row = PricingSale(
        seller_id=caller.seller_id,
        created_at=now,
        updated_at=now,
        **_columns(sale),
    )
    session.add(row)
    await session.flush()
    await set_timer(session, state, now)
    note(
        session,
        caller,
        "pricing.sale_created",
        f"promotion {row.id} “{sale.name}” created",
        now,
        after=rule_json.to_json(sale_of(row)),
        undo=undo_of(row.id, None, IMAGES.of(row)),
    )
    return row


async def change_sale(
    session: AsyncSession,
    caller: Caller,
    sale_id: int,
    body: Mapping[str, object],
    now: datetime,
) -> PricingSale:
    """Change the fields of a sale that the body names. Raise NotFound, InvalidRule,
    InvalidQuery.
    """
    caller.must_be_owner()
    values = rule_json.read_body(body, rule_json.SaleFields)
    state = await sync_state.locked(session, caller.seller_id)
    row = await one_row(session, PricingSale, caller.seller_id, sale_id)
    sale = rule_json.sale_from(values, sale_of(row), row.priority)
    if sale.query != row.query:
        sale = replace(sale, query=await need_readable(session, caller.seller_id, sale.query))
    if sale != sale_of(row):
        was, image = rule_json.to_json(sale_of(row)), IMAGES.of(row)
        for name, value in _columns(sale).items():
            setattr(row, name, value)
        row.updated_at = now
        await session.flush()
        await times_changed(session, state, now)
        note(
            session,
            caller,
            "pricing.sale_changed",
            f"promotion {sale_id} “{sale.name}” changed: {', '.join(values)}",
            now,
            before=differing(was, rule_json.to_json(sale)),
            after=differing(rule_json.to_json(sale), was),
            undo=undo_of(sale_id, image, IMAGES.of(row)),
        )
    return row


async def remove_sale(session: AsyncSession, caller: Caller, sale_id: int, now: datetime) -> None:
    """Delete a sale. Raise NotFound."""
    caller.must_be_owner()
    state = await sync_state.locked(session, caller.seller_id)
    row = await one_row(session, PricingSale, caller.seller_id, sale_id)
    await session.delete(row)
    await session.flush()
    await session.execute(text(_FORGET), {"seller": caller.seller_id, "now": now})
    await times_changed(session, state, now)
    note(
        session,
        caller,
        "pricing.sale_deleted",
        f"promotion {sale_id} “{row.name}” deleted",
        now,
        before=rule_json.to_json(sale_of(row)),
        undo=undo_of(sale_id, IMAGES.of(row), None),
    )


def _columns(sale: Sale) -> dict[str, object]:
    values = {name: getattr(sale, name) for name in SALE_COLUMNS if name != "id"}
    return to_row(Sale, values | {"keep_never_lower": sale.keep_never_lower or None})


async def settings_of(session: AsyncSession, caller: Caller) -> Account:
    caller.must_be_owner()
    return await session.get_one(Account, caller.seller_id)


async def change_settings(
    session: AsyncSession,
    caller: Caller,
    body: JsonMapping,
    now: datetime,
) -> Account:
    """Change the pricing settings that the body names. Raise InvalidRule."""
    caller.must_be_owner()
    values = rule_json.read_body(body, SettingFields)
    await sync_state.locked(session, caller.seller_id)
    account = await session.get_one(Account, caller.seller_id, with_for_update=True)
    try:
        replace(
            seller_pricing(account),
            **{name: v for name, v in values.items() if name not in NO_PRICING},
        )
    except InvalidRule as e:
        raise errors.InvalidRule(str(e)) from e
    was = plain_settings(account, values)
    for name, value in to_row(SellerPricing, values).items():
        setattr(account, name, value)
    if "fee_level" in values:
        await mark_days(session, caller.seller_id)
    if values:
        became = plain_settings(account, values)
        note(
            session,
            caller,
            "pricing.settings_changed",
            f"changed: {', '.join(values)}",
            now,
            before=was,
            after=became,
            undo={"kind": SETTINGS, "was": was, "became": became},
        )
    return account


async def pin(
    session: AsyncSession,
    caller: Caller,
    marketplace_id: int,
    body: JsonMapping,
    now: datetime,
) -> int:
    """Pin a card and return the pin in ten-thousandths of a dollar.

    Raises NotFound for a card that is not the caller's, InvalidRule.
    """
    caller.must_be_owner()
    values = rule_json.read_body(body, PinFields)
    price = values.get("price")
    if price is None or price < UNITS_PER_CENT:
        raise errors.InvalidRule("price: must be at least 0.01")
    if price % UNITS_PER_CENT:
        # For a fraction of a cent, the marketplace would store another price, and the export would
        # send the pin again and again.
        raise errors.InvalidRule("price: must be in whole cents")
    state = await sync_state.locked(session, caller.seller_id)
    reads = SessionReading(session)
    known, was = await at_once(
        reads.rows(_KNOWN, {"seller": caller.seller_id, "id": marketplace_id}),
        _pinned(reads, caller.seller_id, marketplace_id),
    )
    if not known:
        raise errors.NotFound(f"there is no card {marketplace_id}")
    pinned = standing.put(
        caller.seller_id,
        "pin",
        [marketplace_id],
        now,
        prices=[int(price)],
        by=caller.actor,
        replaces="true",
    )
    await run(session, *pinned)
    await retarget(session, state, [marketplace_id], now)
    note(
        session,
        caller,
        "pricing.pinned",
        f"card {marketplace_id} pinned at {dollars(price)}",
        now,
        **_of_pin(marketplace_id, was, dollars(price)),
    )
    return int(price)


class _Pin(NamedTuple):
    """A pin as Activity stores it; the pin of an accepted recommendation has an end."""

    price: str | None = None
    until: str | None = None


_KNOWN: Final = """
    SELECT FROM card
     WHERE seller_id = :seller AND marketplace_id = :id AND contribution IS NULL
"""
_PINNED: Final = """
    SELECT (price * 10000)::bigint AS price, until FROM price_decision
     WHERE seller_id = :seller AND kind = 'pin' AND marketplace_id = :id
"""


async def _pinned(source: Source, seller_id: int, marketplace_id: int) -> _Pin:
    rows = await rows_of(source)(_PINNED, {"seller": seller_id, "id": marketplace_id})
    return next(
        (_Pin(dollars(price), until and until.isoformat()) for price, until in rows), _Pin()
    )


def _of_pin(marketplace_id: int, was: _Pin, price: str | None) -> _OfPin:
    """Return the values of a pin's Activity entry."""
    before, after = (
        {"marketplace_id": marketplace_id, "price": pinned} for pinned in (was.price, price)
    )
    undo = {"kind": PIN, "marketplace_id": marketplace_id, "was": was.price, "became": price}
    return {"before": before, "after": after, "undo": undo | {"until": was.until}}


async def unpin(session: AsyncSession, caller: Caller, marketplace_id: int, now: datetime) -> None:
    """Delete a card's pin. Raise NotFound if the card has none."""
    caller.must_be_owner()
    state = await sync_state.locked(session, caller.seller_id)
    was = await _pinned(session, caller.seller_id, marketplace_id)
    if not await run(session, *standing.drop(caller.seller_id, "pin", [marketplace_id])):
        raise errors.NotFound(f"card {marketplace_id} is not pinned")
    await retarget(session, state, [marketplace_id], now)
    note(
        session,
        caller,
        "pricing.unpinned",
        f"card {marketplace_id} unpinned",
        now,
        **_of_pin(marketplace_id, was, None),
    )

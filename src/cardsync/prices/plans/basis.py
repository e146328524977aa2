"""Records the rules, sales, settings, pins and lists that a plan names, and later describes in
sentences how they have changed since the proposal.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.models import Account
from cardsync.platform.money import dollars
from cardsync.platform.plurals import counted
from cardsync.platform.value_types import JsonObject
from cardsync.prices.inputs import rule_json
from cardsync.prices.inputs.rule_rows import all_rows, rule_of, sales_of
from cardsync.prices.loss.risk import Size
from cardsync.prices.models import PricingRule
from cardsync.prices.plans.actions import Actions
from cardsync.prices.rules.undo_sales import plain_settings
from cardsync.prices.standing import pins_of
from cardsync.stock.search.known_names import name_key

Basis = JsonObject
# Two listed values count as equal if they differ by at most one part in this many.
_SAME_PARTS = 100

_LISTS = """
    SELECT l.id, l.name, l.name_key, count(e.card_id) AS cards
      FROM card_list l LEFT JOIN card_list_entry e
           ON e.seller_id = :seller AND e.list_id = l.id
     WHERE l.seller_id = :seller AND l.deleted_at IS NULL
       AND (l.id = ANY (CAST(:ids AS bigint[])) OR l.name_key = ANY (CAST(:keys AS text[])))
     GROUP BY l.id, l.name, l.name_key ORDER BY l.id
"""


async def basis_of(
    session: AsyncSession,
    seller_id: int,
    actions: Actions,
    now: datetime,
) -> Basis:
    """Return the rules that the plan names and the order of all rules, the pins of its cards, its
    lists, and the sales and settings of a write outside plans.

    Ids are strings, as in stored JSON.
    """
    rows = await all_rows(session, PricingRule, seller_id) if actions.rules else []
    named = {change.rule_id for change in actions.rules}
    pins = await pins_of(session, seller_id, now) if actions.pins else {}
    return {
        "rules": {str(row.id): rule_json.to_json(rule_of(row)) for row in rows if row.id in named},
        "order": [row.id for row in rows],
        "pins": {
            str(pin.marketplace_id): dollars(pins[pin.marketplace_id])
            if pin.marketplace_id in pins
            else None
            for pin in actions.pins
        },
        "lists": await _lists(session, seller_id, actions),
        "sales": await _sales(session, seller_id, actions),
        "settings": await _settings(session, seller_id, actions),
    }


async def _sales(session: AsyncSession, seller_id: int, actions: Actions) -> dict[str, object]:
    named = {
        own.body["id"] for own in actions.own if own.type == "pricing.sales" and "id" in own.body
    }
    sales = await sales_of(session, seller_id) if named else []
    return {str(sale.id): rule_json.to_json(sale) for sale in sales if sale.id in named}


async def _settings(session: AsyncSession, seller_id: int, actions: Actions) -> JsonObject:
    changes = (own.body["set"] for own in actions.own if own.type == "pricing.settings")
    named = [name for values in changes for name in values]
    if not named:
        return {}
    account = await session.get_one(Account, seller_id)
    # The trial of the plan refuses an unknown setting.
    return plain_settings(account, [name for name in named if hasattr(account, name)])


async def _lists(session: AsyncSession, seller_id: int, actions: Actions) -> dict[str, object]:
    if not actions.lists:
        return {}
    keys = [name_key(c.name) for c in actions.lists if isinstance(c.name, str)]
    values = {
        "seller": seller_id,
        "ids": [c.list_id for c in actions.lists if c.list_id is not None],
        "keys": keys,
    }
    found = await session.execute(text(_LISTS), values)
    return {str(row.id): {"name": row.name, "cards": row.cards} for row in found}


def drifted(was: Basis, now: Basis, size_was: Size, size_now: Size) -> list[str]:
    """Return a sentence for each object that has changed since the plan was judged."""
    return [
        *_rules_differ(was, now),
        # Plans of earlier versions hold no sales and settings.
        *_fields_differ("Sale", was.get("sales", {}), now.get("sales", {})),
        *_settings_differ(was, now),
        *_pins_differ(was, now),
        *_lists_differ(was, now),
        *_sizes_differ(size_was, size_now),
    ]


def _rules_differ(was: Basis, now: Basis) -> list[str]:
    found = _fields_differ("Rule", was["rules"], now["rules"])
    if not found and was["order"] != now["order"]:
        found.append("The rules or their order have changed.")
    return found


def _fields_differ(
    kind: str, was: Mapping[str, dict[str, object]], now: Mapping[str, dict[str, object]]
) -> list[str]:
    found = []
    for id, fields in was.items():
        present = now.get(id)
        if present is None:
            found.append(f"{kind} {id} “{fields['name']}” is gone.")
            continue
        found += [
            f"{kind} {id} “{present['name']}”: {name} was {_as_text(value)} and is now {_as_text(present.get(name))}."
            for name, value in fields.items()
            if present.get(name) != value
        ]
    return found


def _settings_differ(was: Basis, now: Basis) -> list[str]:
    present = now.get("settings", {})
    return [
        f"The setting {name} was {_as_text(value)} and is now {_as_text(present.get(name))}."
        for name, value in was.get("settings", {}).items()
        if present.get(name) != value
    ]


def _pins_differ(was: Basis, now: Basis) -> list[str]:
    return [
        f"Card {id} was {_pinned(price)} and is now {_pinned(now['pins'].get(id))}."
        for id, price in was["pins"].items()
        if now["pins"].get(id) != price
    ]


def _pinned(price: str | None) -> str:
    return "not pinned" if price is None else f"pinned at {price}"


def _lists_differ(was: Basis, now: Basis) -> list[str]:
    found = []
    for id in {**was["lists"], **now["lists"]}:
        before, after = was["lists"].get(id), now["lists"].get(id)
        if after is None:
            found.append(f"List {id} “{before['name']}” is gone.")
        elif before is None:
            found.append(f"List {id} “{after['name']}” was created in the meantime.")
        elif before != after:
            found.append(
                f"List {id} was “{before['name']}” with {counted(before['cards'], 'card', 'cards')} and is now “{after['name']}” with {after['cards']}."
            )
    return found


def _sizes_differ(was: Size, now: Size) -> list[str]:
    found = []
    if was.cards != now.cards:
        found.append(
            f"The prices of {counted(now.cards, 'card', 'cards')} would change now, instead of"
            f" {was.cards:,}."
        )
    moved = abs((now.after - now.before) - (was.after - was.before))
    if moved * _SAME_PARTS > max(was.before, now.before):
        found.append(
            f"The listed value would change by {dollars(now.after - now.before)} now, instead of"
            f" {dollars(was.after - was.before)}."
        )
    if now.under_market > was.under_market:
        found.append(
            f"{counted(now.under_market, 'card', 'cards')} would be priced under 1% of market."
        )
    return found


def _as_text(value: object) -> str:
    return "nothing" if value is None else str(value)

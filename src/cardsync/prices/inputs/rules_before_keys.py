"""Restores the rules, promotions and settings from before the changes by keys and tokens that no
member has confirmed since. A run with the restored values shows how far those changes move prices.

The values are read from Activity, whose entries store the values before each change. Changes of the
last day are compared separately. Older changes count only if the run moves a card far from its last
target: a rule that selects no card at first may move prices later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.platform.money import to_units
from cardsync.platform.value_types import JsonMapping, JsonObject
from cardsync.prices.engine.rules import WHOLE_BP, Rule, Sale
from cardsync.prices.engine.run_inputs import Run
from cardsync.prices.engine.seller_pricing import SellerPricing
from cardsync.prices.inputs.rule_file import MONEY_SETTINGS
from cardsync.prices.loss.loss_limits import CHEAP, DAY_CARD_BP

T = TypeVar("T")
DAY: Final = timedelta(days=1)
# Changes are compared for this long, because a rule may select its first cards later.
LONG: Final = timedelta(days=90)
# Tolerance for moves by rounding and the market, so that a change within its limit stays within it.
_SLACK_BP: Final = 300
# A member who confirmed a run saw its prices, so earlier changes do not count.
_CHANGES: Final = """
    SELECT a.actor LIKE 'member %' AS by_member, a.undo FROM activity a
     WHERE a.seller_id = :seller AND a.created_at > greatest(:since, (
           SELECT max(s.created_at) FROM activity s
            WHERE s.seller_id = :seller AND s.created_at > :since AND s.actor LIKE 'member %'
              AND s.action IN ('pricing.run_confirmed', 'upload.confirmed')))
       AND a.created_at <= :now AND a.outcome = 'applied' AND a.undone_by IS NULL
       AND a.undo ->> 'kind' IN ('pricing.rules', 'pricing.sale', 'pricing.settings')
       AND a.actor <> ALL (:scripts)
     ORDER BY a.id DESC
"""
_OWN_SCRIPTS: Final = """
    SELECT 'key ' || id FROM api_key WHERE seller_id = :seller AND own_script
"""
_SETTINGS: Final = frozenset(field.name for field in fields(SellerPricing))


class Change(NamedTuple):
    """A change of rules, of a promotion or of settings, with the values that undo it."""

    by_member: bool
    undo: JsonMapping


async def before_keys(
    session: AsyncSession, seller_id: int, run: Run, span: timedelta
) -> Run | None:
    """Return the run without the changes of keys and tokens within the span, or None if there are
    no such changes.
    """
    scripts = await session.scalars(text(_OWN_SCRIPTS), {"seller": seller_id})
    values = {"seller": seller_id, "since": run.now - span, "now": run.now}
    values["scripts"] = [*scripts]
    found = await session.execute(text(_CHANGES), values)
    return undone(run, [Change(*row) for row in found])


def undone(run: Run, changes: Iterable[Change]) -> Run | None:
    """Return the run with the changes undone, newest first, except changes of a rule, sale or
    setting that a member changed later. Return None if no change was undone. Pure.
    """
    rules: dict[str, Rule] = {str(rule.id): rule for rule in run.rules}
    sales: dict[str, Sale] = {str(sale.id): sale for sale in run.sales}
    settings: JsonObject = {}
    approved: set[tuple[str, str]] = set()
    differ = False
    for change in changes:
        kind, images = _images_of(change.undo)
        if change.by_member:
            approved |= {(kind, name) for name in images}
            continue
        for name in images:
            if (kind, name) in approved:
                continue
            differ = True
            if kind == "pricing.settings":
                settings[name] = images[name]
            elif kind == "pricing.sale":
                _put(sales, name, images[name], _sale)
            else:
                _put(rules, name, images[name], _rule)
    if not differ:
        return None
    seller = replace(run.seller, **_of_seller(settings))
    return replace(run, rules=[*rules.values()], sales=[*sales.values()], seller=seller)


def _images_of(undo: JsonMapping) -> tuple[str, JsonMapping]:
    match undo["kind"]:
        case "pricing.sale":
            return undo["kind"], {str(undo["sale"]): undo["was"]}
        case "pricing.settings":
            return undo["kind"], undo["was"]
    return undo["kind"], undo["before"]


def _put(
    then: dict[str, T], name: str, image: JsonMapping | None, read: Callable[[Any], T]
) -> None:
    if image is None:
        then.pop(name, None)
    else:
        then[name] = read(image)


def _rule(image: JsonMapping) -> Rule:
    return msgspec.convert({**image["settings"], **image}, Rule)


def _sale(image: Mapping[str, object]) -> Sale:
    floor = image["floor"]
    units = None if floor is None else to_units(Decimal(str(floor)))
    return msgspec.convert({**image, "floor": units}, Sale)


def _of_seller(settings: JsonMapping) -> JsonObject:
    return {
        name: to_units(Decimal(value)) if name in MONEY_SETTINGS and value is not None else value
        for name, value in settings.items()
        if name in _SETTINGS
    }


def moved_by_keys(
    priced: pl.DataFrame, before: pl.DataFrame, last: pl.DataFrame | None = None
) -> bool:
    """Return whether the changes by keys and tokens move some card further than those writers may
    in a day. `priced` is the run with the changes, `before` the run without them. With `last`, the
    price must also be far from the last target, and further from it than without the changes. Pure.
    """
    both = _asked(priced, "now").join(_asked(before, "then"), on="marketplace_id")
    far = _far("then")
    if last is not None:
        both = both.join(last, on="marketplace_id")
        ours, theirs = (_from_last(name) for name in ("now", "then"))
        far &= _far("last") & (ours > theirs)
    return not both.filter(far).is_empty()


def leaps(priced: pl.DataFrame, last: pl.DataFrame) -> bool:
    """Return whether some card moves far from its last target. Pure."""
    both = _asked(priced, "now").join(last, on="marketplace_id")
    return not both.filter(_far("last")).is_empty()


def last_asked(cards: pl.DataFrame) -> pl.DataFrame:
    """Return the last target of each card that has one. Pure."""
    return cards.select("marketplace_id", last="target_price").drop_nulls()


def _asked(priced: pl.DataFrame, name: str) -> pl.DataFrame:
    return priced.select("marketplace_id", pl.coalesce("target", "current_price").alias(name))


def _from_last(name: str) -> pl.Expr:
    return (pl.col(name) - pl.col("last")).abs()


def _far(base: str) -> pl.Expr:
    moved = (pl.col("now") - pl.col(base)).abs()
    far = moved * WHOLE_BP > pl.col(base) * (DAY_CARD_BP + _SLACK_BP)
    return far & (pl.max_horizontal("now", base) > CHEAP)

"""Computes the effect of a draft of a buy rule on a collection, by default the newest collection.
Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.buying.collections.models import Collection
from cardsync.buying.collections.read_collections import one_collection
from cardsync.buying.collections.schemas import EffectShown, LeftShown
from cardsync.buying.collections.value_collection import effect_of, lines_of
from cardsync.buying.engine.buy_rules import BuyRule
from cardsync.buying.engine.wanted_lines import REASONS
from cardsync.buying.rules.buy_rule_json import BuyRuleFields, read_buy_rule
from cardsync.buying.rules.buy_rule_sets import readable_query
from cardsync.buying.rules.value_offer import buy_rules_of
from cardsync.platform import errors
from cardsync.platform.limits import DEFAULT_PRIORITY
from cardsync.platform.money import dollars


class DraftEffectAsked(BuyRuleFields):
    """The fields of a draft. With `rule_id`, the draft replaces that rule. Without `collection_id`,
    the newest collection is valued.
    """

    rule_id: int | None = None
    collection_id: int | None = None


async def preview_draft(
    session: AsyncSession,
    caller: Caller,
    body: Mapping[str, object],
    now: datetime,
) -> EffectShown:
    """Return a draft's effect. `body` has the fields of `DraftEffectAsked`. Raises NotFound,
    InvalidRule, InvalidQuery, InvalidPayload.
    """
    caller.must_be_owner()
    fields = dict(body)
    rule_id = _id(fields, "rule_id")
    collection_id = _id(fields, "collection_id")
    rules = await buy_rules_of(session, caller.seller_id)
    draft = _draft(rules, fields, rule_id)
    query = await readable_query(session, caller.seller_id, draft.query)
    draft = replace(draft, query=query)
    with_draft = [rule for rule in rules if rule.id != draft.id] + [draft]
    collection = await _collection(session, caller, collection_id)
    if collection is None:
        return EffectShown(None, "", 0, 0, "0.00", "0.00", 0, "0.00", "0.00", [])
    lines = await lines_of(session, caller, collection.id)
    now_sums = await effect_of(session, caller, lines, rules, now)
    then = await effect_of(session, caller, lines, with_draft, now)
    return EffectShown(
        collection.id,
        caller.buyer(collection.name) or "",
        now_sums.copies,
        now_sums.bought,
        dollars(now_sums.cash),
        dollars(now_sums.credit),
        then.bought,
        dollars(then.cash),
        dollars(then.credit),
        [LeftShown(reason, REASONS[reason], copies) for reason, copies in then.left.items()],
    )


def _id(fields: dict[str, object], name: str) -> int | None:
    value = fields.pop(name, None)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise errors.InvalidPayload(f"{name}: must be an ID")
    return value


def _draft(
    rules: list[BuyRule],
    fields: Mapping[str, object],
    rule_id: int | None,
) -> BuyRule:
    """Return the draft as a published rule. A new rule gets a priority before the preset's rule."""
    base = BuyRule(
        id=0,
        name="Draft",
        priority=DEFAULT_PRIORITY - 1,
    )
    if rule_id is not None:
        found = [rule for rule in rules if rule.id == rule_id]
        if not found:
            raise errors.NotFound(f"there is no buy rule {rule_id}")
        base = found[0]
    return replace(
        read_buy_rule(fields, base),
        state="published",
        enabled=True,
    )


async def _collection(
    session: AsyncSession,
    caller: Caller,
    collection_id: int | None,
) -> Collection | None:
    """Return the collection or, if `collection_id` is None, the newest one; None if the shop has
    none. Raises NotFound.
    """
    if collection_id is not None:
        return await one_collection(
            session,
            caller,
            collection_id,
        )
    read = select(Collection).where(
        Collection.seller_id == caller.seller_id,
        Collection.state == "done",
    )
    return await session.scalar(read.order_by(Collection.id.desc()).limit(1))

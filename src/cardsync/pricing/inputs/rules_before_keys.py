"""Finds the rules as they were before keys and tokens changed them within the last day, without a
member's click since: what a run asks beyond them is due to those writers.

It is read from the activity, whose entries hold what each change was made of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec
import polars as pl
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.pricing.engine.rules import WHOLE_BP, Rule
from cardsync.pricing.loss.loss_limits import CHEAP, DAY_CARD_BP

_DAY: Final = timedelta(days=1)
# What rounding and the market may add to a change that was within its limit.
_SLACK_BP: Final = 300
# A member who confirmed a run has seen its prices.
_CHANGES: Final = """
    SELECT a.actor LIKE 'member %' AS by_member, a.undo -> 'before' AS before FROM activity a
     WHERE a.seller_id = :seller AND a.created_at > greatest(:since, (
           SELECT max(s.created_at) FROM activity s
            WHERE s.seller_id = :seller AND s.created_at > :since AND s.actor LIKE 'member %'
              AND s.action IN ('pricing.run_confirmed', 'upload.confirmed')))
       AND a.created_at <= :now AND a.outcome = 'applied' AND a.undone_by IS NULL
       AND a.undo ->> 'kind' = 'pricing.rules'
       AND NOT EXISTS (SELECT FROM api_key k WHERE k.seller_id = :seller AND k.own_script
                          AND a.actor = 'key ' || k.id)
     ORDER BY a.id DESC
"""
Images = Mapping[str, Mapping[str, Any] | None]


class Change(NamedTuple):
    """A change of rules, with those rules before it; None for one that was not there."""

    by_member: bool
    before: Images


async def rules_before_keys(
    session: AsyncSession, seller_id: int, rules: Sequence[Rule], now: datetime
) -> list[Rule] | None:
    """Return None where no key or token has changed a rule."""
    values = {"seller": seller_id, "since": now - _DAY, "now": now}
    found = await session.execute(text(_CHANGES), values)
    return undone(rules, [Change(*row) for row in found])


def undone(rules: Sequence[Rule], changes: Iterable[Change]) -> list[Rule] | None:
    """Return the rules without the changes, the newest first, that no member's change of the same
    rule came after. Pure.
    """
    then = {rule.id: rule for rule in rules}
    approved: set[int] = set()
    differ = False
    for change in changes:
        images = {int(id): image for id, image in change.before.items()}
        if change.by_member:
            approved |= images.keys()
            continue
        for id in images.keys() - approved:
            differ = True
            image = images[id]
            if image is None:
                then.pop(id, None)
            else:
                then[id] = msgspec.convert({**image["settings"], **image}, Rule)
    return list(then.values()) if differ else None


def moved_by_keys(priced: pl.DataFrame, before: pl.DataFrame) -> bool:
    """Return whether a card would be priced further from what the earlier rules ask than keys and
    tokens may move it in a day; both are priced. Pure.
    """
    target = pl.coalesce("target", "current_price")
    ours = priced.select("marketplace_id", target.alias("now"))
    both = ours.join(before.select("marketplace_id", target.alias("then")), on="marketplace_id")
    moved = (pl.col("now") - pl.col("then")).abs()
    far = moved * WHOLE_BP > pl.col("then") * (DAY_CARD_BP + _SLACK_BP)
    return not both.filter(far & (pl.max_horizontal("now", "then") > CHEAP)).is_empty()

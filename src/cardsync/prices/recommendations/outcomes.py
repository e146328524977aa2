"""Shows the outcomes of recommendations: the net of applied prices compared with matched cards, by
kind of review and by rule.

A matched card had a review of the same kind at about the same time and price, and none of its
reviews was applied. Sales are counted for thirty days after the day of the decision, net of fees
and refunds and without canceled orders. A decision of the last thirty days is not judged yet. A
second decision about the same card within thirty days is part of the first decision. A decision
that was rolled back meanwhile does not count. A rule with a hold-out is also judged by comparing
the held-out cards with the cards that followed the rule, since both groups were drawn at random.
The sales of both groups are counted until the draw's thirty days end, because after that both
groups follow the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from psycopg.rows import TupleRow

from cardsync.access.caller import Caller
from cardsync.access.models import Account
from cardsync.platform import clock
from cardsync.platform.database.read_sources import Source, each_of, rows_as
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.database.session import in_one_message
from cardsync.platform.money import dollars_or_none, usd
from cardsync.platform.value_types import Row
from cardsync.prices.engine.rules import WHOLE_BP
from cardsync.prices.inputs.rule_rows import seller_pricing
from cardsync.prices.recommendations.review_effect import (
    Effect,
    NetOfCard,
    Pair,
    effect_of,
    effect_of_draw,
)
from cardsync.prices.recommendations.schemas import (
    AppliedShown,
    HoldoutShown,
    OutcomeShown,
    OutcomesShown,
)
from cardsync.sales.lots.fee_schedule import net, schedule_at

WINDOW: Final = timedelta(days=30)
LOOKED_BACK: Final = timedelta(days=365)
_NEAR: Final = timedelta(days=15)
_REVIEWS_MOST: Final = 2_000
_MATCHES: Final = 10
REVIEWS_SHOWN: Final = 50

_COUNTED: Final = """
    SELECT r.kind, r.rule_id, count(*) FILTER (WHERE r.state = 'accepted') AS accepted,
           count(*) FILTER (WHERE r.state = 'auto_applied') AS auto_applied,
           count(*) FILTER (WHERE r.settled_at > :until) AS waiting
      FROM proposal r
     WHERE r.seller_id = :seller AND r.family = 'price'
       AND r.state IN ('accepted', 'auto_applied') AND r.settled_at >= :since
     GROUP BY r.kind, r.rule_id
"""
# The part of a sale that was not refunded, in basis points. If the order's total is unknown, a
# refund counts as the whole sale.
_KEPT: Final = f"""
    {WHOLE_BP} - CASE WHEN o.refund_amt > 0
                      THEN round({WHOLE_BP} * coalesce(least(1,
                           o.refund_amt / nullif(coalesce(o.total_amt, o.product_amt), 0)), 1))
                      ELSE 0 END::bigint
"""
_SALE: Final = f"""
    SELECT (i.unit_price * 10000)::bigint AS price, i.quantity, ({_KEPT})::bigint AS kept
      FROM order_item i
      JOIN orders o ON o.seller_id = :seller AND o.id = i.order_id
     WHERE i.seller_id = :seller AND o.status_group <> 'Cancelled' AND i.unit_price IS NOT NULL
       AND ({_KEPT}) > 0
"""
_SOLD: Final = queries_of(__package__)["sold"].format(sale=_SALE)


_DRAWN: Final = f"""
    SELECT h.source_id AS rule_id, h.part, h.marketplace_id, h.kind = 'held_out' AS held,
           s.price, s.quantity, s.kept
      FROM (SELECT * FROM price_decision
             WHERE seller_id = :seller AND kind IN ('held_out', 'twin')
               AND since BETWEEN :since AND :until) h
      LEFT JOIN LATERAL (
           {_SALE} AND i.sku_id = h.marketplace_id
              AND o.order_date > (h.since AT TIME ZONE 'UTC')::date
              AND o.order_date < DATE '1970-01-01' + (h.part + 1) * 30) s ON true
"""
_STILL_DRAWN: Final = """
    SELECT source_id AS rule_id, count(*) FROM price_decision
     WHERE seller_id = :seller AND kind IN ('held_out', 'twin') AND since > :until
     GROUP BY source_id
"""


_NAMES: Final = "SELECT id, name FROM pricing_rule WHERE seller_id = :seller"


async def outcomes(source: Source, caller: Caller, now: datetime) -> OutcomesShown:
    """Return the outcomes of applied recommendations and of hold-outs. Raise OwnerRequired."""
    caller.must_be_owner()
    values = {
        "seller": caller.seller_id,
        "since": now - LOOKED_BACK,
        "until": now - WINDOW,
        "near": _NEAR,
        "near_since": now - LOOKED_BACK - _NEAR,
        "most": _REVIEWS_MOST,
        "matches": _MATCHES,
        "window": WINDOW,
    }
    [account], (counted, sold, names_of_rules, still_drawn, drawn) = await each_of(
        source,
        rows_as(source, Account, caller.seller_id, ""),
        in_one_message(source, [_COUNTED, _SOLD, _NAMES, _STILL_DRAWN, _DRAWN], values),
    )
    level = seller_pricing(account).fee_level
    schedule = schedule_at(now)

    def left(row: Row) -> int:
        one = net(row.price, schedule, level, direct=False)
        whole: int = one * (row.quantity or 1) * row.kept // WHOLE_BP**2
        return whole

    reviews = _reviews(sold, left)
    kinds = sorted({row.kind for row in counted})
    rules = sorted({row.rule_id for row in counted if row.rule_id is not None})
    names: dict[int, str] = dict(names_of_rules)
    newest = sorted(reviews, key=lambda one: (one.first.settled_at, one.first.id), reverse=True)
    return OutcomesShown(
        WINDOW.days,
        [
            *(_outcome("kind", kind, counted, reviews, names) for kind in kinds),
            *(_outcome("rule_id", rule, counted, reviews, names) for rule in rules),
        ],
        _drawn(drawn, dict(still_drawn), left, names),
        [one.shown for one in newest[:REVIEWS_SHOWN]],
    )


def _drawn(
    rows: Iterable[Row],
    waiting: Mapping[int, int],
    left: Callable[[Row], int],
    names: Mapping[int, str],
) -> list[HoldoutShown]:
    groups = dict[int, dict[tuple[int, int, bool], NetOfCard]]()
    for row in rows:
        cards = groups.setdefault(row.rule_id, {})
        key = (row.part, row.marketplace_id, row.held)
        one = cards.get(key, NetOfCard(0, sold=False))
        if row.price is not None:
            one = NetOfCard(one.net + left(row), sold=True)
        cards[key] = one
    return [
        HoldoutShown(
            rule_id,
            names.get(rule_id),
            waiting.get(rule_id, 0),
            *_figures(_effect_of(groups.get(rule_id, {}))),
        )
        for rule_id in sorted(waiting.keys() | groups.keys())
    ]


def _effect_of(cards: dict[tuple[int, int, bool], NetOfCard]) -> Effect:
    followed = [one for (_, _, held), one in cards.items() if not held]
    return effect_of_draw(followed, [one for (_, _, held), one in cards.items() if held])


@dataclass
class _Review:
    """An applied review. `first` is one of its rows; `alone` has the net of each matched card by
    the card's id.
    """

    first: Any
    kind: str
    rule_id: int | None
    brought: int = 0
    sold: bool = False
    alone: dict[int, int] = field(default_factory=dict)
    alone_sold: set[int] = field(default_factory=set)

    @property
    def pair(self) -> Pair:
        return Pair(self.brought, self.sold, self.alone, self.alone_sold)

    @property
    def shown(self) -> AppliedShown:
        count = len(self.alone)
        row = self.first
        return AppliedShown(
            row.id,
            self.kind,
            self.rule_id,
            row.state,
            row.card_id,
            row.product_name,
            clock.rfc3339(row.settled_at),
            usd(row.current_price),
            usd(row.proposed_price),
            self.sold,
            dollars_or_none(self.brought),
            dollars_or_none(round(Decimal(sum(self.alone.values())) / count) if count else None),
            count,
        )


def _reviews(rows: Iterable[Row], left: Callable[[Row], int]) -> list[_Review]:
    found: dict[int, _Review] = {}
    for row in rows:
        # The rows of the review's own card are first.
        review = found.setdefault(row.id, _Review(row, row.kind, row.rule_id))
        brought = 0 if row.price is None else left(row)
        if row.own:
            review.brought += brought
            review.sold |= row.price is not None
            continue
        review.alone[row.card_id] = review.alone.get(row.card_id, 0) + brought
        if row.price is not None:
            review.alone_sold.add(row.card_id)
    return list(found.values())


def _outcome(
    by: str,
    value: Any,
    counted: Iterable[Row],
    reviews: Iterable[_Review],
    names: Mapping[int, str],
) -> OutcomeShown:
    own = [row for row in counted if getattr(row, by) == value]
    return OutcomeShown(
        value if by == "kind" else None,
        value if by == "rule_id" else None,
        names.get(value) if by == "rule_id" else None,
        sum(row.accepted for row in own),
        sum(row.auto_applied for row in own),
        sum(row.waiting for row in own),
        *_figures(effect_of([review.pair for review in reviews if getattr(review, by) == value])),
    )


def _figures(effect: Effect) -> TupleRow:
    """Return the values of an effect, which are the last fields of an outcome or a hold-out."""
    known = effect.low is not None and effect.high is not None
    return (
        effect.cards,
        effect.cards_sold,
        effect.control_cards,
        effect.control_sold,
        dollars_or_none(effect.net),
        dollars_or_none(effect.control),
        dollars_or_none(effect.difference),
        [dollars_or_none(effect.low) or "", dollars_or_none(effect.high) or ""] if known else None,
        effect.verdict,
        effect.reason,
    )

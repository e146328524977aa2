"""Lists pending recommendations: price reviews by expected value, and separately stale stock and
advice on rules. A recommendation whose evidence has expired is not shown, even before the next
generation ends it.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import clock
from cardsync.platform.database.snapshot_reads import Planned, Reading
from cardsync.platform.kit.row_pages import Paging
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.money import usd
from cardsync.prices.limits import STALE_STOCK
from cardsync.prices.proposals.decide_proposals import SeenProposal
from cardsync.prices.recommendations.badges import badges_of
from cardsync.prices.recommendations.schemas import (
    RecommendationShown,
    RecommendationsShown,
)


class _Row(NamedTuple):
    """A recommendation with its card; the fields are the columns of _COLUMNS."""

    id: int
    family: str
    kind: str
    state: str
    current_price: Decimal | None
    proposed_price: Decimal | None
    expected_value: Decimal | None
    confidence: Literal["low", "medium", "high"]
    # The text of a JSON object, which is sent unchanged.
    evidence: str
    revision: datetime
    created_at: datetime
    expires_at: datetime
    rule_id: int | None
    card_id: int | None
    marketplace_id: int | None
    product_name: str | None
    set_name: str | None
    number: str | None
    condition: str | None
    printing: str | None


_COLUMNS: Final = """
    r.id, r.family, r.kind, r.state, r.current_price, r.proposed_price, r.expected_value,
    r.confidence, CAST(r.evidence AS text), r.revision, r.created_at, r.expires_at, r.rule_id,
      r.card_id,
    c.marketplace_id, c.product_name, c.set_name, c.number, c.condition, c.printing
"""
_OF_CARD: Final = "LEFT JOIN card c ON c.seller_id = :seller AND c.id = r.card_id"
_PENDING: Final = "r.seller_id = :seller AND r.state = 'pending' AND r.expires_at > :now"
# The index alone selects the page's rows; their cards are joined afterwards.
_PAGE: Final = Planned(
    "pending_reviews",
    f"""
    WITH page AS MATERIALIZED (
        SELECT * FROM proposal r WHERE {_PENDING} AND r.family = 'price'
         ORDER BY r.worth DESC, r.id LIMIT :limit OFFSET :offset)
    SELECT {_COLUMNS} FROM page r {_OF_CARD} ORDER BY r.worth DESC, r.id
    """,
    {
        "seller": "bigint",
        "now": "timestamptz",
        "limit": "bigint",
        "offset": "bigint",
    },
)
_APART: Final = Planned(
    "pending_advice",
    f"""
    SELECT {_COLUMNS} FROM proposal r {_OF_CARD}
     WHERE {_PENDING} AND r.family IN ('liquidation', 'account')
     ORDER BY r.worth DESC, r.id LIMIT :apart
    """,
    {"seller": "bigint", "now": "timestamptz", "apart": "bigint"},
)
_UNDER: Final = f"""
    SELECT r.id, r.revision FROM proposal r
     WHERE {_PENDING} AND r.family = 'price'
       AND greatest(r.current_price, r.proposed_price) < :price
     ORDER BY r.worth DESC, r.id LIMIT :most
"""
# The index alone answers this query.
_COUNTED: Final = Planned(
    "pending_counted",
    f"""
    SELECT count(*), max(r.revision), coalesce(sum(r.expected_value), 0)
      FROM proposal r WHERE {_PENDING} AND r.family = 'price'
    """,
    {"seller": "bigint", "now": "timestamptz"},
)


async def recommendations(
    reading: Reading,
    caller: Caller,
    paging: Paging,
    now: datetime,
) -> RecommendationsShown:
    """Return a page of the pending price reviews, and all recommendations of the other families."""
    values = {
        "seller": caller.seller_id,
        "now": now,
        **paging.values,
        "apart": 2 * STALE_STOCK,
    }
    reviews, apart, [counted] = await reading.together(
        [_PAGE, _APART, _COUNTED],
        values,
        last=True,
    )
    (total, revision, expected) = counted
    numbers = paging.of(total)
    advice = [_Row._make(row) for row in apart]
    return RecommendationsShown(
        [struct_of(RecommendationShown, _Row._make(row)) for row in reviews],
        [struct_of(RecommendationShown, row) for row in advice if row.family == "liquidation"],
        [struct_of(RecommendationShown, row) for row in advice if row.family == "account"],
        numbers.total,
        usd(expected),
        numbers.page,
        numbers.per_page,
        numbers.total_pages,
        None if revision is None else clock.exact(revision),
    )


async def without_buy_outs(
    session: AsyncSession, caller: Caller, found: RecommendationsShown, now: datetime
) -> None:
    """Leave out stale stock if buyers have bought out its market since the suggestion."""
    ids = [one.card.id for one in found.liquidation if one.card]
    badges = await badges_of(session, caller, [], ids, now)
    bought_out = {one.card_id for one in badges if one.bought_out_at is not None}
    found.liquidation = [
        one for one in found.liquidation if one.card is None or one.card.id not in bought_out
    ]


async def suggestions_under(
    reading: Reading,
    caller: Caller,
    price: Decimal,
    most: int,
    now: datetime,
) -> list[SeenProposal]:
    """Return the pending price reviews below an amount, with their current revisions."""
    values = {"seller": caller.seller_id, "now": now, "price": price, "most": most}
    return [SeenProposal(*row) for row in await reading.rows(_UNDER, values)]

"""The JSON structs of market evidence."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from cardsync.market.coverage import Covered


class CoveredCard(msgspec.Struct):
    """`sales_30d` is null where sales are unknown or older than a day; zero does not prove that
    there is no demand. `fetched_at` is the time at which the sales were observed.
    """

    marketplace_id: int
    card_id: int
    sales_30d: int | None
    fetched_at: datetime | None


class ClearingCoverage(msgspec.Struct):
    cards: list[CoveredCard]


def coverage_body(found: Iterable[Covered]) -> ClearingCoverage:
    return ClearingCoverage(
        [
            CoveredCard(
                one.marketplace_id,
                one.card_id,
                one.sales_30d,
                one.fetched_at,
            )
            for one in found
        ]
    )

"""Records the recommendations that a person's page has shown, one event per revision.

A GET request, a badge or a collapsed group does not count as shown. Delivery is best-effort: a
report is ignored silently if it names no current recommendation of the shop or an older revision.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import limits
from cardsync.platform.database.session import run
from cardsync.prices.errors import TooManyObservations
from cardsync.prices.limits import OBSERVATIONS
from cardsync.prices.proposals.decide_proposals import Revision

_SHOWN: Final = """
    INSERT INTO recommendation_event (seller_id, recommendation_id, revision, kind, at, actor)
    SELECT :seller, r.id, r.revision, 'shown', :now, :actor
      FROM (SELECT DISTINCT id, revision
              FROM unnest(CAST(:ids AS bigint[]), CAST(:revisions AS timestamptz[]))
                   AS given (id, revision)) o
      JOIN proposal r ON r.seller_id = :seller AND r.id = o.id AND r.revision = o.revision
       AND r.family <> 'review'
    ON CONFLICT DO NOTHING
"""


class Observation(msgspec.Struct, frozen=True):
    id: Annotated[int, msgspec.Meta(ge=1, le=limits.LARGEST_ID, extra={"is": "an ID"})]
    revision: Revision


async def record_shown(
    session: AsyncSession,
    caller: Caller,
    observed: Sequence[Observation],
    now: datetime,
) -> int:
    """Store the observations, and return how many are new. Raises TooManyObservations."""
    if len(observed) > OBSERVATIONS:
        raise TooManyObservations(
            f"observations: has {len(observed)} entries, more than {OBSERVATIONS}"
        )
    return await run(
        session,
        _SHOWN,
        {
            "seller": caller.seller_id,
            "ids": [one.id for one in observed],
            "revisions": [one.revision for one in observed],
            "actor": caller.actor,
            "now": now,
        },
    )

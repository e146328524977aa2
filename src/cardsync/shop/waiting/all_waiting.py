"""Reads everything that waits for the owner's decision: uploads and pricing runs in review, plans,
prices that need review, and suggestions. All are read as rows with the same columns, from several
tables (ADR 0046).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, get_args

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import clock
from cardsync.platform.database.read_sources import Source, rows_of
from cardsync.platform.database.room_sql import queries_of
from cardsync.platform.kit.row_pages import Numbered, Paging
from cardsync.prices.plans.decide_plan import WAITING

Kind = Literal["upload", "run", "plan", "price", "suggestion"]
Answer = Literal["approve", "decline", "snooze"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
WHOLE_SHOP: Final[tuple[Kind, ...]] = ("upload", "run", "plan")
"""The kinds that concern the whole shop. They precede single prices, and can't be snoozed."""
_NO_CARD: Final = """
    NULL::bigint AS card_id, NULL::bigint AS listed_as, NULL::numeric AS current_price,
    NULL::numeric AS proposed_price, 0::bigint AS worth
"""
_UPLOADS: Final = f"""
    SELECT 'upload' AS kind, u.id, u.finished_at AS moment, NULL::integer AS revision,
           u.finished_at AS since, (u.report ->> 'applied')::integer AS cards,
           NULL::numeric AS amount, NULL::text AS risk, NULL::timestamptz AS expires_at, {_NO_CARD}
      FROM sync_state s
      JOIN upload u ON u.seller_id = :seller AND u.id = s.review_upload_id
     WHERE s.seller_id = :seller AND u.state = 'awaiting_review'
"""
# The newest pricing run if it is in review. In Review Mode (`:full` is false), runs do not wait,
# because the owner approves the price file.
_RUNS: Final = f"""
    SELECT 'run', r.id, r.finished_at, NULL, r.finished_at, (r.summary ->> 'cards')::integer,
           NULL::numeric, NULL, NULL::timestamptz, {_NO_CARD}
      FROM (SELECT id, state, finished_at, upload_id, summary FROM price_run
             WHERE seller_id = :seller AND state IN ('completed', 'awaiting_review')
             ORDER BY finished_at DESC, id DESC LIMIT 1) r
     WHERE :full AND r.state = 'awaiting_review' AND r.upload_id IS NULL
"""
_PLANS: Final = f"""
    SELECT 'plan', id, NULL, revision, created_at, (size ->> 'cards')::integer,
           ((size ->> 'after')::bigint - (size ->> 'before')::bigint) / 10000.0, risk, expires_at,
           {_NO_CARD}
      FROM agent_plan
     WHERE seller_id = :seller AND status = ANY (CAST(:waiting AS text[])) AND expires_at > :now
"""
_PROPOSED: Final = """
    SELECT {what}, NULL, expires_at, card_id, marketplace_id, current_price, proposed_price, worth
      FROM proposal
     WHERE seller_id = :seller AND family = '{family}' AND state = 'pending' AND expires_at > :now
"""
# Prices that need review. `worth` is in ten-thousandths.
_REVIEWS: Final = _PROPOSED.format(
    family="review",
    what="'price', marketplace_id, revision, NULL, created_at, 1, worth / 10000.0",
)
_SUGGESTED: Final = _PROPOSED.format(
    family="price", what="'suggestion', id, revision, NULL, revision, 1, expected_value"
)
_PARTS: Final[Mapping[Kind, str]] = dict(
    zip(KINDS, (_UPLOADS, _RUNS, _PLANS, _REVIEWS, _SUGGESTED), strict=True)
)
_WAITS: Final = " UNION ALL ".join(_PARTS.values())


def _of_each(what: str) -> str:
    """Return a statement with `what` for each kind. The kinds are separate subqueries, so that
    PostgreSQL can count each kind by an index. Prices are many, so that their sum is divided, not
    each of them.
    """
    columns = "kind, id, moment, revision, since, cards, amount, risk, expires_at"
    return " UNION ALL ".join(
        f"SELECT '{kind}', {what.format(part=f'({part}) w ({columns})', money=money)}"
        for kind, part in _PARTS.items()
        for money in ["sum(w.worth) / 10000.0" if kind == "price" else "sum(w.amount)"]
    )


COUNTS: Final = _of_each("count(*) FROM {part}")
SUMS: Final = _of_each(
    """count(*), min(w.since), {money}, min(w.expires_at), min(w.id)
         FROM {part} HAVING count(*) > 0"""
)
"""For each kind: the number of waiting decisions, the oldest time, the money, the first end, an id.
"""
# A page lists first the decisions that stop the whole shop, then plans and then prices, each by
# the money that they affect.
_PAGE: Final = queries_of(__package__)["page"].format(waits=_WAITS)


class Waits(NamedTuple):
    """A waiting decision. `revision` identifies its current content."""

    kind: Kind
    id: int
    revision: str
    since: datetime
    cards: int | None
    change: Any
    risk: str | None
    expires_at: datetime | None
    current_price: Any
    proposed_price: Any
    name: str | None

    @property
    def answers(self) -> list[Answer]:
        if self.kind in WHOLE_SHOP:
            return ["approve", "decline"]
        return ["approve", "decline", "snooze"]

    @property
    def page(self) -> str:
        """Return the path of the page that shows the waiting decision."""
        if self.kind in _PAGES:
            return f"{_PAGES[self.kind]}/{self.id}"
        return "/pricing/reviews" if self.kind == "price" else "/recommendations"


_PAGES: Final[Mapping[Kind, str]] = {
    "upload": "/sync/uploads",
    "run": "/pricing/runs",
    "plan": "/plans",
}


def values_of(seller_id: int, now: datetime, *, full: bool) -> dict[str, object]:
    """Return the values of `SUMS` and `COUNTS`."""
    return {"seller": seller_id, "now": now, "full": full, "waiting": list(WAITING)}


def _values(caller: Caller, now: datetime) -> dict[str, object]:
    full = caller.entitlements(now).sync_mode == "full"
    return values_of(caller.seller_id, now, full=full)


async def _read(
    source: Source,
    caller: Caller,
    kinds: tuple[Kind, ...],
    now: datetime,
    paging: Paging,
    id: int | None = None,
) -> list[Waits]:
    wanted = {"kinds": list(kinds), "id": id, **paging.values}
    rows = await rows_of(source)(_PAGE, _values(caller, now) | wanted)
    return [
        Waits(kind, id, str(revision) if moment is None else clock.exact(moment), *rest)
        for kind, id, moment, revision, *rest in rows
    ]


async def page_of(
    session: AsyncSession, caller: Caller, kind: Kind | None, paging: Paging, now: datetime
) -> tuple[Numbered[Waits], dict[Kind, int]]:
    """Return a page of waiting decisions of one kind, or of all kinds if `kind` is None, and the
    number of waiting decisions by kind. Raises OwnerRequired.
    """
    caller.must_be_owner()
    found = await session.execute(text(COUNTS), _values(caller, now))
    counts: dict[Kind, int] = dict(map(tuple, found))
    total = sum(counts.values()) if kind is None else counts[kind]
    rows = await _read(session, caller, KINDS if kind is None else (kind,), now, paging)
    return Numbered(rows, paging.of(total)), counts


async def one_of(
    session: AsyncSession, caller: Caller, kind: Kind, id: int, now: datetime
) -> Waits | None:
    """Return a waiting decision; None if it does not wait any more."""
    found = await _read(session, caller, (kind,), now, Paging(1, 1), id)
    return found[0] if found else None


async def whole_shop(source: Source, caller: Caller, most: int, now: datetime) -> list[Waits]:
    """Return up to `most` uploads, runs and plans that wait for the owner; none if the caller is
    staff.
    """
    if caller.role != "owner":
        return []
    return await _read(source, caller, WHOLE_SHOP, now, Paging(1, most))

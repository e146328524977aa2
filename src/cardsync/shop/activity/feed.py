"""Reads a page of the activity feed, newest first, and counts the entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import Activity
from cardsync.access.caller import Caller
from cardsync.access.grant_models import OAuthGrant
from cardsync.access.models import AccessToken, ApiKey, Member
from cardsync.buying.store_credit.models import BuyingCustomer
from cardsync.platform.database.read_sources import Source, rows_as, rows_of
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.row_pages import Page, newest, numbered
from cardsync.shop.activity.entry_words import WHO
from cardsync.shop.activity.feed_filter import FeedFilter

_Named = type[Member | ApiKey | AccessToken | OAuthGrant | BuyingCustomer]
_NAMED: Final[Mapping[str, _Named]] = {
    "member": Member,
    "key": ApiKey,
    "token": AccessToken,
    "grant": OAuthGrant,
    "buying customer": BuyingCustomer,
}
_BY_OTHERS: Final = """
    AND created_at >= :since AND actor <> :own ORDER BY created_at DESC, id DESC LIMIT :most
"""


class Feed(NamedTuple):
    """A page of the feed. `undone_at` has the times of the entries that undid entries of the page,
    by their ids.
    """

    page: Sequence[Activity]
    total: int
    names: Mapping[str, str] = {}
    undone_at: Mapping[int, datetime] = {}


async def read_feed(session: AsyncSession, caller: Caller, wanted: FeedFilter) -> Feed:
    """Return a page of the seller's feed. A page beyond the last one is empty."""
    those = select(Activity).where(*_conditions(caller.seller_id, wanted))
    found = await numbered(session, those.order_by(Activity.id.desc()), wanted)
    entries, total = found.rows, found.numbers.total
    texts = [wanted.actor or "", *(f"{row.actor} {row.summary}" for row in entries)]
    names = await names_in(session, caller, texts)
    return Feed(entries, total, names, await _undone_at(session, caller, entries))


async def _undone_at(
    session: AsyncSession, caller: Caller, entries: Iterable[Activity]
) -> dict[int, datetime]:
    ids = [row.undone_by for row in entries if row.undone_by is not None]
    if not ids:
        return {}
    mine = (Activity.seller_id == caller.seller_id) & Activity.id.in_(ids)
    rows = await session.execute(select(Activity.id, Activity.created_at).where(mine))
    return {row.id: row.created_at for row in rows}


async def newest_by_others(reading: Reading, caller: Caller, since: datetime, most: int) -> Feed:
    """Return up to `most` newest entries since `since`, without the caller's own entries. `total`
    is the number of returned entries.
    """
    values = {"since": since, "own": caller.actor, "most": most}
    entries = await rows_as(reading, Activity, caller.seller_id, _BY_OTHERS, **values)
    texts = (f"{row.actor} {row.summary}" for row in entries)
    return Feed(entries, len(entries), await names_in(reading, caller, texts))


async def names_in(session: Source, caller: Caller, texts: Iterable[str]) -> dict[str, str]:
    """Return the names of the seller's members, API keys, tokens, grants and buying customers that
    occur in the texts, by the form in the texts, such as `member 3`.
    """
    named = {found.groups() for text in texts for found in WHO.finditer(text)}
    names: dict[str, str] = {}
    for kind, table in _NAMED.items():
        ids = [int(number) for of, number in named if of == kind]
        if ids and (kind != "buying customer" or caller.sees_buyers):
            rows = await rows_of(session)(
                f"SELECT id, name FROM {table.__tablename__}"
                " WHERE seller_id = :seller AND id = ANY (CAST(:ids AS bigint[]))",
                {"seller": caller.seller_id, "ids": ids},
            )
            names |= {f"{kind} {id}": name for id, name in rows if name}
    return names


async def feed_before(
    session: AsyncSession,
    caller: Caller,
    wanted: FeedFilter,
    before: int | None,
    most: int,
) -> Page[Activity]:
    those = select(Activity).where(*_conditions(caller.seller_id, wanted))
    return await newest(session, those, Activity.id, before, most)


def _conditions(seller_id: int, wanted: FeedFilter) -> list[ColumnElement[bool]]:
    those: list[ColumnElement[bool]] = [Activity.seller_id == seller_id]
    if wanted.actor is not None:
        kind = func.split_part(Activity.actor, " ", 1)
        those.append(or_(Activity.actor == wanted.actor, kind == wanted.actor))
    if wanted.action is not None:
        kind = func.split_part(Activity.action, ".", 1)
        those.append(or_(Activity.action == wanted.action, kind == wanted.action))
    if wanted.outcome is not None:
        those.append(Activity.outcome == wanted.outcome)
    if wanted.risk is not None:
        those.append(Activity.risk == wanted.risk)
    if wanted.since is not None:
        those.append(Activity.created_at >= wanted.since)
    return those

"""Reads a page of the activity feed, newest first, and counts the entries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.activity import Activity
from cardsync.access.caller import Caller
from cardsync.access.grant_models import OAuthGrant
from cardsync.access.models import AccessToken, ApiKey, Member
from cardsync.buying.store_credit.models import BuyingCustomer
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.read_sources import Source, newest, rows_as, rows_of
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.kit.row_pages import Page
from cardsync.platform.value_types import Values
from cardsync.shop.activity.entry_words import WHO
from cardsync.shop.activity.feed_filter import FeedFilter
from cardsync.shop.activity.settled_counts import SettledCounts

_Named = type[Member | ApiKey | AccessToken | OAuthGrant | BuyingCustomer]
_NAMED: Final[Mapping[str, _Named]] = {
    "member": Member,
    "key": ApiKey,
    "token": AccessToken,
    "grant": OAuthGrant,
    "buying customer": BuyingCustomer,
}
_FILTERS: Final = {
    "actor": "(actor = :actor OR split_part(actor, ' ', 1) = :actor)",
    "action": "(action = :action OR split_part(action, '.', 1) = :action)",
    "outcome": "outcome = :outcome",
    "risk": "risk = :risk",
    "since": "created_at >= :since",
}
_UNDONE_AT: Final = """
    SELECT id, created_at FROM activity
     WHERE seller_id = :seller AND id = ANY (CAST(:ids AS bigint[]))
"""
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


async def read_feed(
    reading: Reading, caller: Caller, wanted: FeedFilter, counts: SettledCounts, now: datetime
) -> Feed:
    """Return a page of the seller's feed. A page beyond the last one is empty."""
    where, values = _conditions(wanted)
    shown = wanted.values | values
    tail = f"{where} ORDER BY id DESC LIMIT :limit OFFSET :offset"
    entries, total = await at_once(
        rows_as(reading, Activity, caller.seller_id, tail, **shown),
        _counted(reading, caller, where, values) if where else counts.total(reading, caller, now),
    )
    texts = [wanted.actor or "", *(f"{row.actor} {row.summary}" for row in entries)]
    names, undone_at = await at_once(
        names_in(reading, caller, texts), _undone_at(reading, caller, entries)
    )
    return Feed(entries, total, names, undone_at)


async def _counted(reading: Reading, caller: Caller, where: str, values: Values) -> int:
    count = f"SELECT count(*) FROM activity WHERE seller_id = :seller {where}"
    [(total,)] = await reading.rows(count, {"seller": caller.seller_id, **values})
    return int(total)


async def _undone_at(
    reading: Reading, caller: Caller, entries: Iterable[Activity]
) -> dict[int, datetime]:
    ids = [row.undone_by for row in entries if row.undone_by is not None]
    if not ids:
        return {}
    return dict(await reading.rows(_UNDONE_AT, {"seller": caller.seller_id, "ids": ids}))


async def newest_by_others(reading: Reading, caller: Caller, since: datetime, most: int) -> Feed:
    """Return up to `most` newest entries since `since`, without the caller's own entries. `total`
    is the number of returned entries.
    """
    values = {"since": since, "own": caller.actor, "most": most}
    entries = await rows_as(reading, Activity, caller.seller_id, _BY_OTHERS, **values)
    texts = (f"{row.actor} {row.summary}" for row in entries)
    return Feed(entries, len(entries), await names_in(reading, caller, texts))


async def names_in(source: Source, caller: Caller, texts: Iterable[str]) -> dict[str, str]:
    """Return the names of the seller's members, API keys, tokens, grants and buying customers that
    occur in the texts, by the form in the texts, such as `member 3`.
    """
    named = {found.groups() for text in texts for found in WHO.finditer(text)}
    ids = {kind: [int(number) for of, number in named if of == kind] for kind in _NAMED}
    if not caller.sees_buyers:
        ids.pop("buying customer")
    asked = [kind for kind, numbers in ids.items() if numbers]
    if not asked:
        return {}
    statement = " UNION ALL ".join(
        f"SELECT '{kind} ' || id, name FROM {_NAMED[kind].__tablename__}"
        f" WHERE seller_id = :seller AND id = ANY (CAST(:ids_{place} AS bigint[]))"
        for place, kind in enumerate(asked)
    )
    values = {f"ids_{place}": ids[kind] for place, kind in enumerate(asked)}
    rows = await rows_of(source)(statement, {"seller": caller.seller_id, **values})
    return {called: name for called, name in rows if name}


async def feed_before(
    session: AsyncSession,
    caller: Caller,
    wanted: FeedFilter,
    before: int | None,
    most: int,
) -> Page[Activity]:
    where, values = _conditions(wanted)
    return await newest(session, Activity, caller.seller_id, before, most, where, **values)


def _conditions(wanted: FeedFilter) -> tuple[str, dict[str, Any]]:
    """Return the filter as SQL, each condition after an AND, and its values."""
    found = {name: getattr(wanted, name) for name in _FILTERS}
    values = {name: value for name, value in found.items() if value is not None}
    return " ".join(f"AND {_FILTERS[name]}" for name in values), values

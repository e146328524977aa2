"""The JSON structs of the activity feed, and the functions that fill them from rows. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec

from cardsync.access.activity import Activity, Outcome, Risk
from cardsync.access.caller import Caller
from cardsync.platform.clock import rfc3339
from cardsync.platform.described import Like
from cardsync.shop.activity.feed import Feed
from cardsync.shop.activity.feed_filter import FeedFilter
from cardsync.shop.activity.undo import is_undoable

_NAMED: Final = re.compile(r" “.*”", re.DOTALL)


class ActivityEntry(msgspec.Struct):
    """`actor` is key N, token N, grant N (an assistant), member N, operator or a part of the
    service, and `actor_name` the name of that key, token, assistant or member; old entries of keys
    say key alone. `before` and `after` hold what differs, for owners. `undone_by` is the entry that
    undid this one.
    """

    id: int
    actor: str
    """key N, token N, grant N (an assistant), member N, operator or a part of the service"""
    action: str
    risk: Annotated[str, Like(Risk)]
    outcome: Annotated[str, Like(Outcome)]
    summary: str
    request_id: str | None
    created_at: str
    before: dict[str, Any] | None
    """The value before the change"""
    after: dict[str, Any] | None
    """The value after the change"""
    undoable: bool
    undone_by: int | None
    actor_name: str | None
    """The name of that key, token, assistant or member"""


class ActivityPage(msgspec.Struct):
    activity: list[ActivityEntry]
    total: int
    page: int
    per_page: int
    total_pages: int


def entry_body(caller: Caller, row: Activity, names: Mapping[str, str]) -> ActivityEntry:
    # Rules and settings are the owner's to read.
    owner = caller.role == "owner"
    return ActivityEntry(
        row.id,
        row.actor,
        row.action,
        row.risk,
        row.outcome,
        _summary(caller, row),
        row.request_id,
        rfc3339(row.created_at),
        _told(caller, row.before) if owner else None,
        _told(caller, row.after) if owner else None,
        owner and is_undoable(row),
        row.undone_by,
        names.get(row.actor),
    )


def _summary(caller: Caller, row: Activity) -> str:
    """Files that customers bring are often named after them."""
    if caller.sees_buyers or not row.action.startswith("buying."):
        return row.summary
    return _NAMED.sub("", row.summary)


def _told(caller: Caller, what: dict[str, Any] | None) -> dict[str, Any] | None:
    """Notes on buyers are for callers who may see buyers."""
    if what is None or caller.sees_buyers:
        return what
    return {name: value for name, value in what.items() if name != "note"}


def page_body(caller: Caller, feed: Feed, wanted: FeedFilter) -> ActivityPage:
    entries = [entry_body(caller, row, feed.names) for row in feed.page]
    return ActivityPage(entries, *wanted.of(feed.total))

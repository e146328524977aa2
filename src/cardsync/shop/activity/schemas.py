"""The JSON structs of the activity feed, and the functions that fill them from rows. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final

import msgspec

from cardsync.access.activity import Activity, Outcome, Risk
from cardsync.access.caller import Caller
from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import ReadsFor, struct_of
from cardsync.platform.value_types import JsonObject
from cardsync.shop.activity.feed import Feed
from cardsync.shop.activity.feed_filter import FeedFilter
from cardsync.shop.activity.undo import is_undoable

_NAMED: Final = re.compile(r" “.*”", re.DOTALL)


class ActivityEntry(msgspec.Struct):
    """An entry of the activity feed. `actor` is key N, token N, grant N (an assistant), member N,
    operator or a part of the service; in old entries, it may be key without a number. `actor_name`
    is the name of the key, token, assistant or member. `before` and `after` have the changed
    values, for owners only. `undone_by` is the id of the entry that undid this entry.
    """

    id: int
    actor: str
    """key N, token N, grant N (an assistant), member N, operator or a part of the service"""
    action: str
    risk: Annotated[str, Like(Risk)]
    outcome: Annotated[str, Like(Outcome)]
    summary: str
    request_id: str | None
    created_at: datetime
    before: Annotated[JsonObject | None, ReadsFor(_reported)]
    """The changed values before the change"""
    after: Annotated[JsonObject | None, ReadsFor(_reported)]
    """The changed values after the change"""
    undoable: bool
    undone_by: int | None
    actor_name: str | None
    """The name of the key, token, assistant or member"""


class ActivityPage(msgspec.Struct):
    activity: list[ActivityEntry]
    total: int
    page: int
    per_page: int
    total_pages: int


def entry_body(caller: Caller, row: Activity, names: Mapping[str, str]) -> ActivityEntry:
    return struct_of(
        ActivityEntry,
        row,
        caller,
        summary=_summary(caller, row),
        undoable=caller.role == "owner" and is_undoable(row),
        actor_name=names.get(row.actor),
    )


def _summary(caller: Caller, row: Activity) -> str:
    """Return the summary. In entries of buying, hide the names of files from callers who may not
    see buyers, because files are often named after customers.
    """
    if caller.sees_buyers or not row.action.startswith("buying."):
        return row.summary
    return _NAMED.sub("", row.summary)


def _reported(caller: Caller, what: dict[str, object] | None) -> dict[str, object] | None:
    """Return the changed values as the caller may see them: staff do not see rules and settings,
    and notes on buyers need the right to see buyers.
    """
    if caller.role != "owner":
        return None
    if what is None or caller.sees_buyers:
        return what
    return {name: value for name, value in what.items() if name != "note"}


def page_body(caller: Caller, feed: Feed, wanted: FeedFilter) -> ActivityPage:
    entries = [entry_body(caller, row, feed.names) for row in feed.page]
    return ActivityPage(entries, *wanted.of(feed.total))

"""Reads the shop's state for the frame of every page: the counts of waiting work, and the state of
the sync.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple
from urllib.parse import parse_qs

from litestar.datastructures import Headers

from cardsync.access.caller import ADMITTED, Caller
from cardsync.agents.seller_state import state as seller_state
from cardsync.agents.sync import cancel
from cardsync.agents.sync.last_seen import is_offline
from cardsync.dashboard.formats import Reader
from cardsync.dashboard.goals import palette_of
from cardsync.dashboard.navigation import Group, Place, groups_for, on_phones, place_of
from cardsync.platform import clock
from cardsync.platform.kit.scope_values import ScopeValue
from cardsync.platform.settings import Settings
from cardsync.shop.today.waiting import KeptCounts, WaitingCounts
from cardsync.web.heavy_work import HeavyWork

if TYPE_CHECKING:
    from litestar.types import ASGIApp, Receive, Scope, Send

_COUNTS = ScopeValue[WaitingCounts | None]("cardsync.waiting")
# A route whose answers have no frame, because scripts request them as parts of a page. If the value
# names a parameter, only the answers to requests with it have none.
_PART: Final = "part_of_page"
PART: Final = {_PART: ""}
PART_IF_NAMED: Final = {_PART: "part"}


def _shows_frame(scope: Scope) -> bool:
    handler = scope.get("route_handler")
    parameter = handler.opt.get(_PART) if handler else None
    return parameter is None or (
        parameter != "" and parameter not in parse_qs(scope["query_string"].decode("latin-1"))
    )


def framing(app: ASGIApp) -> ASGIApp:
    """Middleware of the pages that reads the counts of the caller's shop before the page is made.
    The answer to a form, and a part of a page, have the counts of the previous page. A page of the
    owner keeps a process ready for heavy reads.
    """

    async def framed(scope: Scope, receive: Receive, send: Send) -> None:
        state = scope["litestar_app"].state
        kept: KeptCounts = state.waiting
        caller = ADMITTED.of(scope)
        seller_id = caller.seller_id
        # An open page requests its parts again and again, so these requests do not count as opening
        # it.
        if caller.role == "owner" and "hx-request" not in Headers.from_scope(scope):
            heavy: HeavyWork = state.heavy
            heavy.expect(seller_id)
        if scope.get("method") == "GET" and _shows_frame(scope):
            _COUNTS.put(scope, await kept.of(seller_id, clock.now()))
            await app(scope, receive, send)
            return
        _COUNTS.put(scope, kept.last(seller_id))
        try:
            await app(scope, receive, send)
        finally:
            if scope.get("method") != "GET":
                kept.forget(seller_id)

    return framed


class SyncLine(NamedTuple):
    """The state of the sync in a few words. `at` is the time that the words mention, if any."""

    kind: Literal["good", "bad", "busy", "none"]
    words: str
    at: datetime | None = None


class Frame(NamedTuple):
    """The values of a page's frame. `place` is the page's entry in the navigation, `counts` has a
    count for each name in `Place.waits`, and `palette` is the address of the palette's entries.
    """

    groups: list[Group]
    palette: str
    place: Place | None
    on_phones: list[Place]
    counts: dict[str, int]
    sync: SyncLine
    public_demo: bool


def frame_of(scope: Scope, caller: Caller, reader: Reader) -> Frame:
    """Return the values that `shell.html` shows."""
    settings: Settings = scope["litestar_app"].state.settings
    read = _COUNTS.find(scope) or WaitingCounts()
    groups = groups_for(caller)
    return Frame(
        groups,
        palette_of(caller),
        place_of(scope["path"], groups),
        on_phones(groups),
        _counts(caller, read, reader.now),
        sync_line(reader, caller, read.agent_seen_at, settings),
        bool(settings.public_demo),
    )


def _counts(caller: Caller, read: WaitingCounts, now: datetime) -> dict[str, int]:
    """Return the counts for the navigation. Uploads, runs and plans count only for the owner, who
    decides about them.
    """
    reviews = read.reviews
    if caller.role == "owner":
        reviews += read.decisions
        reviews += read.runs if caller.entitlements(now).sync_mode == "full" else 0
    return {**read._asdict(), "reviews": reviews}


def sync_line(
    reader: Reader, caller: Caller, seen_at: datetime | None, settings: Settings
) -> SyncLine:
    """Return the state of the sync in a few words: running, offline, when the last sync ended, or
    not yet synced. Pure.
    """
    state, now = caller.state, reader.now
    if state.lock_kind is not None and not (
        cancel.is_left(state, now) or seller_state.lock_is_stale(state, now, settings)
    ):
        return SyncLine("busy", _progress(reader, caller, now))
    if seen_at is not None and is_offline(seen_at, now):
        return SyncLine("bad", f"Sync app offline since {reader.clock_time(seen_at)}", seen_at)
    if state.last_sync_at is not None:
        return SyncLine("good", f"Synced {reader.ago(state.last_sync_at)}", state.last_sync_at)
    return SyncLine("none", "Not synced yet" if seen_at else "No sync app yet")


def _progress(reader: Reader, caller: Caller, now: datetime) -> str:
    state = caller.state
    if seller_state.lease_is_live(state, now) and state.work_total:
        done, total = reader.number(state.work_done), reader.number(state.work_total)
        return f"Syncing, {done} of {total}"
    return "Syncing"

"""The page Today: the waiting work, each line with its one next step; the sync with the buttons
that request or cancel it or skip the wait; and the shop's figures.
"""

from __future__ import annotations

import secrets
from datetime import datetime
from decimal import Decimal
from functools import partial

from litestar import Response, get
from litestar.response import Template

from cardsync.access.caller import Caller
from cardsync.agents.seller_state.sync_kinds import KINDS
from cardsync.agents.sync import cancel
from cardsync.agents.sync.last_seen import LastSeen, is_offline
from cardsync.dashboard.pages.sync import KIND_NAMES, phase_words, start_of
from cardsync.dashboard.shell import PageRequest, TemplateValues, reader_of, see, show
from cardsync.platform import clock
from cardsync.platform.concurrency import at_once
from cardsync.platform.database.snapshot_reads import Reading
from cardsync.platform.settings import Settings
from cardsync.shop.activity import entry_words
from cardsync.shop.activity.feed import Feed, newest_by_others
from cardsync.shop.today import desk, work_list
from cardsync.shop.today import last_visit as last_visits
from cardsync.shop.today.listed_value import read_listed_value
from cardsync.shop.today.movers import read_movers
from cardsync.shop.today.schemas import ListedDay, MoverBody, MoversBody, TodayBody
from cardsync.stock.cards import market_trend
from cardsync.stock.cards.market_trend import Trend
from cardsync.web.request import opened, reading

SHIPPING_NAMES = {"pwe": "Plain envelope", "tracked": "Tracked", "expedited": "Expedited"}
# The page shows at most this many movers that rose and as many that fell, and at most this many
# changes since the member's last visit.
MOVERS_EACH = 5
CHANGES_MOST = 6
ICONS = {
    "orders_to_pull": "package",
    "pull_under_way": "list-checks",
    "orders_to_ship": "package",
    "cards_missing": "triangle-alert",
    "upload_in_review": "upload",
    "run_in_review": "history",
    "prices_held": "hand",
    "prices_to_review": "eye",
    "prices_recommended": "lightbulb",
    "price_file_to_approve": "file-text",
    "plans_waiting": "clipboard-check",
    "offers_waiting": "hand",
    "offers_expiring": "hand",
    "rules_broken": "tag",
    "rules_never_match": "tag",
    "cards_dropped": "layers",
    "payment_past_due": "wallet",
    "backup_wrong": "history",
    "catalog_old": "history",
    "plan_unpaid": "wallet",
    "account_to_be_deleted": "trash-2",
    "set_up_unfinished": "settings",
}
# The sync can be canceled in these phases.
RUNNING = ("collecting", "queued", "importing", "repricing")


@get("/")
async def home(caller: Caller) -> Response[str]:
    return see("/today")


@get("/today")
async def today_page(
    request: PageRequest,
    caller: Caller,
    settings: Settings,
    days: str = "7",
    movers: str = "",
) -> Template:
    now = clock.now()
    period = 30 if days == "30" else 7
    seen: LastSeen = request.app.state.last_seen
    async with reading(request) as reads:
        today, (moved, trends), (listed, at_agent), changes = await at_once(
            work_list.today_of(reads, caller, seen, now, settings),
            _moved(reads, caller, period, now, whole=movers == "all"),
            at_once(_listed(reads, caller, now), cancel.is_at_agent(reads, caller.seller_id, now)),
            _changes(request, reads, caller, now),
        )
    return show(
        request,
        caller,
        "today.html",
        today=today,
        groups=(groups := desk.by_due(today.conditions, now, caller.account.time_zone)),
        first=desk.first_of(groups),
        icons=ICONS,
        lines=_lines(caller, today, listed, now),
        week_before=desk.week_before(today.sales) if today.sales else None,
        days=period,
        movers=moved,
        all_movers=movers == "all",
        trends=trends,
        shipping_names=SHIPPING_NAMES,
        can_cancel=caller.role == "owner" and (at_agent or today.sync.phase in RUNNING),
        **_sync_line(request, caller, today, now),
        **changes,
    )


async def _moved(
    reads: Reading, caller: Caller, period: int, now: datetime, *, whole: bool
) -> tuple[list[MoverBody], dict[int, Trend]]:
    moved = _largest(await read_movers(reads, caller, period), whole=whole)
    return moved, await market_trend.market_trends(reads, caller, [one.id for one in moved], now)


async def _listed(reads: Reading, caller: Caller, now: datetime) -> list[ListedDay]:
    if not caller.sees_revenue:
        return []
    return (await read_listed_value(reads, caller, market_trend.DAYS, now)).days


def _sync_line(
    request: PageRequest, caller: Caller, today: TodayBody, now: datetime
) -> TemplateValues:
    """Return the values for the line that shows the sync, and for its menu."""
    seen_at = clock.read_moment(today.sync.agent_last_seen_at)
    running = today.sync.in_progress
    offline = seen_at is not None and is_offline(seen_at, now) and not running
    phase = phase_words(today.sync.phase)
    if offline and seen_at is not None:
        since = reader_of(request, caller).clock_time(seen_at)
        phase = f"Sync paused: sync app offline since {since}"
    return {
        "phase": phase,
        "kinds": [(kind, KIND_NAMES.get(kind, kind.title())) for kind in KINDS if kind != "full"],
        "next_at_once": _is_due(today, now),
        "offline": offline,
        "start": start_of(reader_of(request, caller), seen_at, in_progress=running),
        "wait_words": _wait(today.sync.cooldown_seconds),
        # The form's own key, so that a form that is sent twice is charged only once.
        "wait_key": secrets.token_urlsafe(18) if _may_skip(caller, today) else "",
    }


async def _changes(
    request: PageRequest, reads: Reading, caller: Caller, now: datetime
) -> TemplateValues:
    """Return what other members and programs did since the member's last visit, in words."""
    # The page reloads itself every minute, so only a person's request counts as a visit.
    by_person = "hx-request" not in request.headers
    since = await last_visits.look(reads, partial(opened, request), caller, now, counts=by_person)
    feed = Feed([], 0)
    if since is not None:
        feed = await newest_by_others(reads, caller, since, CHANGES_MOST)
    return {
        "last_visit": since,
        "changed": feed.page,
        "action_words": entry_words.action_words,
        "who": partial(entry_words.actor_words, names=feed.names),
        "summary_words": partial(entry_words.summary_words, names=feed.names),
    }


def _lines(
    caller: Caller, today: TodayBody, listed: list[ListedDay], now: datetime
) -> dict[str, Trend | None]:
    """Return the lines in the tiles, which show thirty days."""
    local = caller.today(now)
    lines = {"listed": desk.line_of(((one.day, Decimal(one.value)) for one in listed), local)}
    lines |= dict.fromkeys(("sales", "orders"))
    if today.sales:
        sold = today.sales.days
        lines["sales"] = desk.line_of(
            ((one.day, Decimal(one.gross)) for one in sold), today.sales.day
        )
        lines["orders"] = desk.line_of(
            ((one.day, Decimal(one.orders)) for one in sold), today.sales.day
        )
    return lines


def _largest(movers: MoversBody, *, whole: bool) -> list[MoverBody]:
    most = None if whole else MOVERS_EACH
    return [*movers.rises[:most], *movers.falls[:most]]


def _is_due(today: TodayBody, now: datetime) -> bool:
    """Return whether the agent's next poll begins a sync."""
    due = clock.read_moment(today.sync.next_sync_at)
    return due is not None and due <= now


def _wait(seconds: int) -> str:
    """Return in words how long the member must wait before the next sync can be requested."""
    if seconds < 60:
        return f"{seconds} sec until you can request the next sync"
    return f"{-(-seconds // 60)} min until you can request the next sync"


def _may_skip(caller: Caller, today: TodayBody) -> bool:
    return caller.role == "owner" and today.sync.cooldown == "metered"


ROUTES = [home, today_page]

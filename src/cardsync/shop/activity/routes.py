"""HTTP routes of the activity feed: read a page of it, download it, and undo an entry."""

from __future__ import annotations

from litestar import Response, Router, get, post

from cardsync.access.admission import A_SESSION, A_TOKEN, BY_ANY, BY_ANYBODY
from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.platform import clock, errors
from cardsync.prices.plans.request_writer import WRITING
from cardsync.prices.plans.writer import Writer
from cardsync.shop.activity import feed, undo
from cardsync.shop.activity.as_csv import activity_as_csv
from cardsync.shop.activity.feed_filter import read_wanted
from cardsync.shop.activity.schemas import ActivityEntry, ActivityPage, entry_body, page_body
from cardsync.shop.activity.settled_counts import SettledCounts
from cardsync.shop.errors import NotUndoable
from cardsync.web import as_csv
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.request import BEHIND_A_KEY, FOR_OWNERS, ApiRequest, problems, reading


@get(
    "/agent/activity",
    **BY_ANYBODY,
    responses=problems(*BEHIND_A_KEY, errors.InvalidPayload),
)
async def read_activity(
    request: ApiRequest,
    caller: Caller,
    page: str | None = None,
    per_page: str | None = None,
    actor: str | None = None,
    action: str | None = None,
    outcome: str | None = None,
    risk: str | None = None,
    since: str | None = None,
) -> ActivityPage:
    """The activity feed, newest first. `actor` and `action` are a complete value (`token 7`,
    `list.renamed`) or a kind (`token`, `list`). `since` is a time; `per_page` is 50 by default, and
    at most 200.
    """
    wanted = read_wanted(page, per_page, actor, action, outcome, risk, since)
    counts: SettledCounts = request.app.state.feed_counts
    async with reading(request) as reads:
        found = await feed.read_feed(reads, caller, wanted, counts, clock.now())
    return page_body(caller, found, wanted)


@get(
    "/agent/activity/export.csv",
    **BY_ANYBODY,
    responses={
        200: as_csv.answer("The entries, newest first; `before` and `after` are JSON"),
        **problems(*BEHIND_A_KEY, errors.InvalidPayload),
    },
)
async def export_activity(
    caller: Caller,
    heavy: HeavyWork,
    actor: str | None = None,
    action: str | None = None,
    outcome: str | None = None,
    risk: str | None = None,
    since: str | None = None,
) -> Response[bytes]:
    """The activity feed as a streamed CSV file, with the same filters, including entries that are
    too old for the feed.
    """
    wanted = read_wanted(None, None, actor, action, outcome, risk, since)
    return as_csv.file(await activity_as_csv(heavy, caller, wanted), "activity")


@post(
    "/agent/activity/{activity_id:int}/undo",
    status_code=200,
    opt=BY_ANY | WRITES,
    security=[A_SESSION, A_TOKEN],
    responses=problems(
        *FOR_OWNERS,
        errors.SessionRequired,
        errors.NotFound,
        NotUndoable,
        errors.ChangedSince,
        errors.NeedsReview,
        errors.RefusedByGrant,
        errors.ConfirmationNeeded,
    ),
)
async def undo_activity(writer: Writer, caller: Caller, activity_id: int) -> ActivityEntry:
    """Undo the change of an entry, if nothing has changed since. Returns the entry of the undo. A
    second undo changes nothing.
    """
    undone = await undo.undo_entry(writer, activity_id)
    return entry_body(caller, undone, await feed.names_in(writer.session, caller, [undone.actor]))


router = Router(
    path="",
    route_handlers=[read_activity, export_activity, undo_activity],
    # An undo may wait for another write to the same rows; `WRITING` limits that wait.
    dependencies=WRITING,
    tags=["activity"],
)

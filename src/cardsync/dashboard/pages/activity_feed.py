"""The page of the activity feed: the entries that the address's filters find, newest first, each
with its undo.
"""

from __future__ import annotations

from datetime import datetime, tzinfo
from functools import partial

from litestar import Response, get
from litestar.response import Template

from cardsync.access.activity import OUTCOMES, RISKS
from cardsync.access.caller import Caller
from cardsync.dashboard.form_handlers import post_form
from cardsync.dashboard.formats import zone_of
from cardsync.dashboard.messages import message
from cardsync.dashboard.shell import PageRequest, back_to, see, show, url
from cardsync.platform import clock, errors
from cardsync.platform.kit.typed_numbers import whole
from cardsync.platform.value_types import JsonObject
from cardsync.prices.plans.writer import Writer
from cardsync.shop.activity import entry_words, feed, undo
from cardsync.shop.activity.feed_filter import FeedFilter, read_wanted
from cardsync.shop.activity.schemas import page_body
from cardsync.shop.activity.settled_counts import SettledCounts
from cardsync.web.forms import Form
from cardsync.web.request import reading

ACTORS = [
    ("", "Everybody"),
    ("member", "Members"),
    ("key", "API keys"),
    ("token", "Tokens"),
    ("grant", "Assistants"),
    ("operator", "The operator"),
]
AREAS = [("", "Everything"), *entry_words.AREAS.items()]
SHADES = {"low": "plain", "medium": "info", "high": "warn", "critical": "bad"}
OUTCOME_SHADES = {
    "applied": "good",
    "pending_review": "warn",
    "refused_by_grant": "bad",
    "refused_by_limit": "bad",
    "drifted": "warn",
}


@get("/activity")
async def activity_page(request: PageRequest, caller: Caller) -> Template:
    given = dict(request.query_params.multi_items())
    day = str(given.get("since", ""))
    wanted = wanted_of(given, zone_of(caller.account.time_zone))
    counts: SettledCounts = request.app.state.feed_counts
    async with reading(request) as reads:
        done = await feed.read_feed(reads, caller, wanted, counts, clock.now())
    names = done.names
    address = partial(_address, wanted, day)
    return show(
        request,
        caller,
        "activity.html",
        feed=page_body(caller, done, wanted),
        undone_at=done.undone_at,
        wanted=wanted,
        since=day,
        address=address,
        actors=_with(ACTORS, wanted.actor, entry_words.actor_words(wanted.actor or "", names)),
        areas=_with(AREAS, wanted.action, entry_words.action_words(wanted.action or "")),
        risks=[("", "Any risk"), *((risk, risk.title()) for risk in RISKS)],
        outcomes=[("", "Any outcome"), *((name, _words(name)) for name in OUTCOMES)],
        words=_words,
        action_words=entry_words.action_words,
        field_words=entry_words.field_words,
        value_words=entry_words.value_words,
        who=partial(entry_words.actor_words, names=names),
        summary_words=partial(entry_words.summary_words, names=names),
        shades=SHADES,
        outcome_shades=OUTCOME_SHADES,
    )


def wanted_of(given: JsonObject, zone: tzinfo) -> FeedFilter:
    """Read the address's filters. Raises InvalidPayload."""
    return read_wanted(
        given.get("page"),
        given.get("per_page"),
        given.get("actor"),
        given.get("action"),
        given.get("outcome"),
        given.get("risk"),
        _since(str(given.get("since", "")), zone),
    )


def _since(text: str, zone: tzinfo) -> str:
    """Return the start of a day, at midnight in the account's time zone, as a timestamp. Any other
    text is returned unchanged, and `read_wanted` parses it.
    """
    try:
        day = datetime.strptime(text.strip(), "%Y-%m-%d")  # noqa: DTZ007
        return clock.rfc3339(day.replace(tzinfo=zone))
    except (ValueError, OverflowError):
        return text


def _with(
    options: list[tuple[str, str]],
    value: str | None,
    label: str,
) -> list[tuple[str, str]]:
    """Return the options of a filter, with `value` added if they lack it."""
    known = value is None or any(value == name for name, _ in options)
    return options if known else [*options, (str(value), label)]


def _words(name: str) -> str:
    return name.replace("_", " ").replace(".", ": ").capitalize()


def _address(wanted: FeedFilter, since: str, /, **changed: object) -> str:
    query = {
        "actor": wanted.actor,
        "action": wanted.action,
        "outcome": wanted.outcome,
        "risk": wanted.risk,
        "since": since,
        "page": None,
    }
    return url("/activity", **query | changed)


@post_form("/activity/{activity_id:int}/undo")
async def undo_entry(form: Form, writer: Writer, activity_id: int) -> Response[str]:
    # `writer` has long limits, because the undo may wait for other writers of the same row.
    await undo.undo_entry(writer, activity_id)
    done = message("undone")
    if form["back"]:
        return back_to(form["back"], done)
    page = whole(form["page"] or "1")
    if page is None:
        raise errors.BadRequest("page must be a number")
    back = form.some("actor", "action", "outcome", "risk", "since")
    return see("/activity", done, **back, page=page if page > 1 else None)

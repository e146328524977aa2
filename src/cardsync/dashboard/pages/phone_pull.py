"""The page of a phone that pulls: the token in its address opens one game's queue, and its forms
send marks. The page works without scripts; with scripts it also works without a network.
"""

from __future__ import annotations

import re
import secrets
from typing import cast, get_args

from litestar import MediaType, Response, get
from litestar.exceptions import NotFoundException
from litestar.response import Template
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.dashboard.assets import asset_url, text_of
from cardsync.dashboard.formats import CONDITIONS, game_name
from cardsync.dashboard.messages import message, sentences
from cardsync.dashboard.shell import HEADERS, PageRequest, reader_of, url
from cardsync.platform import clock, errors, limits
from cardsync.platform.kit.typed_numbers import whole
from cardsync.sales.orders.pull_models import MissingReason
from cardsync.sales.pulling import marks
from cardsync.sales.pulling.phone import link_of
from cardsync.sales.pulling.progress import Kind, Mark
from cardsync.sales.pulling.queue import Entry, PhoneLink, read_queue
from cardsync.sales.pulling.schemas import PullLine, progress_of, pull_line
from cardsync.web.forms import Form, public_form, sentence
from cardsync.web.pages import page
from cardsync.web.request import AnyRequest, AnyResponse

_ID = re.compile(r"[A-Za-z0-9_-]{8,64}")
OPEN = ("waiting", "deferred")
PHONE_HEADERS = HEADERS | {
    "Content-Security-Policy": HEADERS["Content-Security-Policy"] + "; worker-src 'self'",
    "Referrer-Policy": "no-referrer",
}


@get("/{token:str}")
async def phone_page(
    request: PageRequest, caller: Caller, session: AsyncSession, token: str
) -> Template:
    """Show one card large, with the queue under it."""
    link = link_of(request.scope)
    given = request.query_params.get("device", "")
    device = _device(given)
    now = clock.now()
    queue = await read_queue(session, caller, link.session_id, now)
    entries = queue.of_line(link.product_line)
    named = device if given == device else ""
    shown = await _current(session, caller, link, entries, named)
    lines = [pull_line(entry, device) for entry in entries]
    current = next((line for line in lines if shown and line.item_id == shown.item_id), None)
    context = {
        "reader": reader_of(request, caller),
        "asset": asset_url,
        "url": url,
        "token": token,
        "device": device,
        "named": named,
        "person": request.query_params.get("person", "")[:100],
        "game": "All games"
        if link.product_line is None
        else game_name(link.product_line) or "Other cards",
        "session_id": link.session_id,
        "lines": sorted(lines, key=lambda line: line.state not in OPEN),
        "shelved": any(line.place for line in lines),
        "conditions": CONDITIONS,
        "current": current,
        "following": _following(lines, current),
        "mark_id": secrets.token_urlsafe(16),
        "progress": progress_of(queue, link.product_line),
        "done": sentences(request.query_params.get("done", "")),
        "csrf_token": "",
    }
    return Template(
        "phone_pull.html",
        context=context,
        media_type=MediaType.HTML,
        headers=PHONE_HEADERS,
    )


def _following(lines: list[PullLine], current: PullLine | None) -> PullLine | None:
    """Return the card after the shown one. Pure."""
    others = [line for line in lines if line.state in OPEN and not line.claimed]
    return next((line for line in others if current and line.item_id != current.item_id), None)


async def _current(
    session: AsyncSession, caller: Caller, link: PhoneLink, entries: list[Entry], device: str
) -> Entry | None:
    """Return the first card that no other phone shows. A phone that sends its own id claims the
    card.
    """
    for entry in entries:
        if entry.open and entry.claimed_by in ("", device):
            now = clock.now()
            if not device or await marks.claim(session, caller, link, entry.item_id, device, now):
                return entry
    return None


def _number(given: str) -> int:
    """Read the number of copies in a form; 0 if the field is empty. Raises InvalidPayload."""
    number = whole(given or "1", 10_000, least=1)
    if number is None:
        raise errors.InvalidPayload("quantity: must be a whole number, 1 or more")
    return number if given else 0


def _device(given: str) -> str:
    return given if _ID.fullmatch(given) else "form-" + secrets.token_urlsafe(12)


@public_form("/{token:str}")
async def mark_by_form(
    request: PageRequest, caller: Caller, session: AsyncSession, form: Form, token: str
) -> Response[str]:
    """Record one mark. The form has no token, because no cookie authorizes it."""
    kind, mark_id = form["kind"], form["id"]
    item = whole(form["item_id"], limits.LARGEST_ID)
    if kind not in get_args(Kind) or item is None:
        raise errors.InvalidPayload("kind: this form is incomplete; reload the page")
    if not _ID.fullmatch(mark_id):
        raise errors.InvalidPayload("id: this form is incomplete; reload the page")
    quantity = _number(form["quantity"]) or 1
    undoes = form["undoes"]
    if (kind == "undo") != bool(undoes):
        raise errors.InvalidPayload("undoes: this form is incomplete; reload the page")
    reason = form["reason"] or "not_there"
    if reason not in get_args(MissingReason):
        raise errors.InvalidPayload("reason: this form is incomplete; reload the page")
    device, person = _device(form["device"]), form["person"][:100]
    said, why = cast(Kind, kind), cast(MissingReason, reason)
    mark = Mark(mark_id, said, item, device, person, quantity, undoes[:64], why)
    made = [(mark, 0)]
    if kind == "missing" and (found := _number(form["found"])):
        # The form also says how many copies were found.
        there = Mark(f"{mark_id[:58]}-found", "pulled", item, device, person, found)
        made.insert(0, (there, 0))
    link = link_of(request.scope)
    queue = await marks.record(session, caller, link, made, clock.now())
    _, put_back = marks.outcome_of(queue, mark_id)
    done = message("phone_surplus", put_back) if put_back else message(f"phone_{kind}")
    where = url(f"/p/{token}", device=device, person=person, done=done)
    headers = PHONE_HEADERS | {"Location": where}
    return Response("", status_code=303, media_type=MediaType.TEXT, headers=headers)


@get("/worker.js")
async def worker() -> Response[str]:
    """Serve the phone's service worker below /p/, because a service worker may serve only pages
    below its own address.
    """
    content = text_of("js/phone-worker.js")
    if content is None:
        raise NotFoundException
    headers = {
        "Cache-Control": "no-cache",
        "Service-Worker-Allowed": "/p/",
        # A service worker's requests follow the policy of its own file, not the page's.
        "Content-Security-Policy": "default-src 'none'; connect-src 'self'",
    }
    return Response(content, media_type="text/javascript; charset=utf-8", headers=headers)


def refused(
    request: AnyRequest,
    problem: errors.Problem,
) -> AnyResponse | Template:
    """Show a visitor without a sign-in why the link does not work. The page also shows the marks
    that this phone could no longer send.
    """
    if isinstance(problem, errors.PullLinkEnded):
        return Template(
            "phone_ended.html",
            context={
                "asset": asset_url,
                "token": str(request.path_params.get("token", "")),
                "message": sentence(problem),
            },
            status_code=problem.status,
            media_type=MediaType.HTML,
            headers=PHONE_HEADERS,
        )
    return page(
        "message.html",
        problem.status,
        problem.headers,
        heading="That did not work",
        message=sentence(problem),
    )

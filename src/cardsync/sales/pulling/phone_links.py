"""Creates links that open a pull session on phones, for each product line or for all product lines;
lists and revokes links, and finds the link of a token.

The URL of a link for one product line is returned only once, when the link is created. A link ends
with its session, or when a member revokes it.
"""

from __future__ import annotations

import base64
import secrets
from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import tokens
from cardsync.access.activity import note
from cardsync.access.caller import Caller, caller_query
from cardsync.access.link_tokens import opened_by
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.notify import notify
from cardsync.platform.database.read_sources import Source, found
from cardsync.platform.database.session import Database, in_one_message, run
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.secret import derived
from cardsync.platform.settings import Settings
from cardsync.sales.limits import PULL_LINKS
from cardsync.sales.orders.pull_sessions import PULLS
from cardsync.sales.pulling.queue import PhoneLink
from cardsync.sales.pulling.schemas import PullLinkMade, PullLinkShown

LINK_CALLER = caller_query(
    "pull_link_caller",
    "JOIN pull_link l ON l.seller_id = a.seller_id AND l.id = $2 AND l.revoked_at IS NULL"
    " JOIN pull_session p ON p.seller_id = a.seller_id AND p.id = l.session_id"
    " AND p.state = 'open'",
    "l.session_id",
    "l.product_line",
    "l.secret_hash",
)


_LINKS: Final = """
    SELECT l.id, l.session_id, l.product_line, l.made_by, l.created_at, l.revoked_at,
           s.state <> 'open' AS ended
      FROM pull_link l JOIN pull_session s ON s.seller_id = l.seller_id AND s.id = l.session_id
     WHERE l.seller_id = :seller AND s.seller_id = :seller
       AND (CAST(:session AS bigint) IS NULL OR l.session_id = :session)
       AND (CAST(:link AS bigint) IS NULL OR l.id = :link)
     ORDER BY l.id DESC LIMIT :most
"""


async def make_links(
    session: AsyncSession,
    caller: Caller,
    session_id: int,
    product_line: str | None,
    origin: str,
    now: datetime,
) -> list[PullLinkMade]:
    """Create a link for each product line of the session, or for `product_line`. `origin` is the
    beginning of the URL by which phones reach this service.

    Raises NotFound, PullSessionNotOpen, InvalidPayload.
    """
    seller_id = caller.seller_id
    await locked(session, Lock.SHOP, seller_id)
    named = {"seller": seller_id, "session": session_id}
    await _must_be_open(session, seller_id, session_id)
    made = await session.scalar(
        text("SELECT count(*) FROM pull_link WHERE seller_id = :seller AND session_id = :session"),
        named,
    )
    if made >= PULL_LINKS:
        raise errors.InvalidPayload(
            f"session_id: pull session {session_id} has had {PULL_LINKS} links; open another"
        )
    rows = await session.scalars(
        text("""
            SELECT DISTINCT coalesce(product_line, '') AS line FROM pull_session_item
             WHERE seller_id = :seller AND session_id = :session ORDER BY line
        """),
        named,
    )
    lines = list(rows)
    if product_line is not None and product_line not in lines:
        raise errors.InvalidPayload(
            f"product_line: pull session {session_id} has no card of {product_line!r}"
        )
    links = [
        await _make(session, caller, session_id, line, origin, now)
        for line in lines
        if product_line in (None, line)
    ]
    summary = f"phone links created for pull {session_id}: {len(links)}"
    note(session, caller, "pull_link.made", summary, now, after={"links": [x.id for x in links]})
    return links


_OF_ALL: Final = """
    SELECT l.id, l.secret_hash
      FROM pull_link l JOIN pull_session s ON s.seller_id = l.seller_id AND s.id = l.session_id
     WHERE l.seller_id = :seller AND s.seller_id = :seller AND s.id = :session
       AND s.state = 'open' AND l.product_line IS NULL AND l.revoked_at IS NULL
     ORDER BY l.id DESC LIMIT 1
"""


async def link_of_all(
    source: Source, caller: Caller, session_id: int, settings: Settings, origin: str
) -> PullLinkMade | None:
    """Return an open session's valid link for all games, or None. The link's secret is derived
    from the installation's secret, so the URL can be returned again.
    """
    named = {"seller": caller.seller_id, "session": session_id}
    for link_id, secret_hash in await found(source, _OF_ALL, named):
        secret = _secret_of_all(settings, caller.seller_id, link_id)
        if secrets.compare_digest(bytes(secret_hash), tokens.token_hash(secret)):
            url = f"{origin}/p/{caller.seller_id}-{link_id}-{secret}"
            return PullLinkMade(link_id, session_id, None, url)
    return None


async def make_link_of_all(
    session: AsyncSession,
    caller: Caller,
    session_id: int,
    settings: Settings,
    origin: str,
    now: datetime,
) -> PullLinkMade:
    """Return the session's valid link for all games; create it if there is none. Raises NotFound,
    PullSessionNotOpen.
    """
    await locked(session, Lock.SHOP, caller.seller_id)
    await _must_be_open(session, caller.seller_id, session_id)
    there = await link_of_all(session, caller, session_id, settings, origin)
    if there is not None:
        return there
    made = await _make(session, caller, session_id, None, origin, now)
    secret = _secret_of_all(settings, caller.seller_id, made.id)
    named = {"seller": caller.seller_id, "link": made.id, "hash": tokens.token_hash(secret)}
    await run(session, _SEAL_LINK, named)
    summary = f"phone link created for pull {session_id}: all games"
    note(session, caller, "pull_link.made", summary, now, after={"links": [made.id]})
    url = f"{origin}/p/{caller.seller_id}-{made.id}-{secret}"
    return PullLinkMade(made.id, session_id, None, url)


_SEAL_LINK: Final = """
    UPDATE pull_link SET secret_hash = :hash WHERE seller_id = :seller AND id = :link
"""


def _secret_of_all(settings: Settings, seller_id: int, link_id: int) -> str:
    key = derived(settings, f"pull link {seller_id} {link_id}")
    return base64.urlsafe_b64encode(key).decode().rstrip("=")


async def _make(
    session: AsyncSession,
    caller: Caller,
    session_id: int,
    product_line: str | None,
    origin: str,
    now: datetime,
) -> PullLinkMade:
    secret = tokens.new_token()
    link_id = await session.scalar(
        text("""
            INSERT INTO pull_link
                   (seller_id, session_id, product_line, secret_hash, made_by, created_at)
            VALUES (:seller, :session, :line, :hash, :by, :now) RETURNING id
        """),
        {
            "seller": caller.seller_id,
            "session": session_id,
            "line": product_line,
            "hash": tokens.token_hash(secret),
            "by": caller.actor,
            "now": now,
        },
    )
    assert link_id is not None
    url = f"{origin}/p/{caller.seller_id}-{link_id}-{secret}"
    return PullLinkMade(link_id, session_id, product_line, url)


async def list_links(source: Source, caller: Caller, session_id: int | None) -> list[PullLinkShown]:
    """Return the links of a session, or the newest links of all sessions; newest first."""
    return await _links(source, caller, session_id, None)


async def revoke(
    session: AsyncSession, caller: Caller, link_id: int, now: datetime
) -> PullLinkShown:
    """Revoke a link, which no longer works. A repeated call changes nothing. Raises NotFound."""
    named = {"seller": caller.seller_id, "link": link_id, "now": now}
    await locked(session, Lock.SHOP, caller.seller_id)
    taken = await session.execute(
        text("""
            UPDATE pull_link SET revoked_at = :now
             WHERE seller_id = :seller AND id = :link AND revoked_at IS NULL
            RETURNING session_id
        """),
        named,
    )
    row = taken.first()
    if row is not None:
        await notify(session, PULLS, f"{caller.seller_id}:{row.session_id}")
        summary = f"phone link {link_id} of pull {row.session_id} revoked"
        note(session, caller, "pull_link.revoked", summary, now)
    for link in await _links(session, caller, None, link_id):
        return link
    raise errors.NotFound(f"there is no link {link_id}")


async def _links(
    source: Source, caller: Caller, session_id: int | None, link_id: int | None
) -> list[PullLinkShown]:
    named = {
        "seller": caller.seller_id,
        "session": session_id,
        "link": link_id,
        "most": PULL_LINKS,
    }
    [rows] = await in_one_message(source, [_LINKS], named)
    return [struct_of(PullLinkShown, row) for row in rows]


async def caller_with_link(database: Database, token: str) -> tuple[Caller, PhoneLink]:
    """Return the caller and the link of a phone's token. Raises PullLinkEnded for any token without
    a valid link, and AccountSuspended.
    """
    opened = await opened_by(database, LINK_CALLER, token)
    if opened is None:
        raise errors.PullLinkEnded
    caller, (session_id, product_line) = opened
    if caller.account.suspended:
        raise errors.AccountSuspended
    return caller, PhoneLink(caller.identity.credential_id, session_id, product_line)


async def _must_be_open(session: AsyncSession, seller_id: int, session_id: int) -> None:
    state: str | None = await session.scalar(
        text("SELECT state FROM pull_session WHERE seller_id = :seller AND id = :session"),
        {"seller": seller_id, "session": session_id},
    )
    if state is None:
        raise errors.NotFound(f"there is no pull session {session_id}")
    if state != "open":
        raise errors.PullSessionNotOpen(f"pull session {session_id} is {state}")

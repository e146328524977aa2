"""Signs members in by email address and password, and finds the `Caller` of a session's token.

As with keys, a process caches only which session a token belongs to. Every request reads whether
the session is still valid, in the same round trip as the account and the sync state. So a sign-out,
the removal of a member or the suspension of a seller takes effect on the next request.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from sqlalchemy import delete, func, select, text, update
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import passwords, sealed, tokens
from cardsync.access.caller import Caller, Identity, KeyRing, caller_query, read_row
from cardsync.access.member_models import AccountDeletion, MemberSession
from cardsync.access.models import Account, Member, Seller
from cardsync.platform import clock, errors
from cardsync.platform.database.read_sources import Source, found
from cardsync.platform.database.session import Database, enter_tenant
from cardsync.platform.settings import Settings

# The first match counts, because most browsers also name older browsers in their User-Agent.
_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
UNKNOWN: Final = "Another program"


def browser_name(user_agent: str | None) -> str:
    sent = user_agent or ""
    browser = next((name for mark, name in _BROWSERS if mark in sent), UNKNOWN)
    system = next((name for mark, name in _SYSTEMS if mark in sent), "")
    return f"{browser} on {system}" if system else browser


OWNER_SQL = "SELECT seller_id, id FROM member_session WHERE token_hash = %s"
SESSION_CALLER = caller_query(
    "session_caller",
    "JOIN member_session w ON w.seller_id = a.seller_id AND w.id = $2"
    " JOIN member m ON m.id = w.member_id AND m.seller_id = w.seller_id",
    "m.id",
    "m.role",
    "w.last_seen_at",
    "w.expires_at",
    "w.browser",
    "EXISTS (SELECT FROM installation_operator o WHERE o.member_id = m.id)",
)
_WHO: Final = """
    SELECT m.id, m.name, m.email, m.role, m.seller_id, s.name
      FROM member m JOIN seller s ON s.id = m.seller_id
     WHERE m.seller_id = :seller AND m.id = :member
"""
# The least time between two writes of a session's last use.
_NOTED_SECONDS = 60


class SignedIn(NamedTuple):
    """A signed-in member, with the seller's name and the session's token."""

    member_id: int
    name: str
    email: str
    role: str
    seller_id: int
    seller_name: str
    token: str


def sessions_of(database: Database) -> KeyRing:
    """Return the cache that finds the session of a token."""
    return KeyRing(database, sql=OWNER_SQL)


async def caller_with(
    database: Database,
    ring: KeyRing,
    token: str,
    settings: Settings,
    user_agent: str | None = None,
) -> Caller:
    """Return the caller of a session. The account may be suspended. Raises Unauthorized."""
    now = clock.now()
    owner = await ring.owner(token)
    row = owner and await database.polled.first_row(owner[0], SESSION_CALLER, owner[1])
    if not owner or not row:
        raise errors.Unauthorized.ended()
    account, state, columns = read_row(row)
    member_id, role, last_seen_at, expires_at, browser, operates = columns
    idle = now - last_seen_at
    if now >= expires_at or idle >= timedelta(seconds=settings.session_idle_seconds):
        raise errors.Unauthorized.ended()
    unnamed = browser is None and user_agent is not None
    if unnamed or idle >= timedelta(seconds=min(_NOTED_SECONDS, settings.session_idle_seconds / 4)):
        name = browser_name(user_agent) if unnamed else browser
        await _note_use(database, *owner, now, name)
    identity = Identity(owner[0], "session", owner[1], member_id, role, operates)
    return Caller(identity, account, state)


async def _note_use(
    database: Database, seller_id: int, session_id: int, now: datetime, browser: str | None
) -> None:
    query = update(MemberSession).where(
        MemberSession.seller_id == seller_id, MemberSession.id == session_id
    )
    async with database.shared() as session:
        await session.execute(
            query.values(
                last_seen_at=func.greatest(MemberSession.last_seen_at, now), browser=browser
            )
        )


async def sign_in(
    database: Database,
    settings: Settings,
    email: str,
    password: str,
    earlier: str | None = None,
) -> SignedIn:
    """Sign a member in with a new session, which replaces the browser's earlier session. Raises
    InvalidCredentials or AccountSuspended.
    """
    query = select(Member).where(func.lower(Member.email) == func.lower(email.strip()))
    async with database.shared() as session:
        member = await session.scalar(query)
    if (
        not await passwords.is_right(member.password_hash if member else None, password)
        or member is None
    ):
        raise errors.InvalidCredentials
    async with database.shared() as session:
        # The password may have been changed during the slow check. Then this sign-in fails, because
        # the row must be unchanged.
        still = query.where(Member.id == member.id, Member.password_hash == member.password_hash)
        if await session.scalar(still.with_for_update(read=True)) is None:
            raise errors.InvalidCredentials
        if earlier:
            await session.execute(
                delete(MemberSession).where(MemberSession.token_hash == tokens.token_hash(earlier))
            )
        return await begin(session, settings, member)


async def begin(session: AsyncSession, settings: Settings, member: Member) -> SignedIn:
    """Begin a session of a member, whose row the transaction has locked. Raises
    AccountSuspended.
    """
    await enter_tenant(session, member.seller_id)
    suspended = await session.scalar(
        select(Account.suspended).where(Account.seller_id == member.seller_id)
    )
    seller_name = await session.scalar(select(Seller.name).where(Seller.id == member.seller_id))
    if suspended or seller_name is None:
        raise errors.AccountSuspended
    deletion = await session.get(AccountDeletion, member.seller_id)
    # Until the deletion begins, an owner may sign in to cancel it.
    if deletion and (deletion.begun_at or member.role != "owner"):
        raise errors.AccountSuspended("this account is scheduled for deletion")
    now = clock.now()
    token = tokens.new_token()
    expires_at = now + timedelta(seconds=settings.session_seconds)
    await sealed.add_session(session, member.id, tokens.token_hash(token), now, expires_at)
    return SignedIn(
        member.id,
        member.name,
        member.email,
        member.role,
        member.seller_id,
        seller_name,
        token,
    )


async def who(source: Source, caller: Caller, token: str) -> SignedIn:
    """Return the member of a session that was just checked."""
    values = {"seller": caller.seller_id, "member": caller.member_id}
    rows = await found(source, _WHO, values)
    if not rows:
        raise errors.Unauthorized.ended()
    return SignedIn._make([*rows[0], token])


async def sign_out(session: AsyncSession, caller: Caller, token: str) -> None:
    """End this one session of the member."""
    theirs = (
        MemberSession.seller_id == caller.seller_id,
        MemberSession.member_id == caller.member_id,
    )
    await session.execute(
        delete(MemberSession).where(*theirs, MemberSession.token_hash == tokens.token_hash(token))
    )


async def end_all(session: AsyncSession, seller_id: int, member_id: int) -> None:
    """End all sessions of the member."""
    await session.execute(
        delete(MemberSession).where(
            MemberSession.seller_id == seller_id, MemberSession.member_id == member_id
        )
    )


async def drop_past(database: Database, settings: Settings, now: datetime) -> int:
    """Delete expired sessions and invitations; return their number."""
    idle_since = now - timedelta(seconds=settings.session_idle_seconds)
    async with database.shared() as session:
        over = text(
            "DELETE FROM member_session WHERE expires_at <= :now OR last_seen_at <= :idle RETURNING 1"
        )
        sessions = (await session.execute(over, {"now": now, "idle": idle_since})).all()
        invitations = await session.execute(
            text("DELETE FROM invitation WHERE expires_at <= :now RETURNING 1"), {"now": now}
        )
        return len(sessions) + len(invitations.all())

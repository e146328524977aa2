"""Issues tokens for a code or a refresh token. Ends a grant when its client requests that, or when
a code or refresh token is used a second time.

A code creates a grant only once. A refresh token is exchanged only once for the grant's next
tokens. If either is used again, a thief or the client did it, so the grant ends for both.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final, Literal

import msgspec
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import keys, sealed
from cardsync.access.access_tokens import PREFIX
from cardsync.access.activity import note_by
from cardsync.access.audience import SCOPES
from cardsync.access.entitlements import is_paid
from cardsync.access.grant_models import OAuthCode, OAuthGrant, RefreshToken
from cardsync.access.models import AccessToken, Account, Member
from cardsync.assistant.oauth import clients
from cardsync.assistant.oauth.consent import need_target
from cardsync.assistant.oauth.refused import Refused
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings

REFRESH: Final = "csr_"
SCOPES_KNOWN: Final = frozenset[str](SCOPES)
_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")
Form = Mapping[str, Sequence[str]]


class Tokens(msgspec.Struct):
    access_token: str
    token_type: Literal["Bearer"]
    expires_in: int
    refresh_token: str
    scope: str


async def tokens_for(
    database: Database, settings: Settings, ours: str, form: Form, now: datetime
) -> Tokens:
    """Answer a token request. `ours` is the audience of this service. Raises Refused."""
    for name, values in form.items():
        if len(values) > 1 and name != "resource":
            raise Refused("invalid_request", f"{name}: is there more than once")
    kind = _one(form, "grant_type")
    if kind not in ("authorization_code", "refresh_token"):
        raise Refused(
            "unsupported_grant_type", "grant_type: must be authorization_code or refresh_token"
        )
    need_target(form.get("resource", ()), ours)
    client_id = _one(form, "client_id")
    async with database.shared() as session:
        if not await clients.is_known(session, client_id):
            raise Refused("invalid_client", "client_id: is not registered")
    if kind == "authorization_code":
        return await _of_code(database, settings, ours, form, now)
    return await _of_refresh(database, settings, ours, form, now)


def _one(form: Form, name: str) -> str:
    given = form.get(name, [""])[0]
    if not given:
        raise Refused("invalid_request", f"{name}: is missing")
    return given


async def _of_code(
    database: Database, settings: Settings, ours: str, form: Form, now: datetime
) -> Tokens:
    digest = keys.key_hash(_one(form, "code"))
    verifier = _one(form, "code_verifier")
    async with database.shared() as session:
        code = await session.get(OAuthCode, digest)
    if code is None or code.client_id != _one(form, "client_id"):
        raise Refused("invalid_grant", "code: is not one of this client's")
    if code.used_at is None:
        _check_code(code, form, ours, verifier, now)
        async with database.tenant(code.seller_id) as session:
            grant_id = await sealed.redeem_code(session, digest, now)
            if grant_id is not None:
                grant = await session.get_one(OAuthGrant, (code.seller_id, grant_id))
                await _check_giver(session, grant, now)
                await clients.note_use(session, code.client_id, now)
                _note(session, grant, now)
                return await _issued(session, settings, grant, grant.scopes, now)
    await _end_of_code(database, code.seller_id, digest, now)
    raise Refused("invalid_grant", "code: was used before; what came of it has ended")


def _check_code(code: OAuthCode, form: Form, ours: str, verifier: str, now: datetime) -> None:
    if now >= code.expires_at:
        raise Refused("invalid_grant", "code: has expired")
    # A client may omit the redirect address (OAuth 2.1). If it sends one, it must be that of the
    # code.
    if form.get("redirect_uri", [code.redirect_uri])[0] != code.redirect_uri:
        raise Refused("invalid_grant", "redirect_uri: is not that of the authorization request")
    if code.audience != ours:
        raise Refused("invalid_target", "code: is for another resource")
    made = urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=")
    right = hmac.compare_digest(made, code.code_challenge.encode())
    if not _VERIFIER.fullmatch(verifier) or not right:
        raise Refused("invalid_grant", "code_verifier: does not fit the code_challenge")


async def _end_of_code(database: Database, seller_id: int, digest: bytes, now: datetime) -> None:
    async with database.tenant(seller_id) as session:
        used = await session.get_one(OAuthCode, digest)
        if used.grant_id is not None:
            await sealed.end_grants(session, seller_id, now, used.grant_id)


async def _of_refresh(
    database: Database, settings: Settings, ours: str, form: Form, now: datetime
) -> Tokens:
    digest = keys.key_hash(_one(form, "refresh_token"))
    async with database.shared() as session:
        token = await session.get(RefreshToken, digest)
    if token is None or now >= token.expires_at:
        raise Refused("invalid_grant", "refresh_token: is not known, or has expired")
    async with database.tenant(token.seller_id) as session:
        grant = await session.get(OAuthGrant, (token.seller_id, token.grant_id))
        if grant is None or grant.client_id != _one(form, "client_id"):
            raise Refused("invalid_grant", "refresh_token: is not one of this client's")
        if grant.revoked_at is not None:
            raise Refused("invalid_grant", "refresh_token: access was taken back")
        if grant.audience != ours:
            raise Refused("invalid_target", "refresh_token: is for another resource")
        if await sealed.use_refresh_token(session, digest, now):
            await _check_giver(session, grant, now)
            return await _issued(session, settings, grant, _narrowed(grant, form), now)
        await sealed.end_grants(session, grant.seller_id, now, grant.id)
    raise Refused("invalid_grant", "refresh_token: was used before; the access has ended")


def _narrowed(grant: OAuthGrant, form: Form) -> list[str]:
    """Return the scopes of the next access token: the requested ones that the grant has. Raises
    Refused.
    """
    wanted = form.get("scope", [""])[0].split()
    known = SCOPES_KNOWN.intersection(wanted) or SCOPES_KNOWN
    scopes = [scope for scope in grant.scopes if scope in known]
    if not scopes:
        raise Refused("invalid_scope", "scope: was not granted")
    return scopes


async def _check_giver(session: AsyncSession, grant: OAuthGrant, now: datetime) -> None:
    """Check that the member who gave the grant is still an owner, and that the account may use
    assistants. Raises Refused.
    """
    of_member = (Member.seller_id == grant.seller_id) & (Member.id == grant.member_id)
    role = await session.scalar(select(Member.role).where(of_member))
    # `sealed.add_grant_token` checks the role again, because it may change in the meantime.
    if role != "owner":
        raise Refused("invalid_grant", "the owner who gave access is no owner any more")
    account = await session.get(Account, grant.seller_id)
    if account is None or account.suspended:
        raise Refused("invalid_grant", "the account is suspended")
    if not is_paid(account.plan, account.trial_ends_at, now):
        raise Refused("invalid_grant", "assistants need a paid plan, and this account has none")


def _note(session: AsyncSession, grant: OAuthGrant, now: datetime) -> None:
    may = "read and change" if len(grant.scopes) > 1 else "read"
    buyers = "with buyer data" if grant.buyer_data else "without buyer data"
    summary = f"grant {grant.id} may {may}, {buyers}"
    actor = f"member {grant.member_id}"
    entry = note_by(session, grant.seller_id, actor, "assistant.connected", summary, now)
    entry.risk = "medium"


async def _issued(
    session: AsyncSession,
    settings: Settings,
    grant: OAuthGrant,
    scopes: Sequence[str],
    now: datetime,
) -> Tokens:
    access, refresh = keys.new_secret(PREFIX), keys.new_secret(REFRESH)
    seconds = settings.access_token_seconds
    holds = await sealed.add_grant_token(
        session,
        grant.seller_id,
        grant.id,
        keys.key_hash(access),
        scopes,
        now,
        now + timedelta(seconds=seconds),
    )
    if not holds:
        raise Refused("invalid_grant", "access was taken back")
    await sealed.add_refresh_token(
        session,
        grant.seller_id,
        grant.id,
        keys.key_hash(refresh),
        now + timedelta(days=settings.refresh_token_days),
    )
    return Tokens(access, "Bearer", seconds, refresh, " ".join(scopes))


async def give_up(database: Database, form: Form, now: datetime) -> None:
    """End the grant of a token that the client revokes (RFC 7009). An unknown token is ignored.
    Raises Refused.
    """
    digest = keys.key_hash(_one(form, "token"))
    async with database.shared() as session:
        of_token = select(AccessToken).where(AccessToken.token_hash == digest)
        token = await session.get(RefreshToken, digest) or await session.scalar(of_token)
    if token is None or token.grant_id is None:
        return
    async with database.tenant(token.seller_id) as session:
        grant = await session.get_one(OAuthGrant, (token.seller_id, token.grant_id))
        if form.get("client_id", [grant.client_id])[0] != grant.client_id:
            raise Refused("invalid_client", "token: is not one of this client's")
        if grant.revoked_at is None:
            await sealed.end_grants(session, grant.seller_id, now, grant.id)
            actor, summary = f"grant {grant.id}", f"grant {grant.id} given up"
            note_by(session, grant.seller_id, actor, "assistant.revoked", summary, now)

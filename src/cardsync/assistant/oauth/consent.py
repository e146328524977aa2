"""Reads an authorization request, passes it through the consent page under a seal, and makes the
code of a consent.

The page's form sends the request back unchanged. The seal binds the request to the member who saw
it, and expires after an hour.
"""

from __future__ import annotations

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access import keys, sealed
from cardsync.access.audience import READ, SCOPES, WRITE, audience
from cardsync.access.caller import Caller
from cardsync.access.entitlements import is_paid
from cardsync.access.member_models import AccountDeletion
from cardsync.assistant.oauth import clients, redirects
from cardsync.assistant.oauth.refused import Refused, Unverified
from cardsync.platform import errors
from cardsync.platform.database.session import Database
from cardsync.platform.secret import derived
from cardsync.platform.settings import Settings

CODE: Final = "cco_"
STATE_CHARACTERS: Final = 1_000
_SHOWN_FOR: Final = timedelta(hours=1)
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
Query = Sequence[tuple[str, str]]


class ConsentRequest(msgspec.Struct, frozen=True):
    """An authorization request whose client and redirect address are verified. `host` is the host
    of the client's document; None for a client that registered itself. `writes` is true if the
    client also requests the scope for writing.
    """

    client_id: str
    name: str
    host: str | None
    redirect_uri: str
    state: str | None
    issuer: str
    audience: str
    challenge: str
    writes: bool

    def answer(self, **told: str) -> str:
        """Return the address of the authorization response, which names its issuer (RFC 9207)."""
        return redirects.with_answer(self.redirect_uri, **told, state=self.state, iss=self.issuer)


class RefusedAt(Exception):
    """An error of an authorization request, which is sent to the client at `address`."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address


async def read_request(
    database: Database, settings: Settings, host: str | None, query: Query, now: datetime
) -> ConsentRequest:
    """Parse the authorization request. Raises Unverified before the redirect address is verified as
    the client's, and RefusedAt after that.
    """
    names = Counter(name for name, _ in query)
    given = dict(query)
    for name in ("client_id", "redirect_uri"):
        if names[name] != 1 or not given[name]:
            raise Unverified(f"The assistant's request must name its {name} once.")
    client = await clients.find(database, settings, given["client_id"], now)
    uri = given["redirect_uri"]
    if redirects.problem(uri) or not redirects.is_one_of(uri, client.redirect_uris):
        raise Unverified("The assistant wants the answer at an address that is not registered.")
    issuer, ours = settings.origin_for(host), audience(settings, host)
    state = given.get("state") if names["state"] == 1 else None
    try:
        scopes = _read(query, names, given, ours)
    except Refused as e:
        told = {"error": e.error, "error_description": str(e)}
        raise RefusedAt(redirects.with_answer(uri, **told, state=state, iss=issuer)) from None
    return ConsentRequest(
        client.client_id,
        client.name,
        client.host,
        uri,
        state,
        issuer,
        ours,
        given["code_challenge"],
        WRITE in scopes,
    )


def _read(query: Query, names: Counter[str], given: dict[str, str], ours: str) -> set[str]:
    """Check the request's parameters, and return the scopes that the page may offer. Raises
    Refused.
    """
    twice = [name for name, times in names.items() if times > 1 and name != "resource"]
    if twice:
        raise Refused("invalid_request", f"{twice[0]}: is there more than once")
    if given.get("response_type") != "code":
        raise Refused("unsupported_response_type", "response_type: must be code")
    if given.get("response_mode", "query") != "query":
        raise Refused("invalid_request", "response_mode: must be query")
    if given.get("code_challenge_method") != "S256":
        raise Refused("invalid_request", "code_challenge_method: must be S256")
    if not _CHALLENGE.fullmatch(given.get("code_challenge", "")):
        raise Refused("invalid_request", "code_challenge: must be a SHA-256 in base64url")
    if len(given.get("state", "")) > STATE_CHARACTERS:
        raise Refused("invalid_request", f"state: has more than {STATE_CHARACTERS} characters")
    need_target([value for name, value in query if name == "resource"], ours)
    known = {scope for scope in given.get("scope", "").split() if scope in SCOPES}
    # If a client requests none of the service's scopes, the owner may choose among all of them.
    return known or set(SCOPES)


def need_target(resources: Sequence[str], ours: str) -> None:
    """Check that each requested resource is this service. A request without a resource means this
    service. Raises Refused.
    """
    for resource in resources:
        if resource.rstrip("/") != ours:
            raise Refused("invalid_target", f"resource: must be {ours}")


def may_consent(caller: Caller, now: datetime) -> None:
    """Check that the member may authorize an assistant. Raises OwnerRequired, PaidPlanRequired."""
    caller.must_be_owner()
    if not is_paid(caller.account.plan, caller.account.trial_ends_at, now):
        raise errors.PaidPlanRequired("assistants need a paid plan, and this account has none")


class _Sealed(msgspec.Struct, frozen=True):
    asked: ConsentRequest
    member_id: int
    until: datetime


def sealed_request(settings: Settings, caller: Caller, asked: ConsentRequest, now: datetime) -> str:
    """Return the value of the consent page's hidden field: the request with its seal."""
    assert caller.member_id is not None
    told = msgspec.json.encode(_Sealed(asked, caller.member_id, now + _SHOWN_FOR))
    return f"{urlsafe_b64encode(told).decode()}.{_seal(settings, told)}"


def opened_request(settings: Settings, caller: Caller, field: str, now: datetime) -> ConsentRequest:
    """Return the request in the consent page's hidden field, if this member saw it. Raises
    CsrfFailed.
    """
    told, _, seal = field.partition(".")
    try:
        text = urlsafe_b64decode(told.encode("ascii"))
    except ValueError:
        text = b""
    if not seal.isascii() or not hmac.compare_digest(seal, _seal(settings, text)):
        raise errors.CsrfFailed("this form is not from your session; start again in the assistant")
    shown = msgspec.json.decode(text, type=_Sealed)
    if shown.member_id != caller.member_id:
        raise errors.CsrfFailed("this form was shown to someone else; start again")
    if now >= shown.until:
        raise errors.CsrfFailed("this form is older than an hour; start again in the assistant")
    return shown.asked


def _seal(settings: Settings, text: bytes) -> str:
    return hmac.digest(derived(settings, "consent"), text, "sha256").hex()


async def approve(
    session: AsyncSession,
    caller: Caller,
    settings: Settings,
    asked: ConsentRequest,
    now: datetime,
    *,
    writes: bool,
    buyer_data: bool,
) -> str:
    """Make the code of a consent for the client. Raises OwnerRequired, PaidPlanRequired,
    AccountEnding.
    """
    may_consent(caller, now)
    if await session.get(AccountDeletion, caller.seller_id):
        raise errors.AccountEnding("this account is about to be deleted; keep it first")
    assert caller.member_id is not None
    code = keys.new_secret(CODE)
    await sealed.add_code(
        session,
        caller.seller_id,
        caller.member_id,
        keys.key_hash(code),
        asked.client_id,
        asked.redirect_uri,
        asked.challenge,
        asked.audience,
        [READ, WRITE] if writes and asked.writes else [READ],
        buyer_data=buyer_data,
        expires_at=now + timedelta(seconds=settings.authorization_code_seconds),
    )
    return code

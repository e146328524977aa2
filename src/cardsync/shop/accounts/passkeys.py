"""Adds passkeys, and signs members in whose device signs the server's challenge.

The device must have verified its user. A passkey whose counter of signatures does not grow is
refused, because it may be a copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from ipaddress import ip_address
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import webauthn
from sqlalchemy import delete, func, select
from sqlalchemy.ext.asyncio import AsyncSession
from webauthn.helpers import (
    options_to_json_dict,
    parse_authentication_credential_json,
    parse_client_data_json,
    parse_registration_credential_json,
)
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)
from webauthn.registration.verify_registration_response import VerifiedRegistration

from cardsync.access import sealed, sessions, tokens
from cardsync.access.activity import note
from cardsync.access.caller import Caller
from cardsync.access.member_models import MemberSession, Passkey
from cardsync.access.models import Member
from cardsync.platform import errors
from cardsync.platform.database.locks import Lock, locked
from cardsync.platform.database.read_sources import Source, rows_as
from cardsync.platform.database.session import Database
from cardsync.platform.settings import Settings
from cardsync.platform.value_types import JsonObject
from cardsync.shop.accounts import challenges
from cardsync.shop.limits import KEY_NAME_CHARACTERS, PASSKEYS_OF_MEMBER

# The maximum length of a credential's id in WebAuthn.
_ID_BYTES: Final = 1023
_UNREADABLE: Final = (WebAuthnException, ValueError, TypeError, KeyError)


class Place(NamedTuple):
    """The address of the page in the browser. `name` is its host, which passkeys are bound to."""

    origin: str
    name: str


def place_of(settings: Settings, host: str | None) -> Place:
    """Return the address with `host` if that is one of the server's names, else PUBLIC_URL. Pure.
    Raises InvalidPayload for an IP address, because browsers support no passkeys there.
    """
    ours = urlsplit(settings.origin)
    believed = host is not None and host != ours.netloc and settings.is_own_name(host)
    origin = f"{ours.scheme}://{host}" if believed else settings.origin
    name = urlsplit(origin).hostname or ""
    if _is_address(name):
        raise errors.InvalidPayload(
            "passkeys don't work with an IP address; open this page by its name or as localhost"
        )
    return Place(origin, name)


def has_name(settings: Settings, host: str | None) -> bool:
    """Return whether browsers support passkeys at the page's address, which must not be an IP
    address. Pure.
    """
    try:
        place_of(settings, host)
    except errors.InvalidPayload:
        return False
    return True


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


async def listed(source: Source, caller: Caller) -> list[Passkey]:
    """Return the member's own passkeys, oldest first."""
    tail = "AND member_id = :member ORDER BY id"
    return await rows_as(source, Passkey, caller.seller_id, tail, member=caller.member_id)


def _own(caller: Caller) -> tuple[Any, ...]:
    return (Passkey.seller_id == caller.seller_id, Passkey.member_id == caller.member_id)


async def begin(
    session: AsyncSession,
    caller: Caller,
    place: Place,
    now: datetime,
) -> JsonObject:
    """Return the options with which the member's browser makes a passkey."""
    member = await session.scalar(
        select(Member).where(Member.seller_id == caller.seller_id, Member.id == caller.member_id)
    )
    assert member is not None
    options = webauthn.generate_registration_options(
        rp_id=place.name,
        rp_name="cardsync",
        user_id=member.id.to_bytes(8, "big"),
        user_name=member.email,
        user_display_name=member.name,
        challenge=challenges.made(session, now, member.id),
        authenticator_selection=AuthenticatorSelectionCriteria(
            resident_key=ResidentKeyRequirement.REQUIRED,
            user_verification=UserVerificationRequirement.REQUIRED,
        ),
        exclude_credentials=[
            PublicKeyCredentialDescriptor(id=passkey.credential_id)
            for passkey in await listed(session, caller)
        ],
    )
    return options_to_json_dict(options)


async def add(
    database: Database,
    caller: Caller,
    place: Place,
    name: str,
    credential: Mapping[str, object],
    now: datetime,
) -> Passkey:
    """Verify and store a passkey that the member's browser made. Raises InvalidPayload."""
    verified = await _verified(database, caller, place, credential, now)
    name = " ".join(name.split())
    if not 1 <= len(name) <= KEY_NAME_CHARACTERS:
        raise errors.InvalidPayload(f"name: use 1 to {KEY_NAME_CHARACTERS} characters")
    async with database.tenant(caller.seller_id) as session:
        return await _kept(session, caller, name, verified, now)


async def _kept(
    session: AsyncSession,
    caller: Caller,
    name: str,
    verified: VerifiedRegistration,
    now: datetime,
) -> Passkey:
    """Store a verified passkey. Raises InvalidPayload if the member has too many passkeys or
    already has this one.
    """
    await locked(session, Lock.SHOP, caller.seller_id)
    count = select(func.count()).select_from(Passkey).where(*_own(caller))
    if (await session.scalar(count) or 0) >= PASSKEYS_OF_MEMBER:
        raise errors.InvalidPayload(
            f"name: a member can have at most {PASSKEYS_OF_MEMBER} passkeys; remove one first"
        )
    known = select(Passkey.id).where(Passkey.credential_id == verified.credential_id)
    if await session.scalar(known) is not None:
        raise errors.InvalidPayload("credential: this passkey is already registered")
    assert caller.member_id is not None
    passkey_id = await sealed.add_passkey(
        session,
        caller.member_id,
        name,
        verified.credential_id,
        verified.credential_public_key,
        verified.sign_count,
        now,
    )
    passkey = await session.get_one(Passkey, passkey_id)
    summary = f"passkey {passkey.id} of member {caller.member_id} added"
    note(session, caller, "passkey.added", summary, now, risk="medium")
    return passkey


async def _verified(
    database: Database,
    caller: Caller,
    place: Place,
    credential: Mapping[str, object],
    now: datetime,
) -> VerifiedRegistration:
    """Use up the challenge that the browser answered, and verify the answer. Raises
    InvalidPayload.
    """
    try:
        given = parse_registration_credential_json(dict(credential))
        challenge = parse_client_data_json(given.response.client_data_json).challenge
        # The challenge is used up in a transaction of its own, so that a refused answer uses it up,
        # too.
        async with database.shared() as session:
            good = await challenges.taken(session, challenge, caller.member_id, now)
        if not good:
            raise errors.InvalidPayload(
                "credential: this attempt was already used or took too long; try again"
            )
        verified = webauthn.verify_registration_response(
            credential=given,
            expected_challenge=challenge,
            expected_rp_id=place.name,
            expected_origin=place.origin,
            require_user_verification=True,
        )
    except _UNREADABLE as e:
        raise errors.InvalidPayload(f"credential: it is not valid here: {e}") from e
    if len(verified.credential_id) > _ID_BYTES:
        raise errors.InvalidPayload("credential: its ID is too long")
    return verified


async def remove(session: AsyncSession, caller: Caller, passkey_id: int, now: datetime) -> None:
    """Delete one of the member's passkeys. Raises NotFound."""
    gone = delete(Passkey).where(*_own(caller), Passkey.id == passkey_id).returning(Passkey.id)
    if await session.scalar(gone) is None:
        raise errors.NotFound(f"you have no passkey {passkey_id}")
    summary = f"passkey {passkey_id} of member {caller.member_id} removed"
    note(session, caller, "passkey.removed", summary, now, risk="medium")


async def begin_sign_in(database: Database, place: Place, now: datetime) -> dict[str, object]:
    """Return the options with which a browser signs in with any of its passkeys for this server."""
    async with database.shared() as session:
        challenge = challenges.made(session, now, None)
    options = webauthn.generate_authentication_options(
        rp_id=place.name,
        challenge=challenge,
        user_verification=UserVerificationRequirement.REQUIRED,
    )
    return options_to_json_dict(options)


async def sign_in(
    database: Database,
    settings: Settings,
    place: Place,
    credential: Mapping[str, object],
    now: datetime,
    earlier: str | None = None,
) -> sessions.SignedIn:
    """Sign in the passkey's member with a new session, which replaces the browser's session
    `earlier`. Raises InvalidCredentials, AccountSuspended.
    """
    refusal = errors.InvalidCredentials(
        "this passkey is not valid here; sign in with your password"
    )
    try:
        given = parse_authentication_credential_json(dict(credential))
        challenge = parse_client_data_json(given.response.client_data_json).challenge
    except _UNREADABLE as e:
        raise refusal from e
    # The challenge is used up in a transaction of its own, so that a refused sign-in uses it up,
    # too.
    async with database.shared() as session:
        if not await challenges.taken(session, challenge, None, now):
            raise errors.InvalidCredentials("this took too long; try again")
    async with database.shared() as session:
        known = select(Passkey).where(Passkey.credential_id == given.raw_id)
        passkey = await session.scalar(known.with_for_update())
        if passkey is None:
            raise refusal
        try:
            verified = webauthn.verify_authentication_response(
                credential=given,
                expected_challenge=challenge,
                expected_rp_id=place.name,
                expected_origin=place.origin,
                credential_public_key=passkey.public_key,
                credential_current_sign_count=passkey.sign_count,
                require_user_verification=True,
            )
        except _UNREADABLE as e:
            raise refusal from e
        passkey.sign_count = verified.new_sign_count
        passkey.last_used_at = now
        member = await session.scalar(
            select(Member).where(Member.id == passkey.member_id).with_for_update(read=True)
        )
        assert member is not None
        if earlier:
            old = MemberSession.token_hash == tokens.token_hash(earlier)
            await session.execute(delete(MemberSession).where(old))
        return await sessions.begin(session, settings, member)

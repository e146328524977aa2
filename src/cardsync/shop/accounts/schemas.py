"""The JSON structs of settings, members, keys and sessions, and the functions that fill them from
rows. Pure.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from cardsync.access import tokens
from cardsync.access.caller import Caller
from cardsync.access.member_models import AccountDeletion, MemberSession, Passkey
from cardsync.access.models import Account
from cardsync.access.sessions import UNKNOWN, SignedIn
from cardsync.agents.seller_state.sync_kinds import SyncMode
from cardsync.catalog.product_lines import NAMES
from cardsync.platform.clock import rfc3339, rfc3339_or_none
from cardsync.platform.described import Like
from cardsync.platform.money import dollars, to_units, usd

Role = Annotated[str, Like(Literal["owner", "staff"])]


class LineSwitch(msgspec.Struct):
    """A product line by its internal name.

    Switched off, its cards stay, and no export holds them.
    """

    name: str
    """The product line by its internal name"""
    enabled: bool
    """Its cards are priced and exported"""


class AccountSettings(msgspec.Struct):
    """As they are stored; the heartbeat says what the plan allows of them."""

    sync_mode: SyncMode
    sync_interval_minutes: int | None
    quiet_hours: str | None
    time_zone: str
    auto_sync_paused: bool
    automatic_pricing_paused: bool
    planner_opt_in: bool
    write_consent: bool
    upload_approved: bool
    ship_within_days: int
    tracking_threshold: str
    loss_budget: str | None
    costing: Literal["fifo", "average"]
    """fifo: a sold copy is of the oldest lot. average: it costs the mean of all"""
    letter_postage: str
    parcel_postage: str
    supplies: str
    direct_program: bool
    staff_see_revenue: bool
    attribution_logging: bool
    store_name: str | None
    network_consent: bool
    network_published: bool
    network_consented_at: datetime | None
    network_published_at: datetime | None
    listing_url_template: str | None
    postage_steps: str | None
    product_lines: list[LineSwitch]


def line_switches(account: Account) -> list[tuple[str, bool]]:
    """Every line that the account has or may have, those that are on first."""
    names = dict.fromkeys([*account.product_lines, *account.disabled_lines, *NAMES])
    return [(name, name in account.product_lines) for name in names]


def settings_body(account: Account) -> AccountSettings:
    own: dict[str, Any] = {
        name: getattr(account, name) for name in AccountSettings.__struct_fields__
    }
    for name in ("tracking_threshold", "letter_postage", "parcel_postage", "supplies"):
        own[name] = dollars(to_units(getattr(account, name)))
    budget = account.loss_budget
    own["loss_budget"] = usd(budget)
    own["product_lines"] = [LineSwitch(*line) for line in line_switches(account)]
    return AccountSettings(**own)


class MemberBody(msgspec.Struct):
    id: int
    name: str
    """The member's name"""
    email: str
    role: Role


class SellerBody(msgspec.Struct):
    id: int
    name: str
    """The shop's name"""


class SessionBody(msgspec.Struct):
    """Requests other than GET and HEAD carry `csrf_token` in X-CSRF-Token."""

    csrf_token: str
    member: MemberBody
    """The member who is signed in"""
    seller: SellerBody


class SignedOut(msgspec.Struct):
    deleted: bool


def session_body(who: SignedIn) -> SessionBody:
    return SessionBody(
        tokens.csrf_token(who.token),
        MemberBody(who.member_id, who.name, who.email, who.role),
        SellerBody(who.seller_id, who.seller_name),
    )


class RosterBody(msgspec.Struct):
    """`joined` is false as long as the member has not chosen a password."""

    id: int
    email: str
    name: str
    """The member's name"""
    role: Role
    joined: bool
    """The member has chosen a password"""
    created_at: str


class MembersBody(msgspec.Struct):
    members: list[RosterBody]


class InvitationBody(msgspec.Struct):
    member_id: int
    invite_url: str


class KeyBody(msgspec.Struct):
    """A key that is being replaced works until the new one is used, or until `ends_at`. What an
    `own_script` writes is not weighed against the loss limits.
    """

    id: int
    name: str
    created_at: str
    revoked_at: str | None
    ends_at: str | None
    """When the key ends; null: it has no end"""
    own_script: bool


class KeysBody(msgspec.Struct):
    """`why_none` is null where a key can be made."""

    keys: list[KeyBody]
    why_none: str | None
    """Why no key can be made; null: one can"""


class MintedKeyBody(msgspec.Struct):
    id: int
    api_key: str


class OwnSession(msgspec.Struct):
    """`current` is the session that asks; `browser` is its name for people."""

    id: int
    browser: str
    """The browser's name for people"""
    signed_in_at: str
    """When the member signed in"""
    last_used_at: str
    expires_at: str
    current: bool


class OwnSessions(msgspec.Struct):
    sessions: list[OwnSession]


def own_session(row: MemberSession, caller: Caller) -> OwnSession:
    return OwnSession(
        row.id,
        row.browser or UNKNOWN,
        rfc3339(row.created_at),
        rfc3339(row.last_seen_at),
        rfc3339(row.expires_at),
        row.id == caller.identity.credential_id,
    )


class PasskeyBody(msgspec.Struct):
    id: int
    name: str
    created_at: str
    last_used_at: str | None


class PasskeysBody(msgspec.Struct):
    passkeys: list[PasskeyBody]


class PasskeyOptions(msgspec.Struct, rename={"public_key": "publicKey"}):
    """The options in their form of WebAuthn's JSON: bytes are base64url."""

    public_key: dict[str, Any]


def passkey_body(row: Passkey) -> PasskeyBody:
    return PasskeyBody(
        row.id,
        row.name,
        rfc3339(row.created_at),
        rfc3339_or_none(row.last_used_at),
    )


class DeletionBody(msgspec.Struct):
    """Both are null where no deletion was asked for."""

    asked_at: str | None
    """When the owner asked for it; null: nobody did"""
    deletes_at: str | None
    """When the account is deleted; null: it is not"""


def deletion_body(found: AccountDeletion | None) -> DeletionBody:
    if found is None:
        return DeletionBody(None, None)
    return DeletionBody(rfc3339(found.asked_at), rfc3339(found.due_at))

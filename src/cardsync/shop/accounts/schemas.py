"""The JSON structs of settings, members, keys and sessions, and the functions that fill them from
rows. Pure.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.access import tokens
from cardsync.access.models import SETTINGS, Account
from cardsync.access.sessions import UNKNOWN
from cardsync.catalog.product_lines import NAMES
from cardsync.platform import declared_fields
from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import Column, OfRow, Reads, ReadsFor, struct_of
from cardsync.platform.money import usd
from cardsync.platform.value_types import JsonObject

Role = Annotated[str, Like(Literal["owner", "staff"])]


class LineSwitch(msgspec.Struct):
    """A product line by its internal name.

    Switched off, its cards stay, and no export holds them.
    """

    name: str
    """The product line by its internal name"""
    enabled: bool
    """Its cards are priced and exported"""


if TYPE_CHECKING:
    _Shown: TypeAlias = msgspec.Struct
    _Changed: TypeAlias = msgspec.Struct
else:
    _OWN = [setting for setting in SETTINGS.values() if setting.field.api]
    _Shown = declared_fields.shown_struct("_Shown", _OWN)
    _Changed = declared_fields.changed_struct("_Changed", _OWN)


class AccountSettings(_Shown):
    """As they are stored; the heartbeat says what the plan allows of them."""

    network_consented_at: datetime | None
    network_published_at: datetime | None
    product_lines: list[LineSwitch]


class AccountChange(_Changed, forbid_unknown_fields=True):
    """The fields to set; null takes the default. Product lines that are not named stay as they
    are.
    """

    product_lines: list[LineSwitch] | UnsetType = UNSET


def line_switches(account: Account) -> list[tuple[str, bool]]:
    """Every line that the account has or may have, those that are on first."""
    names = dict.fromkeys([*account.product_lines, *account.disabled_lines, *NAMES])
    return [(name, name in account.product_lines) for name in names]


def settings_body(account: Account) -> AccountSettings:
    own: dict[str, Any] = {
        name: getattr(account, name) for name in AccountSettings.__struct_fields__
    }
    for name, value in own.items():
        if isinstance(value, Decimal):
            own[name] = usd(value)
    own["product_lines"] = [LineSwitch(*line) for line in line_switches(account)]
    return AccountSettings(**own)


class MemberBody(msgspec.Struct):
    id: Annotated[int, Column("member_id")]
    name: str
    """The member's name"""
    email: str
    role: Role


class SellerBody(msgspec.Struct):
    id: Annotated[int, Column("seller_id")]
    name: Annotated[str, Column("seller_name")]
    """The shop's name"""


class SessionBody(msgspec.Struct):
    """Requests other than GET and HEAD carry `csrf_token` in X-CSRF-Token."""

    csrf_token: Annotated[str, Column("token"), Reads(tokens.csrf_token)]
    member: Annotated[MemberBody, OfRow(partial(struct_of, MemberBody))]
    """The member who is signed in"""
    seller: Annotated[SellerBody, OfRow(partial(struct_of, SellerBody))]


class SignedOut(msgspec.Struct):
    deleted: bool


class RosterBody(msgspec.Struct):
    """`joined` is false as long as the member has not chosen a password."""

    id: int
    email: str
    name: str
    """The member's name"""
    role: Role
    joined: Annotated[bool, OfRow(lambda row: row.password_hash is not None)]
    """The member has chosen a password"""
    created_at: datetime


class MembersBody(msgspec.Struct):
    members: list[RosterBody]


class InvitationBody(msgspec.Struct):
    member_id: int
    invite_url: str


class KeyBody(msgspec.Struct):
    """A key that is being replaced works until the new one is used, or until `ends_at`. What an
    `own_script` writes is not weighed against the loss limits.
    """

    id: Annotated[int, Column("key_id")]
    name: str
    created_at: datetime
    revoked_at: datetime | None
    ends_at: datetime | None
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


_Browser = Annotated[str, OfRow(lambda row: row.browser or UNKNOWN)]


class OwnSession(msgspec.Struct):
    """`current` is the session that asks; `browser` is its name for people."""

    id: int
    browser: _Browser
    """The browser's name for people"""
    signed_in_at: Annotated[datetime, Column("created_at")]
    """When the member signed in"""
    last_used_at: Annotated[datetime, Column("last_seen_at")]
    expires_at: datetime
    current: Annotated[
        bool,
        Column("id"),
        ReadsFor(lambda caller, id: id == caller.identity.credential_id),
    ]


class OwnSessions(msgspec.Struct):
    sessions: list[OwnSession]


class PasskeyBody(msgspec.Struct):
    id: int
    name: str
    created_at: datetime
    last_used_at: datetime | None


class PasskeysBody(msgspec.Struct):
    passkeys: list[PasskeyBody]


class PasskeyOptions(msgspec.Struct, rename={"public_key": "publicKey"}):
    """The options in their form of WebAuthn's JSON: bytes are base64url."""

    public_key: JsonObject


class DeletionBody(msgspec.Struct):
    """Both are null where no deletion was asked for."""

    asked_at: datetime | None
    """When the owner asked for it; null: nobody did"""
    deletes_at: Annotated[datetime | None, Column("due_at")]
    """When the account is deleted; null: it is not"""

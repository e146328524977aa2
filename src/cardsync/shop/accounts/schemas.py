"""The JSON structs of settings, members, keys and sessions, and the functions that fill them from
rows. Pure.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from cardsync.access import tokens
from cardsync.access.models import SETTINGS, Account
from cardsync.access.sessions import UNKNOWN
from cardsync.catalog.product_lines import NAMES
from cardsync.platform import declared_fields
from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import Column, OfRow, Reads, ReadsFor, struct_of
from cardsync.platform.value_types import JsonObject

Role = Annotated[str, Like(Literal["owner", "staff"])]


class LineSwitch(msgspec.Struct):
    """A product line and whether it is on.

    The cards of a line that is off stay, but they are in no price file.
    """

    name: str
    """The internal name of the product line"""
    enabled: bool
    """Whether the cards of the line are priced and exported"""


if TYPE_CHECKING:
    _Shown: TypeAlias = msgspec.Struct
    _Changed: TypeAlias = msgspec.Struct
else:
    _OWN = [setting for setting in SETTINGS.values() if setting.field.api]
    _Shown = declared_fields.shown_struct("_Shown", _OWN)
    _Changed = declared_fields.changed_struct("_Changed", _OWN)


class AccountSettings(_Shown):
    """The stored settings of the account. The heartbeat returns the settings as limited by the
    plan.
    """

    network_consented_at: datetime | None
    network_published_at: datetime | None
    product_lines: list[LineSwitch]


class AccountChange(_Changed, forbid_unknown_fields=True):
    """The settings to change; null sets a default. Product lines that are not sent do not
    change.
    """

    product_lines: list[LineSwitch] | UnsetType = UNSET


def line_switches(account: Account) -> list[tuple[str, bool]]:
    """Return all product lines, the lines that are on first, each with whether it is on."""
    names = dict.fromkeys([*account.product_lines, *account.disabled_lines, *NAMES])
    return [(name, name in account.product_lines) for name in names]


def settings_body(account: Account) -> AccountSettings:
    lines = [LineSwitch(*line) for line in line_switches(account)]
    return struct_of(AccountSettings, account, product_lines=lines)


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
    """A session. Requests other than GET and HEAD must have `csrf_token` in the header
    X-CSRF-Token.
    """

    csrf_token: Annotated[str, Column("token"), Reads(tokens.csrf_token)]
    member: Annotated[MemberBody, OfRow(partial(struct_of, MemberBody))]
    """The member who is signed in"""
    seller: Annotated[SellerBody, OfRow(partial(struct_of, SellerBody))]


class SignedOut(msgspec.Struct):
    deleted: bool


class RosterBody(msgspec.Struct):
    """A member. `joined` is false until the member has chosen a password."""

    id: int
    email: str
    name: str
    """The member's name"""
    role: Role
    joined: Annotated[bool, OfRow(lambda row: row.password_hash is not None)]
    """Whether the member has chosen a password"""
    created_at: datetime


class MembersBody(msgspec.Struct):
    members: list[RosterBody]


class InvitationBody(msgspec.Struct):
    member_id: int
    invite_url: str


class KeyBody(msgspec.Struct):
    """A key. A key that was replaced works until the new key is used, or until `ends_at`. The loss
    limits ignore the writes of a key with `own_script`.
    """

    id: Annotated[int, Column("key_id")]
    name: str
    created_at: datetime
    revoked_at: datetime | None
    ends_at: datetime | None
    """When the key ends; null if it has no end"""
    own_script: bool


class KeysBody(msgspec.Struct):
    """The account's keys. `why_none` is null if the account can make keys."""

    keys: list[KeyBody]
    why_none: str | None
    """Why the account can't make keys; null if it can"""


class MintedKeyBody(msgspec.Struct):
    id: int
    api_key: str


_Browser = Annotated[str, OfRow(lambda row: row.browser or UNKNOWN)]


class OwnSession(msgspec.Struct):
    """One of the member's sessions. `current` is true for the session of the request."""

    id: int
    browser: _Browser
    """The browser's name, such as Firefox on Windows"""
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
    """The options in the JSON form of WebAuthn, in which bytes are base64url."""

    public_key: JsonObject


class DeletionBody(msgspec.Struct):
    """The deletion of the account. Both times are null if no deletion was requested."""

    asked_at: datetime | None
    """When the owner requested the deletion, or null"""
    deletes_at: Annotated[datetime | None, Column("due_at")]
    """When the account will be deleted, or null"""

"""HTTP routes for the signed-in owner: the account's members and keys, the export of all data, and
the deletion.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar import Router, delete, get, patch, post
from litestar.background_tasks import BackgroundTask
from litestar.response import Stream
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.admission import A_SESSION, BY_SESSION, admitting
from cardsync.access.caller import Caller
from cardsync.platform import clock, errors
from cardsync.platform.clock import rfc3339
from cardsync.platform.kit.struct_rows import struct_of
from cardsync.platform.settings import Settings
from cardsync.shop.accounts import data_export, deletion, own_keys, people
from cardsync.shop.accounts.schemas import (
    DeletionBody,
    InvitationBody,
    KeyBody,
    KeysBody,
    MembersBody,
    MintedKeyBody,
    Role,
    RosterBody,
    SignedOut,
)
from cardsync.shop.limits import EMAIL_CHARACTERS
from cardsync.web.heavy_work import HeavyWork
from cardsync.web.request import (
    BEHIND_A_KEY,
    FOR_MEMBERS,
    WITH_JSON_BODY,
    Deleted,
    problems,
)

READ = (*BEHIND_A_KEY, errors.SessionRequired, errors.OwnerRequired)
WRITTEN = (*FOR_MEMBERS, errors.OwnerRequired)


class NewInvitation(msgspec.Struct):
    email: Annotated[str, msgspec.Meta(max_length=EMAIL_CHARACTERS)]
    role: Role = "staff"


class RoleChange(msgspec.Struct):
    role: Role


class NewKey(msgspec.Struct):
    name: str


class MarkOfKey(msgspec.Struct):
    own_script: bool
    confirm: bool = False


class Confirmed(msgspec.Struct):
    confirm: Annotated[str, msgspec.Meta(max_length=EMAIL_CHARACTERS)]
    """The owner's own email address"""


@get("/members", responses=problems(*READ))
async def list_members(caller: Caller, session: AsyncSession) -> MembersBody:
    """The account's members, oldest first. A member who has not joined yet has an invitation."""
    return MembersBody(await people.members(session, caller))


@post(
    "/members/invitations",
    status_code=201,
    responses=problems(*WRITTEN, *WITH_JSON_BODY),
)
async def invite_member(
    caller: Caller, session: AsyncSession, settings: Settings, data: NewInvitation
) -> InvitationBody:
    """Invite a person as owner or staff. Give `invite_url` to the person. It works once, and is
    returned only here.
    """
    now = clock.now()
    made = await people.invite(session, caller, settings, data.email, data.role, now)
    return InvitationBody(made.member_id, settings.origin + made.link)


@patch("/members/{member_id:int}", responses=problems(*WRITTEN, *WITH_JSON_BODY, errors.NotFound))
async def change_member(
    member_id: int, caller: Caller, session: AsyncSession, data: RoleChange
) -> RosterBody:
    """Change a member's role to owner or staff. The last owner who has joined can't become
    staff.
    """
    await people.change_role(session, caller, member_id, data.role, clock.now())
    listed = await people.members(session, caller)
    return next(member for member in listed if member.id == member_id)


@delete(
    "/members/{member_id:int}",
    status_code=200,
    responses=problems(*WRITTEN, errors.NotFound, errors.InvalidPayload),
)
async def remove_member(member_id: int, caller: Caller, session: AsyncSession) -> Deleted:
    """Remove a member, who loses access immediately in all sessions."""
    await people.remove(session, caller, member_id, clock.now())
    return Deleted(True)


@delete(
    "/members/{member_id:int}/sessions",
    status_code=200,
    responses=problems(*WRITTEN, errors.NotFound),
)
async def sign_member_out(member_id: int, caller: Caller, session: AsyncSession) -> SignedOut:
    """End all sessions of a member."""
    await people.sign_out(session, caller, member_id, clock.now())
    return SignedOut(True)


@post(
    "/members/{member_id:int}/link",
    status_code=201,
    responses=problems(*WRITTEN, errors.NotFound),
)
async def new_link(
    member_id: int, caller: Caller, session: AsyncSession, settings: Settings
) -> InvitationBody:
    """Make a link with which the member can choose a password. It replaces an earlier link."""
    made = await people.new_link(session, caller, settings, member_id, clock.now())
    return InvitationBody(made.member_id, settings.origin + made.link)


@get("/keys", responses=problems(*READ))
async def list_keys(caller: Caller, session: AsyncSession) -> KeysBody:
    """The account's keys, without the secrets. `why_none` is the reason why no key can be made."""
    return await own_keys.listed(session, caller, clock.now())


@post(
    "/keys",
    status_code=201,
    responses=problems(
        *WRITTEN,
        *WITH_JSON_BODY,
        errors.PaidPlanRequired,
        errors.AccountEnding,
    ),
)
async def make_key(caller: Caller, session: AsyncSession, data: NewKey) -> MintedKeyBody:
    """Create a key with a name. `api_key` is returned only here."""
    minted = await own_keys.mint(session, caller, data.name, clock.now())
    return MintedKeyBody(minted.key_id, minted.api_key)


@post(
    "/keys/{key_id:int}/replace",
    status_code=201,
    responses=problems(*WRITTEN, errors.NotFound, errors.InvalidPayload, errors.AccountEnding),
)
async def replace_key(
    key_id: int, caller: Caller, session: AsyncSession, settings: Settings
) -> MintedKeyBody:
    """Replace a key by a new key. The old key works until the new key is used, at most for
    CARDSYNC_KEY_OVERLAP_HOURS. `api_key` is returned only here.
    """
    minted = await own_keys.replace(session, caller, settings, key_id, clock.now())
    return MintedKeyBody(minted.key_id, minted.api_key)


@patch(
    "/keys/{key_id:int}",
    responses=problems(*WRITTEN, *WITH_JSON_BODY, errors.NotFound),
)
async def mark_key(key_id: int, caller: Caller, session: AsyncSession, data: MarkOfKey) -> KeyBody:
    """Mark or unmark a key as a script of your own, whose writes the loss limits ignore. Marking a
    key needs `confirm`.
    """
    own, sure = data.own_script, data.confirm
    await own_keys.mark(session, caller, key_id, clock.now(), own_script=own, confirmed=sure)
    body = await own_keys.listed(session, caller, clock.now())
    return next(key for key in body.keys if key.id == key_id)


@delete("/keys/{key_id:int}", status_code=200, responses=problems(*WRITTEN, errors.NotFound))
async def revoke_key(key_id: int, caller: Caller, session: AsyncSession) -> KeyBody:
    """Revoke a key. All agents with this key lose access immediately."""
    await own_keys.revoke(session, caller, key_id, clock.now())
    body = await own_keys.listed(session, caller, clock.now())
    return next(key for key in body.keys if key.id == key_id)


@get(
    "/export/everything",
    media_type=data_export.ZIP,
    responses=problems(*READ),
)
async def export_everything(caller: Caller, heavy: HeavyWork) -> Stream:
    """Download all data of the account as a zip file. It has each table (cards, price history,
    orders and their items, lists and their cards, activity and others) as CSV and as Parquet, and
    rows that are too old for the database as Parquet in the folder `old`.
    """
    caller.must_be_owner()
    name = f"cardsync-{rfc3339(clock.now())[:10]}.zip"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    parts = await data_export.archive(heavy, caller)
    # If the client disconnects, the archive is closed, so that its temporary files are deleted.
    ended = BackgroundTask(parts.aclose)
    return Stream(parts, media_type=data_export.ZIP, headers=headers, background=ended)


@get("/account/deletion", responses=problems(*READ))
async def read_deletion(caller: Caller, session: AsyncSession) -> DeletionBody:
    """The time at which the account will be deleted, if its owner has requested the deletion."""
    return struct_of(DeletionBody, await deletion.asked(session, caller))


@post("/account/deletion", status_code=200, responses=problems(*WRITTEN, *WITH_JSON_BODY))
async def ask_for_deletion(caller: Caller, session: AsyncSession, data: Confirmed) -> DeletionBody:
    """Delete the account in seven days. `confirm` must be the owner's own email address. All
    sessions, keys, tokens and invitations end immediately. The owner can sign in and cancel the
    deletion.
    """
    return struct_of(DeletionBody, await deletion.ask(session, caller, data.confirm, clock.now()))


@delete("/account/deletion", status_code=200, responses=problems(*WRITTEN, errors.NotFound))
async def take_deletion_back(caller: Caller, session: AsyncSession) -> DeletionBody:
    """Cancel the deletion of the account. Its keys stay revoked."""
    await deletion.restore(session, caller, clock.now())
    return struct_of(DeletionBody, None)


router = Router(
    path="/api",
    route_handlers=[
        list_members,
        invite_member,
        change_member,
        remove_member,
        sign_member_out,
        new_link,
        list_keys,
        make_key,
        replace_key,
        mark_key,
        revoke_key,
        export_everything,
        read_deletion,
        ask_for_deletion,
        take_deletion_back,
    ],
    middleware=[admitting],
    opt=BY_SESSION,
    security=[A_SESSION],
    tags=["account"],
)

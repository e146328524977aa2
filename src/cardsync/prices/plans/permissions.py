"""Reads and changes the owner's permission modes: one for each credential and kind of action. The
grant of an assistant has the modes of tokens, but for those that the owner sets for it alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import errors, read_json
from cardsync.prices.plans.actions import ACTION_TYPES, ActionType
from cardsync.prices.plans.feed_entries import note_permission
from cardsync.prices.plans.models import PlanPermission
from cardsync.prices.plans.modes import DEFAULTS, Credential, Mode, credential_of

Permissions = dict[Credential, dict[ActionType, Mode]]
_SET = """
    INSERT INTO plan_permission (seller_id, credential, action_type, mode, updated_at)
    VALUES (:seller, :credential, :action_type, :mode, :now)
    ON CONFLICT (seller_id, credential, action_type)
    DO UPDATE SET mode = excluded.mode, updated_at = excluded.updated_at
"""
_UNSET = """
    DELETE FROM plan_permission
     WHERE seller_id = :seller AND credential = :credential AND action_type = :action_type
"""


async def permissions_of(session: AsyncSession, seller_id: int) -> Permissions:
    """Return the modes in force of every credential and kind of action."""
    found: Permissions = {
        credential: dict.fromkeys(ACTION_TYPES, mode) for credential, mode in DEFAULTS.items()
    }
    rows = await session.scalars(
        select(PlanPermission).where(PlanPermission.seller_id == seller_id)
    )
    for row in rows:
        if row.credential in found and row.action_type in ACTION_TYPES:
            found[row.credential][row.action_type] = cast(Mode, row.mode)
    return found


async def modes_of(session: AsyncSession, caller: Caller) -> dict[ActionType, Mode] | None:
    """Return the modes that hold for plans of the caller; None for a member, who needs none."""
    credential = credential_of(caller)
    if credential is None:
        return None
    modes = (await permissions_of(session, caller.seller_id))[credential]
    if caller.identity.grant_id is not None:
        modes |= await grant_modes(session, caller.seller_id, caller.identity.grant_id)
    return modes


async def grant_modes(
    session: AsyncSession,
    seller_id: int,
    grant_id: int,
) -> dict[ActionType, Mode]:
    """Return the modes that the owner set for this grant alone. They hold for its single writes
    as they do for its plans.
    """
    rows = await session.execute(
        select(PlanPermission.action_type, PlanPermission.mode).where(
            PlanPermission.seller_id == seller_id,
            PlanPermission.credential == _of_grant(grant_id),
        )
    )
    return {
        cast(ActionType, row.action_type): cast(Mode, row.mode)
        for row in rows
        if row.action_type in ACTION_TYPES
    }


async def mode_of_write(session: AsyncSession, caller: Caller, kind: ActionType) -> Mode | None:
    """Return the mode that the owner set for single writes of the caller's grant; None where the
    loss limits alone hold. Raises RefusedByGrant where the owner does not let it, or any token.
    """
    grant_id = caller.identity.grant_id
    if grant_id is None:
        return None
    mode = (await grant_modes(session, caller.seller_id, grant_id)).get(kind)
    of_tokens = (await permissions_of(session, caller.seller_id))["token"][kind]
    if mode == "deny" or (mode is None and of_tokens == "deny"):
        raise errors.RefusedByGrant(denied_by_owner("token", [kind]))
    return mode


def denied_by_owner(credential: Credential | None, denied: Sequence[str]) -> str:
    who = "an assistant" if credential == "token" else "a key"
    return f"the owner does not let {who} do {', '.join(denied)}: ask the owner to change that in the assistant settings, or to do it themselves"


def _of_grant(grant_id: int) -> str:
    return f"grant {grant_id}"


async def change_grant(
    session: AsyncSession,
    caller: Caller,
    grant_id: int,
    modes: Mapping[ActionType, Mode | None],
    now: datetime,
) -> dict[ActionType, Mode]:
    """Set the modes of a grant of this seller; None gives it that of tokens again."""
    caller.must_be_owner()
    before = await grant_modes(session, caller.seller_id, grant_id)
    for action_type, mode in sorted(modes.items()):
        if before.get(action_type) != mode:
            await _set(session, caller, _of_grant(grant_id), action_type, mode, now)
    return await grant_modes(session, caller.seller_id, grant_id)


async def _set(
    session: AsyncSession,
    caller: Caller,
    credential: str,
    action_type: ActionType,
    mode: Mode | None,
    now: datetime,
) -> None:
    values = {
        "seller": caller.seller_id,
        "credential": credential,
        "action_type": action_type,
    }
    if mode is None:
        await session.execute(text(_UNSET), values)
    else:
        await session.execute(text(_SET), values | {"mode": mode, "now": now})
    summary = f"{action_type} by {credential}: {mode or 'same as other tokens'}"
    note_permission(session, caller, summary, now)


async def read(session: AsyncSession, caller: Caller) -> Permissions:
    caller.must_be_owner()
    return await permissions_of(session, caller.seller_id)


async def change(
    session: AsyncSession,
    caller: Caller,
    body: Mapping[str, Any],
    now: datetime,
) -> Permissions:
    """Set the modes that the body names; the others stay. Raises InvalidPayload."""
    caller.must_be_owner()
    wanted = sorted(_read(body))
    for credential, action_type, mode in wanted:
        await _set(session, caller, credential, action_type, mode, now)
    return await permissions_of(session, caller.seller_id)


def _read(body: Mapping[str, Any]) -> list[tuple[Credential, ActionType, Mode]]:
    found: list[tuple[Credential, ActionType, Mode]] = []
    for name, modes in body.items():
        credential: Credential = read_json.read(name, Credential, name)
        for action, mode in read_json.read(modes, dict[str, Any], name).items():
            place = f"{name}.{action}"
            kind: ActionType = read_json.read(action, ActionType, place)
            found.append((credential, kind, read_json.read(mode, Mode, place)))
    return found

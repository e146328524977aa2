"""Reads and changes the owner's permission modes: one for each credential and kind of action. The
grant of an assistant has the modes of tokens, except for the modes that the owner sets for this
grant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import cast

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.platform import errors, read_json
from cardsync.platform.database.read_sources import Source, rows_as
from cardsync.platform.value_types import JsonObject
from cardsync.prices.loss.decide import DEFAULTS, By, Credential, Mode, credential_of, denied
from cardsync.prices.plans.actions import ACTION_TYPES, ActionType
from cardsync.prices.plans.feed_entries import note_permission
from cardsync.prices.plans.models import PlanPermission

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


async def permissions_of(source: Source, seller_id: int) -> Permissions:
    """Return the current modes of every credential and kind of action."""
    found: Permissions = {
        credential: dict.fromkeys(ACTION_TYPES, mode) for credential, mode in DEFAULTS.items()
    }
    for row in await rows_as(source, PlanPermission, seller_id, ""):
        if row.credential in found and row.action_type in ACTION_TYPES:
            found[row.credential][row.action_type] = cast(Mode, row.mode)
    return found


async def who_plans(session: AsyncSession, caller: Caller, kinds: Iterable[ActionType]) -> By:
    """Return the caller with the modes of its plans. A member needs no modes."""
    credential = credential_of(caller)
    if credential is None:
        return By()
    modes = (await permissions_of(session, caller.seller_id))[credential]
    if caller.identity.grant_id is not None:
        modes |= await grant_modes(session, caller.seller_id, caller.identity.grant_id)
    own = caller.identity.own_script
    # A plan of the seller's own script waits, whatever its risk, if the owner wants to see every
    # plan.
    return By(
        credential,
        {kind: modes[kind] for kind in sorted(kinds) if kind in modes},
        not own,
        trusted=own,
    )


async def grant_modes(
    source: Source,
    seller_id: int,
    grant_id: int,
) -> dict[ActionType, Mode]:
    """Return the modes that the owner set for this grant. The modes apply to the grant's single
    writes and to its plans.
    """
    own, grant = "AND credential = :grant", _of_grant(grant_id)
    rows = await rows_as(source, PlanPermission, seller_id, own, grant=grant)
    return {
        row.action_type: cast(Mode, row.mode) for row in rows if row.action_type in ACTION_TYPES
    }


async def who_writes(session: AsyncSession, caller: Caller, kind: ActionType) -> By:
    """Return the caller with the mode that the owner set for single writes of its grant. Without a
    mode, only the loss limits apply. Raises RefusedByGrant if the owner denies such writes to this
    grant or to all tokens.
    """
    by, grant_id = By(credential_of(caller)), caller.identity.grant_id
    if grant_id is None:
        return by
    mode = (await grant_modes(session, caller.seller_id, grant_id)).get(kind)
    of_tokens = (await permissions_of(session, caller.seller_id))["token"][kind]
    if mode is None and of_tokens == "deny":
        mode = of_tokens
    by = by._replace(modes={kind: mode} if mode else {})
    if refused := denied(by):
        raise errors.RefusedByGrant(refused.error or "")
    return by


def _of_grant(grant_id: int) -> str:
    return f"grant {grant_id}"


async def change_grant(
    session: AsyncSession,
    caller: Caller,
    grant_id: int,
    modes: Mapping[ActionType, Mode | None],
    now: datetime,
) -> dict[ActionType, Mode]:
    """Set the modes of a grant of this seller. The mode None restores the mode of tokens."""
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
    body: Mapping[str, object],
    now: datetime,
) -> Permissions:
    """Set the modes that the body names, and leave the other modes unchanged. Raises
    InvalidPayload.
    """
    caller.must_be_owner()
    wanted = sorted(_read(body))
    for credential, action_type, mode in wanted:
        await _set(session, caller, credential, action_type, mode, now)
    return await permissions_of(session, caller.seller_id)


def _read(body: Mapping[str, object]) -> list[tuple[Credential, ActionType, Mode]]:
    found: list[tuple[Credential, ActionType, Mode]] = []
    for name, modes in body.items():
        credential: Credential = read_json.read(name, Credential, name)
        for action, mode in read_json.read(modes, JsonObject, name).items():
            place = f"{name}.{action}"
            kind: ActionType = read_json.read(action, ActionType, place)
            found.append((credential, kind, read_json.read(mode, Mode, place)))
    return found

"""Reads and changes the owner's permission modes: one for each credential and kind of action."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync import read_json
from cardsync.access.caller import Caller
from cardsync.plans.actions import ACTION_TYPES, ActionType
from cardsync.plans.feed_entries import note_permission
from cardsync.plans.models import PlanPermission
from cardsync.plans.modes import DEFAULTS, Credential, Mode

Permissions = dict[Credential, dict[ActionType, Mode]]
_SET = """
    INSERT INTO plan_permission (seller_id, credential, action_type, mode, updated_at)
    VALUES (:seller, :credential, :action_type, :mode, :now)
    ON CONFLICT (seller_id, credential, action_type)
    DO UPDATE SET mode = excluded.mode, updated_at = excluded.updated_at
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
        values = {
            "seller": caller.seller_id,
            "credential": credential,
            "action_type": action_type,
            "mode": mode,
            "now": now,
        }
        await session.execute(text(_SET), values)
        note_permission(session, caller, f"{action_type} by {credential}: {mode}", now)
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

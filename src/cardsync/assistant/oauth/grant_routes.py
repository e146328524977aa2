"""The HTTP routes of the assistants that a shop's owners authorized: list them, set the permission
modes of one, and end one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from litestar import Router, delete, get, patch
from sqlalchemy.ext.asyncio import AsyncSession

from cardsync.access.caller import Caller
from cardsync.access.rate_limits.groups import WRITES
from cardsync.assistant.oauth import grants
from cardsync.platform import clock, errors
from cardsync.platform.described import Like
from cardsync.platform.kit.struct_rows import Column, struct_of
from cardsync.platform.value_types import JsonObject
from cardsync.prices.loss.decide import Mode
from cardsync.prices.plans.actions import ActionType
from cardsync.web.request import BEHIND_A_KEY, FOR_MEMBERS, WITH_JSON_BODY, Deleted, problems


class AssistantBody(msgspec.Struct):
    """An assistant's grant. `client_host` is null for an assistant that registered itself.
    `granted_by` is the owner who authorized it. Without `buyer_data`, the answers to the assistant
    omit buyers' names and notes. `modes` are the permission modes that an owner set for this
    assistant, by kind of action.
    """

    id: int
    client_name: Annotated[str, Column("name")]
    """The assistant's name"""
    client_host: Annotated[str | None, Column("host")]
    """The host of the assistant's description; null if the assistant registered itself"""
    granted_by: str
    """The owner who authorized the assistant"""
    scopes: list[str]
    """The scopes of the assistant's access: mcp:read, mcp:write"""
    buyer_data: bool
    """Whether answers to the assistant name buyers"""
    created_at: datetime
    last_used_at: datetime | None
    modes: dict[ActionType, Mode]


class AssistantsBody(msgspec.Struct):
    assistants: list[AssistantBody]


@get("/assistants", responses=problems(*BEHIND_A_KEY, errors.SessionRequired, errors.OwnerRequired))
async def list_assistants(caller: Caller, session: AsyncSession) -> AssistantsBody:
    """The assistants that have access to this shop, newest first."""
    given = await grants.listed(session, caller)
    return AssistantsBody(
        [
            struct_of(AssistantBody, grant, granted_by=member_name, modes=modes)
            for grant, member_name, modes in given
        ]
    )


@patch(
    "/assistants/{assistant_id:int}",
    opt=WRITES,
    responses=problems(*FOR_MEMBERS, *WITH_JSON_BODY, errors.OwnerRequired, errors.NotFound),
)
async def change_assistant(
    caller: Caller,
    session: AsyncSession,
    assistant_id: int,
    data: Annotated[JsonObject, Like(grants.ModesGiven)],
) -> grants.ModesGiven:
    """Set permission modes of an assistant, as `{"modes": {"pricing.pins": "deny"}}`. The answer
    has the modes that an owner set for this assistant.
    """
    own = await grants.change_modes(session, caller, assistant_id, data, clock.now())
    return grants.ModesGiven(dict(own))


@delete(
    "/assistants/{assistant_id:int}",
    status_code=200,
    responses=problems(*FOR_MEMBERS, errors.OwnerRequired, errors.NotFound),
)
async def end_assistant(caller: Caller, session: AsyncSession, assistant_id: int) -> Deleted:
    """End an assistant's access everywhere, immediately."""
    await grants.revoke(session, caller, assistant_id, clock.now())
    return Deleted(True)


router = Router(
    path="",
    route_handlers=[list_assistants, change_assistant, end_assistant],
    tags=["assistants"],
)

"""HTTP routes of the assistants that a shop's owners authorized: list them, set the permission
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
    """`client_host` is null for an assistant that registered itself. `granted_by` is the member who
    let it in. Without `buyer_data`, its answers omit buyers' names and notes. `modes` are the
    permission modes that the owner set for this assistant, by the kind of action.
    """

    id: int
    client_name: Annotated[str, Column("name")]
    """The name of the assistant"""
    client_host: Annotated[str | None, Column("host")]
    """The host that describes it; null: it registered itself"""
    granted_by: str
    """The member who let it in"""
    scopes: list[str]
    """The actions that it may take: mcp:read, mcp:write"""
    buyer_data: bool
    """Its answers name buyers"""
    created_at: datetime
    last_used_at: datetime | None
    modes: dict[ActionType, Mode]


class AssistantsBody(msgspec.Struct):
    assistants: list[AssistantBody]


@get("/assistants", responses=problems(*BEHIND_A_KEY, errors.SessionRequired, errors.OwnerRequired))
async def list_assistants(caller: Caller, session: AsyncSession) -> AssistantsBody:
    """Show the assistants that may reach this shop, newest first."""
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
    """Set permission modes, as `{"modes": {"pricing.pins": "deny"}}`; the answer has those that are
    the assistant's own.
    """
    own = await grants.change_modes(session, caller, assistant_id, data, clock.now())
    return grants.ModesGiven(dict(own))


@delete(
    "/assistants/{assistant_id:int}",
    status_code=200,
    responses=problems(*FOR_MEMBERS, errors.OwnerRequired, errors.NotFound),
)
async def end_assistant(caller: Caller, session: AsyncSession, assistant_id: int) -> Deleted:
    """End an assistant's access, at once and everywhere."""
    await grants.revoke(session, caller, assistant_id, clock.now())
    return Deleted(True)


router = Router(
    path="",
    route_handlers=[list_assistants, change_assistant, end_assistant],
    tags=["assistants"],
)
